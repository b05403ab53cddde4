use serde::Serialize;
use std::time::Duration;

/// Width of a class.
const WIDTH: Duration = Duration::from_micros(10);

/// Classes, up to 20 ms. Later packets count in the last one.
const CLASSES: usize = 2000;

/// How late packets were delivered behind the times that were decided.
#[derive(Debug, Clone)]
pub struct Lateness {
    classes: Vec<u64>,
    count: u64,
    greatest: Duration,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { classes: vec![0; CLASSES], count: 0, greatest: Duration::ZERO }
    }
}

/// Quantiles of the lateness, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LatenessReport {
    /// The median.
    pub p50: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The greatest.
    pub max: u64,
}

impl Lateness {
    pub(crate) fn add(&mut self, late: Duration) {
        let class = (late.as_nanos() / WIDTH.as_nanos()).min(CLASSES as u128 - 1) as usize;
        self.classes[class] += 1;
        self.count += 1;
        self.greatest = self.greatest.max(late);
    }

    /// The quantiles so far. A quantile is the upper end of its class.
    pub fn report(&self) -> LatenessReport {
        LatenessReport { p50: self.quantile(50), p99: self.quantile(99), max: self.greatest.as_micros() as u64 }
    }

    fn quantile(&self, percent: u64) -> u64 {
        let mut left = (self.count * percent).div_ceil(100);
        for (class, count) in self.classes.iter().enumerate() {
            if left > 0 && *count >= left {
                return (class as u64 + 1) * WIDTH.as_micros() as u64;
            }
            left -= count;
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_upper_ends_of_classes() {
        let mut lateness = Lateness::default();
        (0..100).for_each(|number| lateness.add(Duration::from_micros(number * 10)));
        lateness.add(Duration::from_secs(1));
        assert_eq!(Lateness::default().report(), LatenessReport { p50: 0, p99: 0, max: 0 });
        assert_eq!(lateness.report(), LatenessReport { p50: 510, p99: 1000, max: 1_000_000 });
    }
}
