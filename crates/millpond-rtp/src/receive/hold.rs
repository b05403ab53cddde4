//! Time that packets are held, so that repairs arrive in order and the output stays smooth.

use std::time::Duration;

/// Longest hold, and longest wait for a repair.
pub(super) const LONGEST: Duration = Duration::from_secs(2);
/// Time without such a long repair after which the hold shrinks.
const KEPT: Duration = Duration::from_secs(60);
/// Inverse of the rate at which the hold shrinks: 2 % of faster playback is invisible.
const SHRINK: u32 = 50;
/// Inverse of the rate at which the hold grows: the output has nine tenths of its rate meanwhile.
const GROW: u32 = 10;

/// The hold. It begins at once with the time of the first repair, for which the output stops anyway. From then on it
/// grows and shrinks slowly, so that no second of the output is half empty.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hold {
    /// Length at `changed`.
    length: Duration,
    /// Length that it grows to.
    target: Duration,
    changed: Duration,
    /// Time from which it shrinks.
    until: Duration,
}

impl Hold {
    /// Takes the time by which the first answer to a request will be late. It is the hold where there was none.
    pub(super) fn begin(&mut self, length: Duration, now: Duration) {
        self.need(length, now);
        if self.length.is_zero() {
            self.length = self.target;
        }
    }

    /// Takes the time by which a repair is later than the packets after it.
    pub(super) fn need(&mut self, length: Duration, now: Duration) {
        let length = length.min(LONGEST);
        self.at(now);
        // A need that is nearly as long keeps it, or it would go up and down.
        if length * 5 >= self.target * 4 {
            self.until = now + KEPT;
        }
        self.target = self.target.max(length);
    }

    /// Lets time pass; returns the hold.
    pub(super) fn at(&mut self, now: Duration) -> Duration {
        if now > self.until {
            self.target = self.target.saturating_sub((now - self.until) / SHRINK);
            self.until = now;
        }
        let grown = self.length + now.saturating_sub(self.changed) / GROW;
        (self.length, self.changed) = (grown.min(self.target), now.max(self.changed));
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn it_begins_at_once_then_grows_and_shrinks_slowly() {
        let mut hold = Hold::default();
        assert_eq!(hold.at(SECOND), Duration::ZERO);
        hold.begin(at(300), SECOND);
        assert_eq!(hold.at(SECOND), at(300));
        hold.need(at(500), SECOND);
        hold.begin(at(450), SECOND);
        assert_eq!((hold.at(SECOND), hold.at(2 * SECOND), hold.at(3 * SECOND)), (at(300), at(400), at(500)));
        hold.need(at(200), 4 * SECOND);
        assert_eq!(hold.at(61 * SECOND), at(500));
        assert_eq!(hold.at(66 * SECOND), at(400));
        hold.need(at(330), 66 * SECOND);
        assert_eq!(hold.at(126 * SECOND), at(400), "nearly as much is needed");
        assert_eq!(hold.at(200 * SECOND), Duration::ZERO);
        hold.begin(Duration::MAX, 200 * SECOND);
        assert_eq!(hold.at(200 * SECOND), LONGEST);
    }

    #[test]
    fn a_clock_that_jumps_changes_no_more_than_time_would() {
        let mut hold = Hold::default();
        hold.begin(at(300), 100 * SECOND);
        hold.need(at(400), 100 * SECOND);
        assert_eq!(hold.at(SECOND), at(300), "back");
        assert_eq!(hold.at(101 * SECOND), at(400));
        assert_eq!(hold.at(1_000_000 * SECOND), Duration::ZERO, "ahead");
    }
}
