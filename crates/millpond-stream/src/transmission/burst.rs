//! How much media of a live stream may leave at once.

use std::time::{Duration, Instant};

/// Media that leaves at once, whatever arrives.
const AT_ONCE: Duration = Duration::from_millis(250);
/// Longest time between two frames that counts: due times may jump.
const LONGEST: Duration = Duration::from_secs(1);

/// Media that has left ahead of its pace, as a bucket that leaks.
///
/// A source that stood still, or a process that had no turn, brings seconds of frames at once. The buffers of receivers
/// of UDP do not survive all of them in one moment.
#[derive(Debug, Default)]
pub(super) struct Burst {
    ahead: Duration,
    /// Time of the last frame.
    last: Option<Instant>,
}

impl Burst {
    /// Media ahead of `speed` times its pace.
    fn ahead(&self, speed: f64, now: Instant) -> Duration {
        let passed = self.last.map_or(Duration::ZERO, |last| now.saturating_duration_since(last));
        self.ahead.saturating_sub(passed.mul_f64(speed))
    }

    /// Returns the time at which the next frame may leave; `None` where that is now.
    pub(super) fn until(&self, speed: f64, now: Instant) -> Option<Instant> {
        let over = self.ahead(speed, now).checked_sub(AT_ONCE).filter(|over| !over.is_zero())?;
        Some(now + over.div_f64(speed))
    }

    /// Takes note of a frame that leaves, which is due `step` after the last one.
    pub(super) fn take(&mut self, step: Duration, speed: f64, now: Instant) {
        let passed = self.last.map_or(LONGEST, |last| now.saturating_duration_since(last)).mul_f64(speed);
        let step = if step > LONGEST { Duration::ZERO } else { step };
        self.ahead = (self.ahead + step).saturating_sub(passed);
        self.last = Some(now);
    }
}
