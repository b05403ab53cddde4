//! The load that this node publishes.

use millpond_cluster::{Bitrate, Load};
use std::{fmt, time::Duration};

/// Time constant of the average.
const AVERAGE: Duration = Duration::from_secs(4);
/// Least time between two readings.
const STEP: Duration = Duration::from_millis(500);

/// Reads the bytes that were sent since the start, and the number of sessions and responses under way.
type Read = Box<dyn Fn() -> (u64, u32) + Send + Sync>;

/// Measures the load of this node: an average over some seconds.
pub(crate) struct LoadMeter {
    read: Read,
    last: Option<(u64, Duration)>,
    average: f64,
}

impl fmt::Debug for LoadMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadMeter").field("average", &self.average).finish_non_exhaustive()
    }
}

impl LoadMeter {
    /// Measures by a function that reads the bytes sent since the start, and the number of sessions.
    pub(crate) fn new(read: impl Fn() -> (u64, u32) + Send + Sync + 'static) -> Self {
        Self { read: Box::new(read), last: None, average: 0.0 }
    }

    /// The load at a time.
    pub(super) fn measure(&mut self, now: Duration) -> Load {
        let (bytes, sessions) = (self.read)();
        match self.last {
            Some((_, at)) if now.saturating_sub(at) < STEP => {}
            Some((before, at)) => {
                let elapsed = now.saturating_sub(at).as_secs_f64();
                let rate = bytes.saturating_sub(before) as f64 * 8.0 / elapsed;
                self.average += (rate - self.average) * (1.0 - (-elapsed / AVERAGE.as_secs_f64()).exp());
                self.last = Some((bytes, now));
            }
            None => self.last = Some((bytes, now)),
        }
        Load { rate: Bitrate::from_bps(self.average as u64), sessions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    };

    #[test]
    fn the_average_follows_the_rate() {
        let sent = Arc::new(AtomicU64::new(0));
        let counter = sent.clone();
        let mut meter = LoadMeter::new(move || (counter.load(Ordering::Relaxed), 3));
        for second in 0..40 {
            meter.measure(Duration::from_secs(second));
            sent.fetch_add(125_000, Ordering::Relaxed);
        }
        let load = meter.measure(Duration::from_secs(40));
        assert!((990_000..=1_000_000).contains(&load.rate.bps()) && load.sessions == 3, "{load:?}");
        assert_eq!(meter.measure(Duration::from_millis(40_100)), load);
    }
}
