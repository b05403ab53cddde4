//! Distance and size of the key frames of a stream.

use std::time::Duration;

/// Longest distance of key frames that is believed.
const LONGEST: Duration = Duration::from_secs(60);

/// Distance and size of the key frames of a stream's leading track.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeyInterval {
    /// Bytes of the largest key frame.
    pub(super) largest: usize,
    /// Due time of the newest one.
    last: Option<Duration>,
    /// Time between the last two.
    interval: Option<Duration>,
}

impl KeyInterval {
    /// Takes a key frame.
    pub(super) fn take(&mut self, due: Duration, bytes: usize) {
        self.largest = self.largest.max(bytes);
        let interval = self.last.replace(due).and_then(|last| due.checked_sub(last));
        self.interval = interval.filter(|interval| !interval.is_zero() && *interval < LONGEST);
    }

    /// A share of a time: all of it at the beginning of a group of pictures, down to half of it at its end; three quarters
    /// where the group's length is not known.
    pub(super) fn share_left(&self, due: Duration, time: Duration) -> Duration {
        let (Some(last), Some(interval)) = (self.last, self.interval) else { return time / 4 * 3 };
        let passed = due.saturating_sub(last).div_duration_f32(interval).min(1.0);
        time.mul_f32(1.0 - passed / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_group_has_half_of_the_time() {
        let ms = Duration::from_millis;
        let (mut keys, time) = (KeyInterval::default(), ms(1000));
        assert_eq!(keys.share_left(ms(0), time), ms(750));
        keys.take(ms(0), 500);
        assert_eq!(keys.share_left(ms(100), time), ms(750), "of the first group nothing is known");
        keys.take(ms(2000), 300);
        assert_eq!([2000, 3000, 4000, 9000].map(|due| keys.share_left(ms(due), time)), [1000, 750, 500, 500].map(ms));
        assert_eq!(keys.largest, 500);
        keys.take(ms(2000), 300);
        assert_eq!(keys.share_left(ms(2500), time), ms(750), "times that stand still");
        keys.take(ms(100), 300);
        assert_eq!(keys.share_left(ms(100), time), ms(750), "times that go back");
    }
}
