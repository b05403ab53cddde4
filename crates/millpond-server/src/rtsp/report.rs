//! Sessions as operators see and end them.

use super::{
    Rtsp,
    party::Party,
    record::{About, End, Record},
    signalling::{Signs, Viewer as _},
};
use std::{
    net::SocketAddr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Part of a session's client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionKind {
    /// It gets media.
    Viewer,
    /// It sends media.
    Publisher,
}

/// A session of RTSP.
#[derive(Clone, Debug)]
pub(crate) struct SessionReport {
    /// Its number: that of its module in the graph and of its lines in the log.
    pub(crate) number: u64,
    /// Part of its client.
    pub(crate) kind: SessionKind,
    /// Address of its client.
    pub(crate) peer: SocketAddr,
    /// User agent.
    pub(crate) agent: Option<String>,
    /// Path of the asset or stream.
    pub(crate) asset: String,
    /// `ready`, `playing`, `paused` or `publishing`.
    pub(crate) state: &'static str,
    /// `tcp`, `udp` or `multicast`; `None` before the first PLAY or RECORD.
    pub(crate) transport: Option<&'static str>,
    /// Time of its first SETUP.
    pub(crate) began: SystemTime,
    /// Time since its client was heard; `None` while one of its requests is performed.
    pub(crate) silence: Option<Duration>,
    /// Bytes of media that it was sent, or sent.
    pub(crate) bytes: u64,
    /// Bits a second, since the last report.
    pub(crate) bps: Option<u64>,
}

impl SessionReport {
    /// Id, which clients of the API use.
    pub(crate) fn id(&self) -> String {
        format!("r-{:x}", self.number)
    }

    /// Time of the first SETUP, in seconds since the Unix epoch.
    pub(crate) fn started(&self) -> f64 {
        self.began.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }
}

impl Rtsp {
    /// Reports all sessions, by their numbers.
    pub(crate) fn reports(&self) -> Vec<SessionReport> {
        let now = self.now();
        let mut reports: Vec<_> = self.sessions.list().iter().filter_map(|(_, party)| report(party, now)).collect();
        reports.sort_by_key(|report| report.number);
        reports
    }

    /// Number of sessions, and of those among them whose clients publish.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let all = self.sessions.list();
        (all.len(), all.iter().filter(|(_, party)| matches!(party, Party::Publisher(_))).count())
    }

    /// Shows each session of a viewer that has played to `seen`: its number and its asset.
    pub(crate) fn each_viewer(&self, seen: &mut dyn FnMut(u64, &str)) {
        for (_, party) in self.sessions.list() {
            let Party::Viewer(viewer) = &party else { continue };
            let (record, _) = viewer.record();
            if let Some(about) = record.about().filter(|_| record.transport().is_some()) {
                seen(about.id, &about.asset);
            }
        }
    }

    /// Ends a session and its connection. Returns whether there was one of that id.
    pub(crate) fn kick(&self, id: &str) -> bool {
        let Some(number) = id.strip_prefix("r-").and_then(|id| u64::from_str_radix(id, 16).ok()) else { return false };
        let is_it = |party: &Party| record(party).0.about().is_some_and(|about| about.id == number);
        let Some((name, party)) = self.sessions.list().into_iter().find(|(_, party)| is_it(party)) else {
            return false;
        };
        party.ends(End::Kicked);
        self.sessions.remove(&name);
        match &party {
            Party::Viewer(viewer) => viewer.disconnect(),
            Party::Publisher(publisher) => publisher.disconnect(),
        }
        true
    }
}

fn record(party: &Party) -> (&Record, u64) {
    match party {
        Party::Viewer(viewer) => viewer.record(),
        Party::Publisher(publisher) => publisher.record_of(),
    }
}

fn report(party: &Party, now: Duration) -> Option<SessionReport> {
    let (record, bytes) = record(party);
    let About { began, id, peer, asset, agent, .. } = record.about()?.clone();
    let signs = party.signs();
    let (kind, state) = match party {
        Party::Publisher(_) => (SessionKind::Publisher, "publishing"),
        Party::Viewer(_) => (SessionKind::Viewer, state(signs)),
    };
    Some(SessionReport {
        number: id,
        kind,
        peer,
        agent,
        asset,
        state: if record.transport().is_none() { "ready" } else { state },
        transport: record.transport(),
        began,
        silence: signs.map(|signs| now.saturating_sub(signs.heard)),
        bytes,
        bps: record.rate(bytes),
    })
}

/// The state of a viewer. A request of it is performed while it has no signs.
fn state(signs: Option<Signs>) -> &'static str {
    match signs {
        Some(Signs { is_sent: true, .. }) | None => "playing",
        Some(Signs { has_played: true, .. }) => "paused",
        Some(_) => "ready",
    }
}
