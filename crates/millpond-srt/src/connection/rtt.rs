//! Round-trip times.

use std::time::Duration;

/// The round-trip time before the first measurement, and its deviation (draft-sharabayko-srt-01 4.10).
const FIRST: Duration = Duration::from_millis(100);
/// Longest time that counts.
const MOST: Duration = Duration::from_secs(10);

/// The smoothed round-trip time, and its mean deviation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rtt {
    pub(super) smoothed: Duration,
    pub(super) deviation: Duration,
    is_measured: bool,
}

impl Default for Rtt {
    fn default() -> Self {
        Self { smoothed: FIRST, deviation: FIRST / 2, is_measured: false }
    }
}

impl Rtt {
    /// Takes a measurement.
    pub(super) fn take(&mut self, sample: Duration) {
        let sample = sample.min(MOST);
        if !self.is_measured {
            *self = Self { smoothed: sample, deviation: sample / 2, is_measured: true };
            return;
        }
        self.deviation = (3 * self.deviation + self.smoothed.abs_diff(sample)) / 4;
        self.smoothed = (7 * self.smoothed + sample) / 8;
    }

    /// Takes what the peer has measured, where nothing was measured here.
    pub(super) fn hear(&mut self, smoothed: Duration, deviation: Duration) {
        if !self.is_measured {
            (self.smoothed, self.deviation) = (smoothed.min(MOST), deviation.min(MOST));
        }
    }

    /// Time within which an answer is to be expected.
    pub(super) fn patience(&self) -> Duration {
        self.smoothed + 4 * self.deviation
    }
}
