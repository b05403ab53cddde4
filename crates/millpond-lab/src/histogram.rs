//! A log-linear histogram of durations with a fixed size.
//!
//! Values are microseconds. Below 128 µs every value has a bucket of its own; above, each power of two is cut
//! in 64 equal buckets, so a percentile is never more than 1/64 (1.6 %) above the value that was recorded.

use std::time::Duration;

/// Values below this have exact buckets.
const LINEAR: u64 = 128;
/// Buckets in each power of two above [`LINEAR`].
const PER_OCTAVE: u64 = 64;
/// log2 of [`LINEAR`].
const LINEAR_BITS: u32 = 7;
/// Values are kept below 2^36 µs (19 hours); longer ones count as that.
const TOP_BITS: u32 = 36;
/// All buckets.
const BUCKETS: usize = (LINEAR + (TOP_BITS - LINEAR_BITS) as u64 * PER_OCTAVE) as usize;

/// Counts of durations, in 16 KiB whatever is recorded.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Box<[u64]>,
    count: u64,
    sum: u128,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self { buckets: vec![0; BUCKETS].into_boxed_slice(), count: 0, sum: 0, max: 0 }
    }

    /// Counts one duration; what exceeds 2^36 µs is counted as the longest one kept.
    pub fn record(&mut self, value: Duration) {
        let micros = u64::try_from(value.as_micros()).unwrap_or(u64::MAX).min((1 << TOP_BITS) - 1);
        if let Some(bucket) = self.buckets.get_mut(bucket_of(micros)) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum += u128::from(micros);
        self.max = self.max.max(micros);
    }

    /// Adds all that another histogram has counted.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Returns how many durations were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest duration recorded, exactly; zero when empty.
    #[must_use]
    pub fn max(&self) -> Duration {
        Duration::from_micros(self.max)
    }

    /// The mean of all durations, from the exact sum; zero when empty.
    #[must_use]
    pub fn mean(&self) -> Duration {
        let mean = self.sum.checked_div(u128::from(self.count)).unwrap_or(0);
        Duration::from_micros(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The least bucket end that at least the fraction `quantile` (0 to 1) of the durations do not exceed,
    /// and never more than [`Histogram::max`]; zero when empty.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Duration {
        let rank = ((self.count as f64 * quantile.clamp(0.0, 1.0)).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, &count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_micros(bucket_end(index).min(self.max));
            }
        }
        self.max()
    }
}

impl Histogram {
    /// Points of the distribution, as milliseconds and the percentage that is not longer, up to 99: what is beyond
    /// would flatten all the rest of a picture. None where nothing was recorded.
    #[must_use]
    pub fn distribution(&self) -> Vec<(f64, f64)> {
        if self.count == 0 {
            return Vec::new();
        }
        let at = |percent: u32| {
            let time = self.quantile(f64::from(percent) / 100.0);
            (time.as_micros() as f64 / 1e3, f64::from(percent))
        };
        (0..=98).step_by(2).chain([99]).map(at).collect()
    }
}

impl Histogram {
    /// The buckets that hold anything, in order: the greatest value of each in milliseconds, and the number of its values.
    #[must_use]
    pub fn buckets(&self) -> Vec<(f64, u64)> {
        let filled = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(index, count)| (bucket_end(index) as f64 / 1e3, *count)).collect()
    }
}

/// The bucket that holds a value below 2^36.
fn bucket_of(micros: u64) -> usize {
    if micros < LINEAR {
        return micros as usize;
    }
    let octave = u64::from(micros.ilog2() - LINEAR_BITS);
    // The top seven bits of the value, of which the first is always set: 64 to 127.
    let top = micros >> (octave + 1);
    (LINEAR + octave * PER_OCTAVE + (top - PER_OCTAVE)) as usize
}

/// The greatest value that falls in a bucket.
fn bucket_end(index: usize) -> u64 {
    let index = index as u64;
    if index < LINEAR {
        return index;
    }
    let octave = (index - LINEAR) / PER_OCTAVE;
    let top = (index - LINEAR) % PER_OCTAVE + PER_OCTAVE;
    ((top + 1) << (octave + 1)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(value: u64) -> Duration {
        Duration::from_micros(value)
    }

    #[test]
    fn every_bucket_ends_where_the_next_begins() {
        for index in 0..BUCKETS {
            let end = bucket_end(index);
            assert_eq!(bucket_of(end), index, "the end {end} of bucket {index}");
            if index + 1 < BUCKETS {
                assert_eq!(bucket_of(end + 1), index + 1, "after the end {end} of bucket {index}");
            }
        }
        assert_eq!(bucket_end(BUCKETS - 1), (1 << TOP_BITS) - 1);
    }

    #[test]
    fn quantiles_are_within_one_bucket() {
        let mut histogram = Histogram::new();
        for value in 1..=100_000 {
            histogram.record(micros(value));
        }
        for (quantile, exact) in [(0.5, 50_000.0), (0.95, 95_000.0), (0.99, 99_000.0), (1.0, 100_000.0)] {
            let found = histogram.quantile(quantile).as_micros() as f64;
            assert!(found >= exact && found <= exact * (1.0 + 1.0 / 64.0), "{quantile}: {found}, not {exact}");
        }
        assert_eq!(histogram.count(), 100_000);
        assert_eq!(histogram.max(), micros(100_000));
        assert_eq!(histogram.mean(), micros(50_000));
    }

    #[test]
    fn small_values_are_exact() {
        let mut histogram = Histogram::new();
        for value in [0, 3, 3, 127] {
            histogram.record(micros(value));
        }
        assert_eq!(histogram.quantile(0.25), micros(0));
        assert_eq!(histogram.quantile(0.5), micros(3));
        assert_eq!(histogram.quantile(1.0), micros(127));
    }

    #[test]
    fn filled_buckets_are_listed() {
        let mut histogram = Histogram::new();
        assert!(histogram.buckets().is_empty());
        for value in [100, 66_000, 66_001, 100] {
            histogram.record(micros(value));
        }
        let [(small, 2), (large, 2)] = histogram.buckets()[..] else { panic!("{:?}", histogram.buckets()) };
        assert_eq!(small, 0.1);
        assert!((66.001..66.001 * (1.0 + 1.0 / 64.0)).contains(&large), "{large}");
    }

    #[test]
    fn empty_and_endless_values_are_harmless() {
        let mut histogram = Histogram::new();
        assert_eq!((histogram.quantile(0.99), histogram.mean()), (Duration::ZERO, Duration::ZERO));
        histogram.record(Duration::MAX);
        assert_eq!(histogram.quantile(0.5), micros((1 << TOP_BITS) - 1));
        assert_eq!(histogram.quantile(f64::NAN), histogram.max());
    }

    #[test]
    fn merging_equals_recording_together() {
        let (mut left, mut right, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
        for value in 0..5_000_u64 {
            let value = value * value;
            if value % 3 == 0 {
                left.record(micros(value))
            } else {
                right.record(micros(value))
            }
            both.record(micros(value));
        }
        left.merge(&right);
        assert_eq!(left.buckets, both.buckets);
        assert_eq!((left.count, left.sum, left.max), (both.count, both.sum, both.max));
    }
}
