//! Which tracks of a session give frames.
//!
//! Cameras announce the sound of microphones that are muted. Players would wait for it for ever.

use std::time::Duration;

/// Time for which the first sound is waited for, after the first frame of another track.
const FIRST_SOUND: Duration = Duration::from_secs(2);
/// The same for the first picture.
const FIRST_PICTURE: Duration = Duration::from_secs(6);
/// Silence of sound, while other tracks go on, after which it is left out. It is three times the longest silence so far, where
/// that is longer: some senders send nothing while nobody speaks.
const SILENT_SOUND: Duration = Duration::from_secs(5);
/// The same for pictures.
const SILENT_PICTURES: Duration = Duration::from_secs(10);
/// Longest silence of all tracks that counts: the rest is a pause of the source.
const PAUSE: Duration = Duration::from_millis(500);

/// How the frames of a source arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rhythm {
    /// Arrival of the last frame.
    pub(super) last: Duration,
    /// Longest time between two.
    pub(super) longest: Duration,
}

/// Notes the frames of a session's tracks. Times count from any moment.
#[derive(Debug, Default)]
pub(super) struct Attendance {
    /// Arrival of the first frame, and of the last one.
    first: Option<Duration>,
    last: Duration,
    /// Time since the first frame, without pauses of the source.
    clock: Duration,
    tracks: Vec<Option<Heard>>,
}

/// A track that has given a frame.
#[derive(Clone, Copy, Debug)]
struct Heard {
    /// Time of its last frame, on the clock without pauses.
    at: Duration,
    /// Longest time between two of its frames.
    longest: Duration,
}

impl Attendance {
    /// Takes note of a frame.
    pub(super) fn hear(&mut self, track: usize, now: Duration) {
        let passed = self.first.map_or(Duration::ZERO, |_| now.saturating_sub(self.last));
        self.first.get_or_insert(now);
        self.last = self.last.max(now);
        self.clock += passed.min(PAUSE);
        if self.tracks.len() <= track {
            self.tracks.resize(track + 1, None);
        }
        let at = self.clock;
        let longest = self.tracks[track].map_or(Duration::ZERO, |heard| heard.longest.max(at.saturating_sub(heard.at)));
        self.tracks[track] = Some(Heard { at, longest });
    }

    /// Whether a track goes on.
    pub(super) fn goes_on(&self, track: usize, is_video: bool) -> bool {
        let least = if is_video { SILENT_PICTURES } else { SILENT_SOUND };
        let heard = self.tracks.get(track).copied().flatten();
        heard.is_some_and(|heard| self.clock.saturating_sub(heard.at) < least.max(3 * heard.longest))
    }

    /// Time until which the first frame of a track is waited for. `None` where it has come, and before all first frames.
    pub(super) fn until(&self, track: usize, is_video: bool) -> Option<Duration> {
        let first = self.first.filter(|_| self.tracks.get(track).copied().flatten().is_none())?;
        Some(first + patience(is_video))
    }

    /// Whether any track has given a frame.
    pub(super) fn has_begun(&self) -> bool {
        self.first.is_some()
    }
}

/// Longest wait for the first frame of a track, after the first frame of another track.
pub(super) const fn patience(is_video: bool) -> Duration {
    if is_video { FIRST_PICTURE } else { FIRST_SOUND }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_track_without_a_frame_is_waited_for() {
        let mut attendance = Attendance::default();
        assert_eq!((attendance.until(1, false), attendance.has_begun()), (None, false));
        attendance.hear(0, at(700));
        assert_eq!(attendance.until(0, true), None);
        assert_eq!((attendance.until(1, false), attendance.until(1, true)), (Some(at(2700)), Some(at(6700))));
        attendance.hear(1, at(900));
        assert_eq!(attendance.until(1, false), None);
    }

    #[test]
    fn a_track_that_falls_silent_goes_on_for_a_while() {
        let mut attendance = Attendance::default();
        attendance.hear(1, at(0));
        for time in (0..5000).step_by(40) {
            attendance.hear(0, at(time));
            assert!(attendance.goes_on(1, false), "{time}");
        }
        attendance.hear(0, at(5000));
        assert!(!attendance.goes_on(1, false) && attendance.goes_on(1, true) && attendance.goes_on(0, true));
        // It was silent for 6 s once, so 18 s are no wonder.
        (5000..=6000).step_by(40).for_each(|time| attendance.hear(0, at(time)));
        attendance.hear(1, at(6000));
        (6000..=23_900).step_by(40).for_each(|time| attendance.hear(0, at(time)));
        assert!(attendance.goes_on(1, false));
        (24_000..=24_400).step_by(40).for_each(|time| attendance.hear(0, at(time)));
        assert!(!attendance.goes_on(1, false));
    }

    #[test]
    fn pauses_of_all_tracks_are_nobodys_silence() {
        let mut attendance = Attendance::default();
        (0..2).for_each(|track| attendance.hear(track, at(0)));
        attendance.hear(0, at(60_000));
        assert!(attendance.goes_on(1, false));
    }
}
