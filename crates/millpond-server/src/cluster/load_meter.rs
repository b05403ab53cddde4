//! The load that this node publishes.

use millpond_cluster::{Bitrate, Load};
use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

/// Time constant of the average.
const AVERAGE: Duration = Duration::from_secs(4);
/// Least time between two readings.
const STEP: Duration = Duration::from_millis(500);

/// Counts since the start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    /// Bytes that were sent.
    pub(crate) sent: u64,
    /// Sessions and responses under way.
    pub(crate) sessions: u32,
    /// Bytes that the storage of each place sent.
    pub(crate) read: Vec<PlaceRead>,
}

/// Bytes that the storage of a place sent since the start.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlaceRead {
    /// Name of the place.
    pub(crate) place: Arc<str>,
    /// Names of the stores of its striping group.
    pub(crate) stores: BTreeSet<Arc<str>>,
    /// Bytes that it sent.
    pub(crate) bytes: u64,
}

/// Reads the counts.
type Read = Box<dyn Fn() -> Counted + Send + Sync>;

/// Measures the load of this node: an average over some seconds.
pub(crate) struct LoadMeter {
    read: Read,
    last: Option<(Counted, Duration)>,
    average: f64,
}

impl fmt::Debug for LoadMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadMeter").field("average", &self.average).finish_non_exhaustive()
    }
}

impl LoadMeter {
    /// Measures by a function that reads the counts.
    pub(crate) fn new(read: impl Fn() -> Counted + Send + Sync + 'static) -> Self {
        Self { read: Box::new(read), last: None, average: 0.0 }
    }

    /// The counts that were read last, with their time.
    pub(super) fn counted(&self) -> Option<&(Counted, Duration)> {
        self.last.as_ref()
    }

    /// The load at a time.
    pub(super) fn measure(&mut self, now: Duration) -> Load {
        let counted = (self.read)();
        let sessions = counted.sessions;
        match &self.last {
            Some((_, at)) if now.saturating_sub(*at) < STEP => {}
            Some((before, at)) => {
                let elapsed = now.saturating_sub(*at).as_secs_f64();
                let weight = 1.0 - (-elapsed / AVERAGE.as_secs_f64()).exp();
                let rate = |old: u64, new: u64| new.saturating_sub(old) as f64 * 8.0 / elapsed;
                self.average += (rate(before.sent, counted.sent) - self.average) * weight;
                self.last = Some((counted, now));
            }
            None => self.last = Some((counted, now)),
        }
        Load { rate: Bitrate::from_bps(self.average as u64), sessions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn the_average_follows_the_rate() {
        let sent = Arc::new(AtomicU64::new(0));
        let counter = sent.clone();
        let mut meter = LoadMeter::new(move || {
            let sent = counter.load(Ordering::Relaxed);
            Counted { sent, sessions: 3, read: Vec::new() }
        });
        for second in 0..40 {
            meter.measure(Duration::from_secs(second));
            sent.fetch_add(125_000, Ordering::Relaxed);
        }
        let load = meter.measure(Duration::from_secs(40));
        assert!((990_000..=1_000_000).contains(&load.rate.bps()) && load.sessions == 3, "{load:?}");
        assert_eq!(meter.measure(Duration::from_millis(40_100)), load);
        let (counted, at) = meter.counted().unwrap();
        assert_eq!((counted.sent, *at), (5_000_000, Duration::from_secs(40)));
    }
}
