//! Sessions of publishers and viewers, as operators see and end them.

use crate::bit_rate::BitRate;
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Instant, SystemTime, UNIX_EPOCH},
};
use tokio::sync::watch;

/// The sessions of all connections.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// Number of the last one.
    last: AtomicU64,
    /// A lock: taken for begins, ends and looks.
    all: Mutex<HashMap<u64, Entry>>,
}

#[derive(Debug)]
struct Entry {
    record: Arc<Record>,
    /// Turns true when an operator ends the session.
    kick: watch::Sender<bool>,
}

/// A session's facts.
#[derive(Debug)]
struct Record {
    number: u64,
    client: SocketAddr,
    asset: String,
    publishes: bool,
    began: SystemTime,
    since: Instant,
    bytes: AtomicU64,
    /// A lock: taken when an operator looks.
    rate: Mutex<BitRate>,
}

/// A session that runs. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    sessions: Arc<Sessions>,
    record: Arc<Record>,
    kicked: watch::Receiver<bool>,
}

/// A session of RTMP.
#[derive(Clone, Debug)]
pub(crate) struct SessionReport {
    number: u64,
    /// Address of its client.
    pub(crate) client: SocketAddr,
    /// Path of the stream.
    pub(crate) asset: String,
    /// Whether the client publishes. Others play.
    pub(crate) publishes: bool,
    began: SystemTime,
    /// Bytes that it sent or was sent.
    pub(crate) bytes: u64,
    /// Bits a second, since the last report.
    pub(crate) bps: u64,
}

impl Sessions {
    fn all(&self) -> MutexGuard<'_, HashMap<u64, Entry>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the session of a client, which publishes or plays the stream of a path.
    pub(super) fn begin(self: &Arc<Self>, client: SocketAddr, asset: &str, publishes: bool) -> Held {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let record = Arc::new(Record {
            number,
            client,
            asset: asset.to_owned(),
            publishes,
            began: SystemTime::now(),
            since: Instant::now(),
            bytes: AtomicU64::new(0),
            rate: Mutex::default(),
        });
        let (kick, kicked) = watch::channel(false);
        self.all().insert(number, Entry { record: record.clone(), kick });
        Held { sessions: self.clone(), record, kicked }
    }

    fn records(&self) -> Vec<Arc<Record>> {
        self.all().values().map(|entry| entry.record.clone()).collect()
    }

    /// Reports all sessions, by their numbers.
    pub(super) fn reports(&self) -> Vec<SessionReport> {
        let mut reports: Vec<_> = self.records().iter().map(|record| SessionReport::of(record)).collect();
        reports.sort_by_key(|report| report.number);
        reports
    }

    /// Shows each session of a viewer to `seen`: its number and its stream.
    pub(super) fn each_viewer(&self, seen: &mut dyn FnMut(u64, &str)) {
        let records = self.records();
        records.iter().filter(|record| !record.publishes).for_each(|record| seen(record.number, &record.asset));
    }

    /// Ends the session of an id. Returns whether there was one.
    pub(super) fn kick(&self, id: &str) -> bool {
        let number = id.strip_prefix("m-").and_then(|id| u64::from_str_radix(id, 16).ok());
        let all = self.all();
        number.and_then(|number| all.get(&number)).is_some_and(|entry| !entry.kick.send_replace(true))
    }
}

impl Held {
    /// Its number.
    pub(super) fn number(&self) -> u64 {
        self.record.number
    }

    /// Takes the number of bytes so far.
    pub(super) fn count(&self, bytes: u64) {
        self.record.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Turns true when an operator ends the session.
    pub(super) fn kicked(&self) -> watch::Receiver<bool> {
        self.kicked.clone()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.sessions.all().remove(&self.record.number);
    }
}

impl SessionReport {
    fn of(record: &Record) -> Self {
        let bytes = record.bytes.load(Ordering::Relaxed);
        Self {
            number: record.number,
            client: record.client,
            asset: record.asset.clone(),
            publishes: record.publishes,
            began: record.began,
            bytes,
            bps: record.rate.lock().unwrap_or_else(PoisonError::into_inner).look(record.since, bytes),
        }
    }

    /// Id, which clients of the API use.
    pub(crate) fn id(&self) -> String {
        format!("m-{:x}", self.number)
    }

    /// Time at which it was accepted, in seconds since the Unix epoch.
    pub(crate) fn started(&self) -> f64 {
        self.began.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_listed_and_ended_once() {
        let sessions = Arc::<Sessions>::default();
        let client = ([192, 0, 2, 1], 1935).into();
        let (publisher, viewer) = (sessions.begin(client, "live/a", true), sessions.begin(client, "live/a", false));
        publisher.count(10);
        let reports = sessions.reports();
        let found: Vec<_> = reports.iter().map(|report| (report.id(), report.publishes, report.bytes)).collect();
        assert_eq!(found, [("m-1".to_owned(), true, 10), ("m-2".to_owned(), false, 0)]);
        let mut seen = Vec::new();
        sessions.each_viewer(&mut |number, path| seen.push((number, path.to_owned())));
        assert_eq!(seen, [(2, "live/a".to_owned())]);
        assert!(sessions.kick("m-2") && *viewer.kicked().borrow() && !*publisher.kicked().borrow());
        assert!(!sessions.kick("m-2") && !sessions.kick("m-3") && !sessions.kick("s-1") && !sessions.kick("m-x"));
        drop(viewer);
        assert_eq!(sessions.reports().len(), 1);
    }
}
