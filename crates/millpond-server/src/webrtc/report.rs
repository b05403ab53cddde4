//! Sessions as operators see and end them.

use super::{WebRtc, record::Record, sessions::Known};
use std::{
    net::SocketAddr,
    time::{SystemTime, UNIX_EPOCH},
};

/// A session of WebRTC.
#[derive(Clone, Debug)]
pub(crate) struct SessionReport {
    /// Its number: that of its module in the graph and of its lines in the log.
    number: u64,
    /// Address of its client.
    pub(crate) client: SocketAddr,
    /// User agent.
    pub(crate) agent: Option<String>,
    /// Path of the stream.
    pub(crate) asset: String,
    /// Whether its client publishes.
    pub(crate) is_publisher: bool,
    /// `ready`, `playing` or `publishing`.
    pub(crate) state: &'static str,
    /// `udp`; `None` before it plays.
    pub(crate) transport: Option<&'static str>,
    began: SystemTime,
    /// Bytes of media that it was sent, or has sent.
    pub(crate) bytes: u64,
    /// Bits a second, since the last report; `None` before it plays.
    pub(crate) bps: Option<u64>,
}

impl SessionReport {
    fn of(Known { record, traffic, .. }: &Known) -> Self {
        let Record { number, client, asset, agent, began, .. } = &**record;
        let (has_begun, is_publisher, bytes) = (record.has_begun(), traffic.is_received(), traffic.bytes());
        Self {
            number: *number,
            client: *client,
            agent: agent.clone(),
            asset: asset.clone(),
            is_publisher,
            state: match has_begun {
                false => "ready",
                true if is_publisher => "publishing",
                true => "playing",
            },
            transport: has_begun.then_some("udp"),
            began: *began,
            bytes,
            bps: record.rate(bytes),
        }
    }

    /// Id, which clients of the API use.
    pub(crate) fn id(&self) -> String {
        format!("w-{:x}", self.number)
    }

    /// Time of its offer, in seconds since the Unix epoch.
    pub(crate) fn started(&self) -> f64 {
        self.began.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }
}

impl WebRtc {
    /// Reports all sessions, by their numbers.
    pub(crate) fn reports(&self) -> Vec<SessionReport> {
        let mut reports = self.sessions.each(SessionReport::of);
        reports.sort_by_key(|report| report.number);
        reports
    }

    /// Shows each session of a viewer that has played to `seen`: its number and its stream.
    pub(crate) fn each_viewer(&self, seen: &mut dyn FnMut(u64, &str)) {
        let is_viewer = |known: &Known| known.record.has_begun() && !known.traffic.is_received();
        let record = |known: &Known| is_viewer(known).then(|| known.record.clone());
        self.sessions.each(record).into_iter().flatten().for_each(|record| seen(record.number, &record.asset));
    }

    /// Ends the session of an id. Returns whether there was one.
    pub(crate) fn kick(&self, id: &str) -> bool {
        let number = id.strip_prefix("w-").and_then(|id| u64::from_str_radix(id, 16).ok());
        number.is_some_and(|number| self.sessions.kick(number))
    }
}
