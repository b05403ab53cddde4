//! Jobs of heavy work: index building, presentations, manifests.

use super::{
    Held,
    histogram::{BUILD_SECONDS, Histogram},
};
use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::{Registry, Unit},
};
use std::time::Duration;

/// Counted by the pool for heavy work. Clones share their counts.
#[derive(Clone, Debug)]
pub(crate) struct WorkCounters {
    running: Gauge,
    waiting: Gauge,
    refused: Counter,
    cancelled: Counter,
    seconds: Histogram,
}

impl Default for WorkCounters {
    fn default() -> Self {
        Self {
            running: Gauge::default(),
            waiting: Gauge::default(),
            refused: Counter::default(),
            cancelled: Counter::default(),
            seconds: Histogram::new(BUILD_SECONDS),
        }
    }
}

impl WorkCounters {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("work_jobs_running", "Jobs of heavy work under way", self.running.clone());
        registry.register("work_jobs_waiting", "Jobs of heavy work that wait for a thread", self.waiting.clone());
        registry.register(
            "work_jobs_refused",
            "Jobs of heavy work refused for want of memory or of room in the queue",
            self.refused.clone(),
        );
        registry.register(
            "work_jobs_cancelled",
            "Jobs of heavy work cancelled because nobody waited for them any more",
            self.cancelled.clone(),
        );
        registry.register_with_unit(
            "work_job_duration",
            "Time that jobs of heavy work ran",
            Unit::Seconds,
            self.seconds.clone(),
        );
    }

    /// Counts a job as running until the guard is dropped.
    pub(crate) fn running(&self) -> Held {
        Held::new(&self.running)
    }

    /// Counts a job that waits from now on.
    pub(crate) fn joined_queue(&self) {
        self.waiting.inc();
    }

    /// Counts a job that waits no longer.
    pub(crate) fn left_queue(&self) {
        self.waiting.dec();
    }

    /// Counts a job that was not taken.
    pub(crate) fn refused(&self) {
        self.refused.inc();
    }

    /// Counts a job that nobody waits for any more.
    pub(crate) fn cancelled(&self) {
        self.cancelled.inc();
    }

    /// Counts a job that ended, and the time that it ran.
    pub(crate) fn took(&self, took: Duration) {
        self.seconds.observe(took);
    }
}
