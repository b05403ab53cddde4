//! The wall clock of a recording.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

use std::time::Duration;

/// Distance from the machine's clock above which that clock has been set. Frames that wait, such as those since the last key frame, are
/// nearer.
const STEP: Duration = Duration::from_secs(30);

/// Maps the arrival times of an epoch, which never step, to the clock of the machine, which may be set.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecordingClock {
    /// The machine's clock was set forward or back by this.
    forward: Duration,
    back: Duration,
}

impl RecordingClock {
    /// Returns the wall time of a frame. `arrival` is its time by the epoch, and `now` the clock of the machine.
    pub(super) fn wall(&mut self, arrival: Option<Duration>, now: Duration) -> Duration {
        let Some(arrival) = arrival else { return now };
        let wall = (arrival + self.forward).saturating_sub(self.back);
        if wall.abs_diff(now) <= STEP {
            return wall;
        }
        (self.forward, self.back) = (now.saturating_sub(arrival), arrival.saturating_sub(now));
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_is_followed() {
        let seconds = Duration::from_secs;
        let mut clock = RecordingClock::default();
        assert_eq!(clock.wall(Some(seconds(1000)), seconds(1008)), seconds(1000), "frames since the last key frame");
        assert_eq!(clock.wall(None, seconds(1009)), seconds(1009));
        // Back by an hour, and forward again.
        assert_eq!(clock.wall(Some(seconds(10_000)), seconds(6400)), seconds(6400));
        assert_eq!(clock.wall(Some(seconds(10_002)), seconds(6403)), seconds(6402));
        assert_eq!(clock.wall(Some(seconds(10_010)), seconds(10_010)), seconds(10_010));
        assert_eq!(clock.wall(Some(seconds(10_012)), seconds(10_012)), seconds(10_012));
    }
}
