//! Metrics of RTSP, those of the stream engine included.

use millpond_stream::{CounterCollector, Counters, LiveCollector};
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use std::sync::Arc;

/// The metrics of RTSP.
#[derive(Debug)]
pub(crate) struct RtspMetrics {
    /// Counters of the stream engine.
    pub(crate) streams: Arc<Counters>,
    /// Live streams of the engine.
    pub(crate) live: LiveCollector,
    /// RTSP connections that were refused.
    pub(crate) refused: Counter,
}

impl RtspMetrics {
    /// Registers the metrics.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let streams = Arc::new(Counters::default());
        registry.register_collector(Box::new(CounterCollector(streams.clone())));
        let live = LiveCollector::default();
        registry.register_collector(Box::new(live.clone()));
        let refused = Counter::default();
        let help = "RTSP connections refused because too many were open";
        registry.register("rtsp_connections_refused", help, refused.clone());
        Self { streams, live, refused }
    }
}
