//! Metrics of reloads.

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};
use std::time::{SystemTime, UNIX_EPOCH};

/// Label of the outcome.
#[derive(Clone, Debug, PartialEq, Eq, Hash, prometheus_client::encoding::EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

/// The metrics of reloads.
#[derive(Clone, Debug)]
pub(crate) struct ReloadMetrics {
    succeeded: Counter,
    failed: Counter,
    is_successful: Gauge,
    last_success: Gauge,
    waiting: Gauge,
}

impl ReloadMetrics {
    /// Registers the metrics. The start counts as a success.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let reloads = Family::<OutcomeLabels, Counter>::default();
        let of = |outcome| reloads.get_or_create_owned(&OutcomeLabels { outcome });
        let metrics = Self {
            succeeded: of("succeeded"),
            failed: of("failed"),
            is_successful: Gauge::default(),
            last_success: Gauge::default(),
            waiting: Gauge::default(),
        };
        registry.register("config_reloads", "Reloads of the configuration", reloads);
        let help = "Whether the last reload of the configuration succeeded";
        registry.register("config_last_reload_successful", help, metrics.is_successful.clone());
        let help = "Unix time at which the configuration in force was loaded";
        let name = "config_last_reload_success_timestamp";
        registry.register_with_unit(name, help, Unit::Seconds, metrics.last_success.clone());
        let help = "Settings whose new values wait for a restart";
        registry.register("config_settings_waiting_for_restart", help, metrics.waiting.clone());
        metrics.is_successful.set(1);
        metrics.now();
        metrics
    }

    fn now(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        self.last_success.set(i64::try_from(now).unwrap_or(i64::MAX));
    }

    /// Counts a successful reload, and sets the number of settings that wait for a restart.
    pub(super) fn succeeded(&self, waiting: usize) {
        self.succeeded.inc();
        self.is_successful.set(1);
        self.waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
        self.now();
    }

    /// Counts a reload of the file that failed.
    pub(super) fn failed(&self) {
        self.failed.inc();
        self.is_successful.set(0);
    }

    /// Counts a change that was refused. The file stays as it is in force.
    pub(super) fn refused(&self) {
        self.failed.inc();
    }
}
