//! RTMP: streams that publishers push, and that viewers play. The protocol is that of [`millpond_rtmp`]; this module has its sockets.

mod connection;
mod listen;
mod metrics;
mod publication;
mod refusal;
mod rights;
mod sessions;
mod settings;
mod viewer;

pub(crate) use listen::accept;
pub(crate) use metrics::RtmpMetrics;
pub(crate) use sessions::SessionReport;
pub use settings::RtmpSettings;

use crate::{limits::LimitSettings, live::Sources};
use arc_swap::ArcSwap;
use millpond_access::{Gates, Publishers};
use millpond_connections::{ConnectionTimeouts, Slots};
use sessions::Sessions;
use std::{net::SocketAddr, sync::Arc};

/// The RTMP front end of a server.
pub(crate) struct Rtmp {
    sources: Arc<Sources>,
    /// Admission of publishers; `None` where no stream is pushed.
    publishers: Option<Arc<Publishers>>,
    /// Rules of access.
    pub(crate) gates: Arc<Gates>,
    connections: Arc<Slots>,
    max_connections: usize,
    timeouts: ConnectionTimeouts,
    access_log: bool,
    metrics: RtmpMetrics,
    /// Those of all configurations so far.
    sessions: Arc<Sessions>,
}

/// RTMP as the configuration in force has it. A reload replaces it; connections go on with the one that they began with.
pub(crate) type CurrentRtmp = Arc<ArcSwap<Rtmp>>;

impl Rtmp {
    /// Makes the front end of a configuration. It shares connections with the one `before` it.
    pub(crate) fn new(
        (sources, publishers, gates): (Arc<Sources>, Option<Arc<Publishers>>, Arc<Gates>),
        limits: &LimitSettings,
        access_log: bool,
        metrics: &RtmpMetrics,
        before: Option<&Self>,
    ) -> Arc<Self> {
        let connections = before.map(|before| before.connections.clone());
        let sessions = before.map(|before| before.sessions.clone());
        Arc::new(Self {
            sources,
            publishers,
            gates,
            connections: connections.unwrap_or_else(|| Slots::of_connections(limits.max_connections)),
            max_connections: limits.max_connections,
            timeouts: limits.timeouts,
            access_log,
            metrics: metrics.clone(),
            sessions: sessions.unwrap_or_default(),
        })
    }

    /// Puts it in force: its limit of connections holds.
    pub(crate) fn take_over(&self) {
        self.connections.set_most(self.max_connections);
    }

    /// Returns the number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.connections.taken()
    }

    /// Reports all sessions, by their numbers.
    pub(crate) fn reports(&self) -> Vec<SessionReport> {
        self.sessions.reports()
    }

    /// Shows each session of a viewer to `seen`: its number and its stream.
    pub(crate) fn each_viewer(&self, seen: &mut dyn FnMut(u64, &str)) {
        self.sessions.each_viewer(seen);
    }

    /// Ends the session of an id. Returns whether there was one.
    pub(crate) fn kick(&self, id: &str) -> bool {
        self.sessions.kick(id)
    }

    /// Counts a refused connection, which is closed at once.
    fn refuse_connection(&self, peer: SocketAddr) {
        self.metrics.refused.inc();
        if self.access_log {
            tracing::info!(target: millpond_logging::ACCESS, %peer, why = self.connections.why(), "RTMP connection refused");
        }
    }
}
