//! Metrics of hooks. The label `hook` is the host of an endpoint, or the file name of a program; both are of the configuration.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HookLabels {
    hook: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    hook: String,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    hook: String,
    reason: &'static str,
}

/// Result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    Delivered,
    Failed,
}

/// Why an event is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// More than the highest number of events waited.
    Overflow,
    /// Its attempts failed for longer than `hook-retry`.
    Old,
    /// The receiver refuses it, or the program failed.
    Refused,
}

impl Loss {
    const ALL: [Self; 3] = [Self::Overflow, Self::Old, Self::Refused];

    const fn label(self) -> &'static str {
        match self {
            Self::Overflow => "overflow",
            Self::Old => "old",
            Self::Refused => "refused",
        }
    }
}

/// The metrics of all hooks.
#[derive(Clone, Debug)]
pub(crate) struct HookMetrics {
    attempts: Family<ResultLabels, Counter>,
    dropped: Family<ReasonLabels, Counter>,
    waiting: Family<HookLabels, Gauge>,
}

/// The metrics of one hook. Hooks with one label are counted together.
#[derive(Debug)]
pub(crate) struct MetricsOfHook {
    delivered: Counter,
    failed: Counter,
    lost: [Counter; Loss::ALL.len()],
    waiting: Gauge,
    /// Events that wait for this hook, as told last.
    told: i64,
}

impl HookMetrics {
    /// Registers the metrics.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let attempts = Family::<ResultLabels, Counter>::default();
        registry.register("hook_attempts", "Attempts to deliver an event to a hook, by result", attempts.clone());
        let dropped = Family::<ReasonLabels, Counter>::default();
        registry.register("hook_dropped_events", "Events that a hook did not get, by reason", dropped.clone());
        let waiting = Family::<HookLabels, Gauge>::default();
        registry.register("hook_waiting_events", "Events that wait for a hook", waiting.clone());
        Self { attempts, dropped, waiting }
    }

    /// Returns those of a hook.
    pub(crate) fn of(&self, hook: &str) -> MetricsOfHook {
        let attempts = |result| {
            let labels = ResultLabels { hook: hook.to_owned(), result };
            self.attempts.get_or_create_owned(&labels)
        };
        let lost = |loss: Loss| {
            self.dropped.get_or_create_owned(&ReasonLabels { hook: hook.to_owned(), reason: loss.label() })
        };
        MetricsOfHook {
            delivered: attempts("delivered"),
            failed: attempts("failed"),
            lost: Loss::ALL.map(lost),
            waiting: self.waiting.get_or_create_owned(&HookLabels { hook: hook.to_owned() }),
            told: 0,
        }
    }

    /// Removes the number of waiting events of a label without hooks. Its counters stay.
    pub(super) fn forget(&self, hook: &str) {
        self.waiting.remove(&HookLabels { hook: hook.to_owned() });
    }
}

impl MetricsOfHook {
    /// Counts an attempt.
    pub(super) fn attempt(&self, attempt: Attempt) {
        match attempt {
            Attempt::Delivered => self.delivered.inc(),
            Attempt::Failed => self.failed.inc(),
        };
    }

    /// Counts events that are given up.
    pub(super) fn lose(&self, loss: Loss, count: u64) {
        for (of, counter) in Loss::ALL.iter().zip(&self.lost) {
            if *of == loss {
                counter.inc_by(count);
            }
        }
    }

    /// Tells how many events wait.
    pub(super) fn waits(&mut self, count: u64) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.waiting.inc_by(count - self.told);
        self.told = count;
    }
}

impl Drop for MetricsOfHook {
    fn drop(&mut self) {
        self.waits(0);
    }
}
