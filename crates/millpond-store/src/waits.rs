//! Counts of readers' waits by length. Only atomics, so that counting takes no lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets in seconds, rising. One more bucket counts longer waits.
pub const BOUNDS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Counts of waits.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    counts: [AtomicU64; BOUNDS.len() + 1],
    nanos: AtomicU64,
}

/// Counts of waits at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitCounts {
    /// Counts of each of [`BOUNDS`], and of longer waits.
    pub counts: Vec<u64>,
    /// Sum of all waits.
    pub total: Duration,
}

impl Waits {
    pub(crate) fn add(&self, wait: Duration) {
        let seconds = wait.as_secs_f64();
        self.counts[BOUNDS.partition_point(|bound| *bound < seconds)].fetch_add(1, Ordering::Relaxed);
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
