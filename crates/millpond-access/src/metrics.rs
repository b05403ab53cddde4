//! Metrics of access.

use super::{AccessRefusal, Limited};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    why: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabels {
    limit: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
}

/// Results of questions to `auth-url`.
const RESULTS: [&str; 3] = ["allowed", "denied", "failed"];

/// Counters of refused requests.
#[derive(Clone, Debug)]
pub struct AccessMetrics {
    refusals: Family<Labels, Counter>,
    /// Key sets that could not be read.
    pub(super) key_failures: Counter,
    limited: Family<LimitLabels, Counter>,
    asked: Family<ResultLabels, Counter>,
}

impl AccessMetrics {
    /// Registers the metrics.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            refusals: Family::default(),
            key_failures: Counter::default(),
            limited: Family::default(),
            asked: Family::default(),
        };
        for limit in Limited::LABELS {
            metrics.limited.get_or_create_owned(&LimitLabels { limit });
        }
        for result in RESULTS {
            metrics.asked.get_or_create_owned(&ResultLabels { result });
        }
        for why in AccessRefusal::LABELS {
            metrics.refusals.get_or_create_owned(&Labels { why });
        }
        registry.register("access_refusals", "Refused requests to play, by reason", metrics.refusals.clone());
        let help = "Key files and key replies of access-tokens that could not be read";
        registry.register("access_key_failures", help, metrics.key_failures.clone());
        let help = "Requests, connections and sessions refused because a client or token had reached a limit";
        registry.register("access_limited", help, metrics.limited.clone());
        registry.register("access_asked", "Requests to auth-url, by result", metrics.asked.clone());
        metrics
    }

    /// Counts a client or token that has reached a limit.
    pub(super) fn limited(&self, limited: Limited) {
        self.limited.get_or_create_owned(&LimitLabels { limit: limited.label() }).inc();
    }

    /// Counts a question to `auth-url`.
    pub(super) fn asked(&self, result: &'static str) {
        self.asked.get_or_create_owned(&ResultLabels { result }).inc();
    }

    /// Counts a refusal.
    pub(super) fn refused(&self, why: &AccessRefusal) {
        self.refusals.get_or_create_owned(&Labels { why: why.label() }).inc();
    }
}
