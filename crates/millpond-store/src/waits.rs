//! Counts of readers' waits and of look-ups by length. Only atomics, so that counting takes no lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets of waits in seconds, rising. One more bucket counts longer waits.
pub const BOUNDS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// The same of look-ups.
pub const LOOKUP_BOUNDS: &[f64] = &[1e-7, 2.5e-7, 5e-7, 1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 1e-3, 1e-2];

/// Counts of durations.
#[derive(Debug)]
pub(crate) struct Waits {
    bounds: &'static [f64],
    counts: Box<[AtomicU64]>,
    nanos: AtomicU64,
}

/// Counts of durations at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitCounts {
    /// Counts of each of [`BOUNDS`] or [`LOOKUP_BOUNDS`], and of longer ones.
    pub counts: Vec<u64>,
    /// Sum of all.
    pub total: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Self::of(BOUNDS)
    }
}

impl Waits {
    pub(crate) fn of(bounds: &'static [f64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::default()).collect();
        Self { bounds, counts, nanos: AtomicU64::default() }
    }

    pub(crate) fn add(&self, wait: Duration) {
        let seconds = wait.as_secs_f64();
        self.counts[self.bounds.partition_point(|bound| *bound < seconds)].fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> WaitCounts {
        WaitCounts {
            counts: self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect(),
            total: Duration::from_nanos(self.nanos.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_counts_in_the_first_bucket_that_holds_it() {
        let waits = Waits::default();
        for millis in [0, 1, 2, 60_000] {
            waits.add(Duration::from_millis(millis));
        }
        let WaitCounts { counts, total } = waits.snapshot();
        assert_eq!((counts[0], counts[1], counts[2], counts[BOUNDS.len()]), (1, 1, 1, 1));
        assert_eq!(total, Duration::from_millis(60_003));
    }
}
