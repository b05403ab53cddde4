//! A histogram of durations made of atomics only: observing takes no lock.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// Upper bounds in seconds for whole responses, from a cached playlist to a long file.
pub(super) const DURATION_SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0];

/// Upper bounds in seconds for first bytes: below a millisecond from memory, seconds from far storage.
pub(super) const FIRST_BYTE_SECONDS: &[f64] =
    &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Durations by size. Clones share their counts.
///
/// A scrape that runs beside observations may see one in the sum and not yet in its bucket; the total count is
/// taken from the buckets, so that the buckets always add up.
#[derive(Clone)]
pub(crate) struct Histogram(Arc<Inner>);

struct Inner {
    bounds: &'static [f64],
    /// One a bound, and one for what is above the last.
    counts: Box<[AtomicU64]>,
    sum_nanos: AtomicU64,
}

impl Histogram {
    /// With these upper bounds in seconds, rising.
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new(Inner { bounds, counts, sum_nanos: AtomicU64::new(0) }))
    }

    /// Counts one duration.
    pub(crate) fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = self.0.bounds.partition_point(|bound| *bound < seconds);
        self.0.counts[bucket].fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.0.sum_nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram").field("counts", &self.0.counts).finish_non_exhaustive()
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let bounds = self.0.bounds.iter().copied().chain([f64::INFINITY]);
        let counts = self.0.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        let total = buckets.iter().map(|(_, count)| count).sum();
        let sum = Duration::from_nanos(self.0.sum_nanos.load(Ordering::Relaxed)).as_secs_f64();
        encoder.encode_histogram::<NoLabelSet>(sum, total, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn buckets_are_inclusive_and_cumulative() {
        let histogram = Histogram::new(&[0.001, 0.1]);
        for millis in [0, 1, 2, 100, 101, 5_000] {
            histogram.observe(Duration::from_millis(millis));
        }
        let mut registry = Registry::default();
        registry.register("h", "Help", histogram);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "h_sum 5.204",
            "h_count 6",
            "h_bucket{le=\"0.001\"} 2",
            "h_bucket{le=\"0.1\"} 4",
            "h_bucket{le=\"+Inf\"} 6",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}
