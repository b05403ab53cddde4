//! Distance and size of the key frames of a stream, and which pictures lead the newest one.

use crate::Frame;
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
    /// Its track and presentation time.
    shown: Option<(u16, i64)>,
    /// Time between the last two.
    interval: Option<Duration>,
}

impl KeyInterval {
    /// Takes a key frame.
    pub(super) fn take(&mut self, key: &Frame) {
        self.largest = self.largest.max(key.data.len());
        self.shown = Some((key.track, key.pts));
        let interval = self.last.replace(key.due).and_then(|last| key.due.checked_sub(last));
        self.interval = interval.filter(|interval| !interval.is_zero() && *interval < LONGEST);
    }

    /// Whether a frame after the newest key frame is shown before it: later ones do not refer to it.
    pub(super) fn is_led_by(&self, frame: &Frame) -> bool {
        self.shown.is_some_and(|(track, pts)| track == frame.track && frame.pts < pts)
    }

    /// Returns a share of `time`: the whole at the beginning of a group of pictures, falling to half at its end. The share is
    /// three quarters if the group's length is unknown.
    pub(super) fn share_left(&self, due: Duration, time: Duration) -> Duration {
        let (Some(last), Some(interval)) = (self.last, self.interval) else { return time / 4 * 3 };
        let passed = due.saturating_sub(last).div_duration_f32(interval).min(1.0);
        time.mul_f32(1.0 - passed / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use millpond_media::Importance;

    fn key(due: Duration, bytes: usize) -> Frame {
        let (pts, data) = (due.as_millis() as i64, Bytes::from(vec![0; bytes]));
        Frame { track: 0, number: 0, due, pts, epoch: 0, is_sync: true, importance: Importance::BASE, data }
    }

    #[test]
    fn the_end_of_a_group_has_half_of_the_time() {
        let ms = Duration::from_millis;
        let (mut keys, time) = (KeyInterval::default(), ms(1000));
        assert_eq!(keys.share_left(ms(0), time), ms(750));
        keys.take(&key(ms(0), 500));
        assert_eq!(keys.share_left(ms(100), time), ms(750), "of the first group nothing is known");
        keys.take(&key(ms(2000), 300));
        assert_eq!([2000, 3000, 4000, 9000].map(|due| keys.share_left(ms(due), time)), [1000, 750, 500, 500].map(ms));
        assert_eq!(keys.largest, 500);
        assert!(keys.is_led_by(&key(ms(1999), 1)) && !keys.is_led_by(&key(ms(2000), 1)));
        assert!(!keys.is_led_by(&Frame { track: 1, ..key(ms(0), 1) }));
        keys.take(&key(ms(2000), 300));
        assert_eq!(keys.share_left(ms(2500), time), ms(750), "times that stand still");
        keys.take(&key(ms(100), 300));
        assert_eq!(keys.share_left(ms(100), time), ms(750), "times that go back");
    }
}
