//! Metrics of RTMP.

use prometheus_client::{metrics::counter::Counter, registry::Registry};

/// The metrics of RTMP.
#[derive(Debug)]
pub(crate) struct RtmpMetrics {
    /// Connections that were refused.
    pub(crate) refused: Counter,
}

impl RtmpMetrics {
    /// Registers the metrics.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let refused = Counter::default();
        let help = "RTMP connections refused because too many were open";
        registry.register("rtmp_connections_refused", help, refused.clone());
        Self { refused }
    }
}
