//! The clock of a schedule: wall time, without its small steps.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

use std::time::Duration;

/// Difference to the wall clock from which the clock jumps. It makes up for smaller ones slowly.
const JUMP: Duration = Duration::from_secs(2);
/// Part of the elapsed time by which the clock gains or loses.
const SLEW: u32 = 10;

/// Follows the wall clock. Between jumps it never steps.
#[derive(Debug, Default)]
pub(super) struct SteadyClock {
    /// Time since the Unix epoch, and the time of the machine's steady clock then.
    last: Option<(Duration, Duration)>,
}

impl SteadyClock {
    /// Returns the time since the Unix epoch, and whether the clock has jumped. `wall` is the time of the wall clock, and `steady` that of a
    /// clock which never steps.
    pub(super) fn tick(&mut self, wall: Duration, steady: Duration) -> (Duration, bool) {
        let Some((last, then)) = self.last else {
            self.last = Some((wall, steady));
            return (wall, false);
        };
        let elapsed = steady.saturating_sub(then);
        let (expected, most) = (last + elapsed, elapsed / SLEW);
        let has_jumped = expected.abs_diff(wall) >= JUMP;
        let now = if has_jumped { wall } else { wall.clamp(expected.saturating_sub(most), expected + most) };
        self.last = Some((now, steady));
        (now, has_jumped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn small_steps_are_made_up_for_and_great_ones_are_jumps() {
        let mut clock = SteadyClock::default();
        assert_eq!(clock.tick(ms(1_000_000), ms(0)), (ms(1_000_000), false));
        assert_eq!(clock.tick(ms(1_000_100), ms(100)), (ms(1_000_100), false));
        // The wall clock is set back by a second: time goes on, a little slower.
        let mut wall = 999_200;
        for steady in (200..).step_by(100).take(100) {
            let before = clock.last.unwrap().0;
            let (now, has_jumped) = clock.tick(ms(wall), ms(steady));
            assert!(!has_jumped && now - before >= ms(90) && now - before <= ms(110));
            wall += 100;
        }
        wall -= 100;
        assert_eq!(clock.last.unwrap().0, ms(wall), "it has caught up");
        let (now, has_jumped) = clock.tick(ms(wall + 3_600_000), ms(10_200));
        assert_eq!((now, has_jumped), (ms(wall + 3_600_000), true));
        assert_eq!(clock.tick(ms(wall), ms(10_300)), (ms(wall), true));
    }
}
