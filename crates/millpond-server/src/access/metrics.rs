//! Metrics of access.

use super::Refusal;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    why: &'static str,
}

/// Counters of refused requests.
#[derive(Clone, Debug)]
pub(crate) struct AccessMetrics {
    refusals: Family<Labels, Counter>,
    /// Key sets that could not be read.
    pub(super) key_failures: Counter,
}

impl AccessMetrics {
    /// Registers the metrics.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self { refusals: Family::default(), key_failures: Counter::default() };
        for why in Refusal::LABELS {
            metrics.refusals.get_or_create_owned(&Labels { why });
        }
        registry.register("access_refusals", "Requests to play that were refused, by reason", metrics.refusals.clone());
        let help = "Files and replies with keys of tokens that could not be read";
        registry.register("access_key_failures", help, metrics.key_failures.clone());
        metrics
    }

    /// Counts a refusal.
    pub(super) fn refused(&self, why: &Refusal) {
        self.refusals.get_or_create_owned(&Labels { why: why.label() }).inc();
    }
}
