//! Sessions as operators see and end them.

use super::{SrtPort, record::Record};
use std::{
    net::SocketAddr,
    time::{SystemTime, UNIX_EPOCH},
};

/// A session of SRT.
#[derive(Clone, Debug)]
pub(crate) struct SessionReport {
    number: u64,
    /// Address of its client.
    pub(crate) client: SocketAddr,
    /// The version of SRT that the client tells.
    pub(crate) agent: String,
    /// Path of the stream.
    pub(crate) asset: String,
    /// Whether the client publishes. Others play.
    pub(crate) publishes: bool,
    began: SystemTime,
    /// Bytes of media that it sent or was sent.
    pub(crate) bytes: u64,
    /// Bits a second, since the last report.
    pub(crate) bps: u64,
}

impl SessionReport {
    fn of(record: &Record) -> Self {
        let Record { number, client, asset, agent, publishes, began, .. } = record;
        Self {
            number: *number,
            client: *client,
            agent: agent.clone(),
            asset: asset.clone(),
            publishes: *publishes,
            began: *began,
            bytes: record.bytes(),
            bps: record.rate(),
        }
    }

    /// Id, which clients of the API use.
    pub(crate) fn id(&self) -> String {
        format!("s-{:x}", self.number)
    }

    /// Time at which it was accepted, in seconds since the Unix epoch.
    pub(crate) fn started(&self) -> f64 {
        self.began.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }
}

impl SrtPort {
    /// Reports all sessions, by their numbers.
    pub(crate) fn reports(&self) -> Vec<SessionReport> {
        let mut reports: Vec<_> = self.sessions.records().iter().map(|record| SessionReport::of(record)).collect();
        reports.sort_by_key(|report| report.number);
        reports
    }

    /// Shows each session of a viewer to `seen`: its number and its stream.
    pub(crate) fn each_viewer(&self, seen: &mut dyn FnMut(u64, &str)) {
        let records = self.sessions.records();
        records.iter().filter(|record| !record.publishes).for_each(|record| seen(record.number, &record.asset));
    }

    /// Ends the session of an id. Returns whether there was one.
    pub(crate) fn kick(&self, id: &str) -> bool {
        let number = id.strip_prefix("s-").and_then(|id| u64::from_str_radix(id, 16).ok());
        number.is_some_and(|number| self.sessions.kick(number))
    }
}
