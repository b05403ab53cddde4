//! Time that packets are held, so that repairs arrive in order and the output stays smooth.

use std::time::Duration;

/// Longest hold, and longest wait for a repair.
pub(super) const LONGEST: Duration = Duration::from_secs(2);
/// Time without such a long repair after which the hold shrinks.
const KEPT: Duration = Duration::from_secs(60);
/// Inverse of the rate at which the hold shrinks: 2 % of faster playback is invisible.
const SHRINK: u32 = 50;

/// The hold. It grows at once to the time that a repair takes, and shrinks slowly when repairs are faster or not needed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hold {
    length: Duration,
    /// Time from which it shrinks.
    until: Duration,
}

impl Hold {
    /// Takes the time by which a repair is later than the packets after it.
    pub(super) fn need(&mut self, length: Duration, now: Duration) {
        let length = length.min(LONGEST);
        self.shrink(now);
        // A need that is nearly as long keeps it, or it would go up and down.
        if length * 5 >= self.length * 4 {
            self.until = now + KEPT;
        }
        self.length = self.length.max(length);
    }

    /// Lets time pass; returns the hold.
    pub(super) fn shrink(&mut self, now: Duration) -> Duration {
        if now > self.until {
            self.length = self.length.saturating_sub((now - self.until) / SHRINK);
            self.until = now;
        }
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_at_once_and_shrinks_slowly() {
        let (second, at) = (Duration::from_secs(1), Duration::from_millis);
        let mut hold = Hold::default();
        assert_eq!(hold.shrink(second), Duration::ZERO);
        hold.need(at(500), second);
        hold.need(at(200), 2 * second);
        assert_eq!(hold.shrink(61 * second), at(500));
        assert_eq!(hold.shrink(66 * second), at(400));
        hold.need(at(330), 66 * second);
        assert_eq!(hold.shrink(126 * second), at(400), "nearly as much is needed");
        assert_eq!(hold.shrink(200 * second), Duration::ZERO);
        hold.need(Duration::MAX, 200 * second);
        assert_eq!(hold.shrink(200 * second), LONGEST);
    }
}
