//! Faster than a decoder likes, and backwards: key frames only (RFC 2326 12.34).

use millpond_package::{PresentedTrack, timeline::Timed};
use std::time::Duration;

/// Rates that key frames are sent at; what is asked for between these and 1 is played at 1.
const LEAST: f64 = 2.0;
const MOST: f64 = 32.0;
/// Between two pictures at least this much time: where key frames are close, some are left out.
const APART: Duration = Duration::from_millis(66);

/// A way through the key frames of a track.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Keys {
    /// Where it begins, in seconds.
    pub(super) from: f64,
    /// Where it ends: before that, for a way back.
    pub(super) to: f64,
    /// Seconds of the presentation in a second: below 0 for a way back.
    pub(super) scale: f64,
}

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key {
    pub(super) timed: Timed,
    /// When it is sent, from the start of the way.
    pub(super) due: Duration,
}

/// The rate that is played where a rate is asked for.
pub(super) fn honest(scale: f64) -> f64 {
    if scale >= LEAST {
        scale.min(MOST)
    } else if scale < 0.0 {
        scale.clamp(-MOST, -1.0)
    } else {
        1.0
    }
}

impl Keys {
    /// The key frames on the way, in the order in which they are sent. Heavy work: it looks at every key frame.
    pub(super) fn of(self, track: &PresentedTrack) -> Vec<Key> {
        let Some(timescale) = track.source_track().map(|source| source.timescale.get()) else { return Vec::new() };
        let timed = |ordinal: u32| track.samples_of(ordinal..ordinal.saturating_add(1)).pop();
        let all = track.sync_ordinals().filter_map(|ordinal| timed(ordinal).map(|timed| (ordinal, timed.pts)));
        let chosen = self.choose(all, timescale);
        chosen.into_iter().filter_map(|(ordinal, due)| timed(ordinal).map(|timed| Key { timed, due })).collect()
    }

    /// Ordinals and due times of key frames that are sent, of ordinals and presentation times of `all`.
    fn choose(self, all: impl Iterator<Item = (u32, i64)>, timescale: u32) -> Vec<(u32, Duration)> {
        let at = |pts: i64| pts as f64 / f64::from(timescale.max(1));
        let (low, high) = (self.from.min(self.to), self.from.max(self.to));
        let mut all: Vec<(u32, i64)> = all.filter(|(_, pts)| (low - 0.001..=high).contains(&at(*pts))).collect();
        if self.scale < 0.0 {
            all.reverse();
        }
        let mut next = Duration::ZERO;
        let mut keys = Vec::new();
        for (ordinal, pts) in all {
            let due = Duration::try_from_secs_f64(((at(pts) - self.from) / self.scale).max(0.0));
            let Ok(due) = due else { continue };
            if due >= next {
                next = due + APART;
                keys.push((ordinal, due));
            }
        }
        keys
    }

    /// The presentation time, in ticks, that a key frame has on the wire: the time that has gone by since the start.
    pub(super) fn shown(self, due: Duration, timescale: u32) -> i64 {
        let start = (self.from * f64::from(timescale)).round() as i64;
        start + (due.as_secs_f64() * f64::from(timescale)).round() as i64
    }

    /// Where in the presentation it is after so much time.
    pub(super) fn position(self, gone: Duration) -> Duration {
        let at = self.from + gone.as_secs_f64() * self.scale;
        let at = at.clamp(self.from.min(self.to), self.from.max(self.to));
        Duration::try_from_secs_f64(at).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(from: f64, to: f64, scale: f64) -> Vec<(u32, f64)> {
        // Key frames two seconds apart.
        let all = (0..10).map(|number| (number * 50, i64::from(number) * 2000));
        let keys = Keys { from, to, scale }.choose(all, 1000);
        keys.iter().map(|(ordinal, due)| (ordinal / 50, due.as_secs_f64())).collect()
    }

    #[test]
    fn rates_that_cannot_be_had_are_one() {
        for (asked, played) in
            [(1.0, 1.0), (0.5, 1.0), (1.5, 1.0), (2.0, 2.0), (100.0, 32.0), (-0.5, -1.0), (-99.0, -32.0)]
        {
            assert_eq!(honest(asked), played, "{asked}");
        }
    }

    #[test]
    fn key_frames_come_in_the_order_and_time_of_the_way() {
        assert_eq!(chosen(4.0, 10.0, 4.0), [(2, 0.0), (3, 0.5), (4, 1.0), (5, 1.5)]);
        assert_eq!(chosen(5.0, 0.0, -2.0), [(2, 0.5), (1, 1.5), (0, 2.5)]);
        // At 32 times they would be 62.5 ms apart: every other one is left out.
        assert_eq!(chosen(0.0, 8.0, 32.0), [(0, 0.0), (2, 0.125), (4, 0.25)]);
        assert_eq!(chosen(100.0, 200.0, 2.0), []);
    }

    #[test]
    fn time_on_the_wire_is_the_time_that_goes_by() {
        let keys = Keys { from: 10.0, to: 0.0, scale: -2.0 };
        assert_eq!(keys.shown(Duration::from_millis(1500), 90_000), 900_000 + 135_000);
        assert_eq!(keys.position(Duration::from_secs(2)), Duration::from_secs(6));
        assert_eq!(keys.position(Duration::from_secs(200)), Duration::ZERO);
    }
}
