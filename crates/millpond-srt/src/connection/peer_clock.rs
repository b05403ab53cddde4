//! The times of the peer's packets on our clock (draft-sharabayko-srt-01 4.5).

use std::time::Duration;

/// Samples of which a drift is the mean.
const SAMPLES: u32 = 1000;
/// Largest correction at a time: a clock that jumps is followed in steps.
const MOST: i64 = 100_000;

/// Turns the timestamps of packets into times of delivery.
#[derive(Debug)]
pub(super) struct PeerClock {
    /// Time of the peer's timestamp 0, in microseconds.
    base: i64,
    /// The last timestamp, without its wrap.
    last: i64,
    /// Sum of the samples of the present round, and their number.
    sum: i64,
    samples: u32,
}

impl PeerClock {
    /// Begins with a packet's timestamp and the time of its arrival.
    pub(super) fn new(timestamp: u32, arrived: Duration) -> Self {
        let last = i64::from(timestamp);
        Self { base: signed(arrived) - last, last, sum: 0, samples: 0 }
    }

    /// Returns the time of a timestamp. Timestamps go on after 2^32.
    pub(super) fn time(&mut self, timestamp: u32) -> Duration {
        let unwrapped = self.unwrap(timestamp);
        self.last = self.last.max(unwrapped);
        unsigned(self.base + unwrapped)
    }

    fn unwrap(&self, timestamp: u32) -> i64 {
        let step = timestamp.wrapping_sub(self.last as u32).cast_signed();
        self.last + i64::from(step)
    }

    /// Takes the time at which a packet that was sent at once has arrived. `late` is the part of it by which the network took longer
    /// than at the beginning. The mean of many samples is the drift of the peer's clock.
    pub(super) fn sample(&mut self, timestamp: u32, arrived: Duration, late: i64) {
        let drift = signed(arrived) - (self.base + self.unwrap(timestamp)) - late;
        self.sum += drift.clamp(-MOST, MOST);
        self.samples += 1;
        if self.samples == SAMPLES {
            self.base += self.sum / i64::from(SAMPLES);
            (self.sum, self.samples) = (0, 0);
        }
    }
}

fn signed(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 2)
}

fn unsigned(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_go_on_after_the_last_one() {
        let mut clock = PeerClock::new(u32::MAX - 999_999, Duration::from_secs(10));
        assert_eq!(clock.time(u32::MAX), Duration::from_micros(10_999_999));
        assert_eq!(clock.time(1_000_000), Duration::from_secs(12));
        assert_eq!(clock.time(u32::MAX), Duration::from_micros(10_999_999), "a packet that was sent again");
        assert_eq!(clock.time(2_000_000), Duration::from_secs(13));
    }

    #[test]
    fn drift_is_followed() {
        let mut clock = PeerClock::new(0, Duration::from_secs(1));
        for step in 0..3 * SAMPLES {
            // The peer's clock loses 1 ms in ten seconds.
            let timestamp = step * 10_000;
            let arrived = Duration::from_secs(1) + Duration::from_micros(u64::from(timestamp) * 10_001 / 10_000);
            clock.sample(timestamp, arrived, 0);
        }
        let time = clock.time(30_000_000).as_micros();
        assert!((31_002_000..31_003_500).contains(&time), "{time}");
    }
}
