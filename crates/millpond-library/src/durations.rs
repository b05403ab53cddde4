//! Counts of durations, made of atomics: counting takes no lock.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Upper bounds of the buckets of [`DurationCounts`], in seconds, rising. One more bucket holds longer durations.
pub const DURATION_BOUNDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Durations by length, up to now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DurationCounts {
    /// Number of durations in each bucket of [`DURATION_BOUNDS`], and in the one above the last.
    pub counts: [u64; DURATION_BOUNDS.len() + 1],
    /// Sum of all durations.
    pub total: Duration,
}

/// Counts durations.
#[derive(Debug, Default)]
pub(crate) struct Durations {
    counts: [AtomicU64; DURATION_BOUNDS.len() + 1],
    nanos: AtomicU64,
}

impl Durations {
    pub(crate) fn add(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = DURATION_BOUNDS.partition_point(|bound| *bound < seconds);
        if let Some(count) = self.counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.nanos.fetch_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> DurationCounts {
        DurationCounts {
            counts: self.counts.each_ref().map(|count| count.load(Ordering::Relaxed)),
            total: Duration::from_nanos(self.nanos.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_part_of_its_bucket() {
        let durations = Durations::default();
        for millis in [0, 1, 2, 60_000] {
            durations.add(Duration::from_millis(millis));
        }
        let DurationCounts { counts, total } = durations.snapshot();
        assert_eq!((counts[0], counts[1], counts[DURATION_BOUNDS.len()]), (2, 1, 1));
        assert_eq!((counts.iter().sum::<u64>(), total), (4, Duration::from_millis(60_003)));
    }
}
