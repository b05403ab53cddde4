//! Metrics of viewing. Paths of titles are no labels.

use super::{ViewerProtocol, tally::Sampled};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};
use std::sync::atomic::AtomicU64;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProtocolLabels {
    protocol: &'static str,
}

/// The metrics of viewing.
#[derive(Clone, Debug)]
pub(crate) struct StatisticsMetrics {
    viewers: Family<ProtocolLabels, Gauge>,
    watched: Family<ProtocolLabels, Counter<f64, AtomicU64>>,
    starts: Family<ProtocolLabels, Counter>,
}

impl StatisticsMetrics {
    /// Registers the metrics.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self { viewers: Family::default(), watched: Family::default(), starts: Family::default() };
        registry.register("viewers", "Viewers of all titles, by protocol", metrics.viewers.clone());
        let help = "Time of all viewers together, by protocol";
        registry.register_with_unit("viewer", help, Unit::Seconds, metrics.watched.clone());
        registry.register("viewer_starts", "Viewers that have begun, by protocol", metrics.starts.clone());
        metrics.count(&Sampled::default());
        metrics
    }

    /// Counts a sample.
    pub(super) fn count(&self, sampled: &Sampled) {
        for protocol in ViewerProtocol::ALL {
            let (labels, at) = (ProtocolLabels { protocol: protocol.name() }, protocol as usize);
            self.viewers.get_or_create(&labels).set(i64::try_from(sampled.viewers[at]).unwrap_or(i64::MAX));
            self.watched.get_or_create(&labels).inc_by(sampled.watched[at].as_secs_f64());
            self.starts.get_or_create(&labels).inc_by(sampled.starts[at]);
        }
    }
}
