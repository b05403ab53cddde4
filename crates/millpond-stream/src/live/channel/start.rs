//! Where an asset begins that is to play at a given moment.

use crate::stored::StoredMedia;
use millpond_package::{MediaKind, PresentedTrack};
use std::time::{Duration, Instant};

/// Time in which the first frames are loaded, where the moment of the asset's beginning has passed.
const SOON: Duration = Duration::from_millis(500);
/// Longest wait for the key frame that is due next. Where it is longer, an earlier one begins late.
const LONGEST: Duration = Duration::from_secs(10);

/// When the only asset of a channel begins.
///
/// Where that moment has passed, the channel begins with the key frame that is due next, when it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedStart {
    /// Moment at which the asset begins.
    pub begins: Instant,
    /// Time of the asset at which it begins: with the key frame before it.
    pub from: Duration,
    /// Whether the asset plays again and again. Else the channel gives no more frames after its end.
    pub repeats: bool,
}

/// The first frames of a channel, and their moment.
#[derive(Debug)]
pub(crate) struct FirstFrames {
    /// Time of the asset.
    pub(crate) at: Duration,
    pub(crate) moment: Instant,
    /// The first sample of each track.
    pub(crate) next: Vec<u32>,
}

/// Times of key frames.
trait KeyTimes {
    /// The last one that is not behind a time, or the first one.
    fn before(&self, at: Duration) -> Duration;
    /// The first one that is not before a time.
    fn after(&self, at: Duration) -> Option<Duration>;
}

/// Each sample of sound is a key frame.
impl KeyTimes for Option<&PresentedTrack> {
    fn before(&self, at: Duration) -> Duration {
        self.and_then(|track| time(track, track.sync_before(at.as_secs_f64())?)).unwrap_or(at)
    }

    fn after(&self, at: Duration) -> Option<Duration> {
        self.map_or(Some(at), |track| time(track, track.sync_after(at.as_secs_f64())?))
    }
}

impl TimedStart {
    /// Returns where an asset begins; `None` where it is over. `tracks` are those that play.
    pub(crate) fn beginning(self, media: &StoredMedia, tracks: &[u16], now: Instant) -> Option<FirstFrames> {
        let tracks: Vec<_> = tracks.iter().filter_map(|track| media.track(*track)).collect();
        let lead = tracks.iter().copied().find(|track| track.kind() == MediaKind::Video);
        let duration = Duration::try_from_secs_f64(media.duration()).unwrap_or_default();
        let (at, moment) = self.place(duration, &lead, now)?;
        let first = |track: &&PresentedTrack| match track.kind() {
            // Samples before the beginning prime the decoder.
            _ if at.is_zero() => 0,
            MediaKind::Video => track.sync_before(at.as_secs_f64()).unwrap_or(0),
            _ => track.ordinal_at(at.as_secs_f64()).unwrap_or(track.sample_count()),
        };
        Some(FirstFrames { at, moment, next: tracks.iter().map(first).collect() })
    }

    /// Returns the time of the asset with which it begins, and the moment; `None` where it is over.
    fn place(self, duration: Duration, keys: &impl KeyTimes, now: Instant) -> Option<(Duration, Instant)> {
        let first = if self.from.is_zero() { Duration::ZERO } else { keys.before(self.from) };
        let late = now.saturating_duration_since(self.begins);
        if late.is_zero() {
            return Some((first, self.begins));
        }
        let (soon, mut position) = (now + SOON, first + late + SOON);
        if self.repeats && !duration.is_zero() {
            position = Duration::from_secs_f64(position.as_secs_f64() % duration.as_secs_f64());
        }
        let next = keys.after(position).filter(|next| *next <= position + LONGEST);
        let left = duration.saturating_sub(position);
        match next {
            Some(next) => Some((next, soon + next.saturating_sub(position))),
            None if self.repeats && left <= LONGEST => Some((Duration::ZERO, soon + left)),
            None if left.is_zero() && !duration.is_zero() => None,
            None => Some((keys.before(position), soon)),
        }
    }
}

impl StoredMedia {
    /// Returns the time at which the title begins where it is to begin at `from`: that of the key frame before.
    #[must_use]
    pub fn begins_at(&self, from: Duration) -> Duration {
        let tracks = self.presentation().tracks();
        let lead = tracks.iter().find(|track| track.kind() == MediaKind::Video);
        if from.is_zero() { from } else { lead.before(from) }
    }
}

/// Presentation time of a sample.
fn time(track: &PresentedTrack, ordinal: u32) -> Option<Duration> {
    let scale = f64::from(track.source_track()?.timescale.get());
    let sample = track.samples_of(ordinal..ordinal.saturating_add(1)).pop()?;
    Some(Duration::try_from_secs_f64(sample.pts as f64 / scale).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    impl KeyTimes for Vec<u64> {
        fn before(&self, at: Duration) -> Duration {
            Duration::from_secs(*self.iter().rfind(|key| **key <= at.as_secs()).unwrap_or(&self[0]))
        }

        fn after(&self, at: Duration) -> Option<Duration> {
            self.iter().map(|key| Duration::from_secs(*key)).find(|key| *key >= at)
        }
    }

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn an_asset_whose_moment_has_passed_begins_with_the_key_frame_that_is_due_next() {
        let (keys, begins) = (vec![0, 4, 8, 12, 90], Instant::now() + s(1000));
        let place = |from, repeats, late: u64| {
            let start = TimedStart { begins, from: s(from), repeats };
            let found = start.place(s(100), &keys, begins + s(late));
            found.map(|(at, moment)| (at.as_secs(), moment.duration_since(begins)))
        };
        assert_eq!(place(0, false, 0), Some((0, s(0))));
        // Each key frame has its moment: the beginning less its time.
        assert_eq!(place(0, false, 2), Some((4, s(4))));
        assert_eq!(place(0, false, 4), Some((8, s(8))));
        // A start within the asset begins with the key frame before it.
        assert_eq!(place(9, false, 0), Some((8, s(0))));
        assert_eq!(place(9, false, 2), Some((12, s(4))));
        // The next key frame is too far away: an earlier one begins at once.
        assert_eq!(place(0, false, 20), Some((12, s(20) + SOON)));
        assert_eq!(place(0, false, 95), Some((90, s(95) + SOON)));
        assert_eq!(place(0, false, 100), None);
        // Round and round.
        assert_eq!(place(0, true, 102), Some((4, s(104))));
        assert_eq!(place(0, true, 95), Some((0, s(100))));
        assert_eq!(place(0, true, 295), Some((0, s(300))));
        let early = TimedStart { begins, from: s(0), repeats: false };
        assert_eq!(early.place(s(100), &keys, begins - s(5)), Some((s(0), begins)));
    }
}
