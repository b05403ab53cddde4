//! RTMP: streams that publishers push. The protocol is that of [`millpond_rtmp`]; this module has its sockets.

mod connection;
mod listen;
mod metrics;
mod publication;
mod settings;

pub(crate) use listen::{Listeners, accept};
pub(crate) use metrics::RtmpMetrics;
pub use settings::RtmpSettings;

use crate::{
    limits::{ConnectionTimeouts, LimitSettings},
    live::{Publishers, Sources},
};
use prometheus_client::metrics::counter::Counter;
use std::{net::SocketAddr, sync::Arc};
use tokio::sync::Semaphore;

/// The RTMP front end of a server.
pub(crate) struct Rtmp {
    sources: Arc<Sources>,
    /// Admission of publishers; `None` where no stream is pushed.
    publishers: Option<Arc<Publishers>>,
    connections: Arc<Semaphore>,
    timeouts: ConnectionTimeouts,
    access_log: bool,
    /// Number of connections refused because too many were open.
    refused: Counter,
}

impl Rtmp {
    pub(crate) fn new(
        sources: Arc<Sources>,
        publishers: Option<Arc<Publishers>>,
        limits: &LimitSettings,
        access_log: bool,
        metrics: &RtmpMetrics,
    ) -> Arc<Self> {
        Arc::new(Self {
            sources,
            publishers,
            connections: Arc::new(Semaphore::new(limits.max_connections)),
            timeouts: limits.timeouts,
            access_log,
            refused: metrics.refused.clone(),
        })
    }

    /// Counts a refused connection, which is closed at once.
    fn refuse_connection(&self, peer: SocketAddr) {
        self.refused.inc();
        if self.access_log {
            tracing::info!(%peer, why = "max-connections is reached", "RTMP connection refused");
        }
    }
}
