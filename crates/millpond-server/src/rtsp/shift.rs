//! The time shift of a session: which part of a live stream a `Range` asks for.

use super::signalling::{TimeRange, clock};
use millpond_rtp::play::{self, NptRange};
use millpond_stream::{CannotOpen, PlayedPart};
use std::time::Duration;

/// Wall times are told in whole milliseconds.
const MILLI: Duration = Duration::from_millis(1);

/// Normal play times of one RTSP session in the time shift of its stream. Normal play time 0 is the oldest moment that was kept at its first PLAY.
#[derive(Debug, Default)]
pub(super) struct Shift {
    /// Wall time of normal play time 0, since the Unix epoch.
    origin: Option<Duration>,
    /// Whether the last range had times of the day.
    is_clock: bool,
    /// Whether the session plays the newest frames, or did so last.
    pub(super) is_at_edge: bool,
}

/// The part of a live stream that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The live edge.
    Edge,
    /// What follows the last frame that was sent.
    Next,
    /// The part from a wall time on, up to another one or without an end.
    Part(Duration, Option<Duration>),
}

/// Why a PLAY is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CannotPlay {
    /// The stream engine refuses it.
    #[error(transparent)]
    Open(#[from] CannotOpen),
    /// The medium has no times of the day.
    #[error("the medium has no times of the day")]
    Units,
    /// The part is not kept.
    #[error("kept is {}", clock(*from, Some(*to)))]
    NotKept {
        /// Wall time of the oldest moment, since the Unix epoch.
        from: Duration,
        /// Wall time of the newest moment.
        to: Duration,
    },
}

impl Shift {
    /// Finds the part that a range asks for. `kept` are the oldest and the newest moment of the stream's past, where it has one.
    ///
    /// The first PLAY of a session from normal play time 0 on asks for the live edge: many players send it without being told.
    ///
    /// # Errors
    /// The part is not kept, or the units can't be served.
    pub(super) fn wanted(
        &mut self,
        range: TimeRange,
        kept: Option<(Duration, Duration)>,
        is_first: bool,
    ) -> Result<Wanted, CannotPlay> {
        let Some((oldest, newest)) = kept else {
            return if range.npt().is_some() { Ok(Wanted::Edge) } else { Err(CannotPlay::Units) };
        };
        let origin = *self.origin.get_or_insert(oldest);
        let at = |seconds: f64| origin.saturating_add(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
        let (from, to) = match range {
            TimeRange::Unstated => return Ok(Wanted::Next),
            TimeRange::Now => return Ok(Wanted::Edge),
            TimeRange::Npt(NptRange { from, to: None }) if is_first && from.is_none_or(|from| from <= 0.0) => {
                return Ok(Wanted::Edge);
            }
            // What was kept at first may have been evicted since.
            TimeRange::Npt(NptRange { from, to }) => (at(from.unwrap_or(0.0)).max(oldest), to.map(at)),
            TimeRange::Clock(from, to) => (from, to),
        };
        if from.saturating_add(MILLI) < oldest || from > newest || to.is_some_and(|to| to <= from) {
            return Err(CannotPlay::NotKept { from: oldest, to: newest });
        }
        self.is_clock = matches!(range, TimeRange::Clock(..));
        Ok(Wanted::Part(from, to))
    }

    /// The `Range` of what is played, in the units that were asked for last.
    pub(super) fn range(&self, part: PlayedPart) -> String {
        match (part, self.origin.filter(|_| !self.is_clock)) {
            (PlayedPart::Now, _) => "npt=now-".to_owned(),
            (PlayedPart::Title(from, to), _) => play::range(from, to),
            (PlayedPart::Wall(from, to), Some(origin)) => {
                let npt = |wall: Duration| format!("{:.3}", wall.saturating_sub(origin).as_secs_f64());
                format!("npt={}-{}", npt(from), to.map(npt).unwrap_or_default())
            }
            (PlayedPart::Wall(from, to), None) => clock(from, to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLDEST: Duration = Duration::from_secs(1_795_341_600);

    fn seconds(seconds: u64) -> Duration {
        OLDEST + Duration::from_secs(seconds)
    }

    fn npt(from: f64, to: Option<f64>) -> TimeRange {
        TimeRange::Npt(NptRange { from: Some(from), to })
    }

    #[test]
    fn the_first_play_is_the_live_edge_and_later_ones_go_back() {
        let mut shift = Shift::default();
        let kept = Some((OLDEST, seconds(100)));
        for range in [npt(0.0, None), TimeRange::Now] {
            assert_eq!(shift.wanted(range, kept, true), Ok(Wanted::Edge));
        }
        assert_eq!(shift.range(PlayedPart::Now), "npt=now-");
        assert_eq!(shift.wanted(TimeRange::Unstated, kept, false), Ok(Wanted::Next));
        assert_eq!(shift.wanted(npt(0.0, None), kept, false), Ok(Wanted::Part(OLDEST, None)), "start over");
        assert_eq!(shift.range(PlayedPart::Wall(OLDEST, None)), "npt=0.000-");
        let later = Some((seconds(20), seconds(120)));
        let expected = Wanted::Part(seconds(50), Some(seconds(60)));
        assert_eq!(shift.wanted(npt(50.0, Some(60.0)), later, false), Ok(expected), "from the same moment on");
        assert_eq!(shift.range(PlayedPart::Wall(seconds(49), Some(seconds(60)))), "npt=49.000-60.000");
        assert_eq!(shift.wanted(npt(1.0, None), later, false), Ok(Wanted::Part(seconds(20), None)), "evicted since");
        let not_kept = Err(CannotPlay::NotKept { from: seconds(20), to: seconds(120) });
        for range in [npt(121.0, None), npt(50.0, Some(50.0)), npt(1e300, None)] {
            assert_eq!(shift.wanted(range, later, false), not_kept, "{range:?}");
        }
    }

    #[test]
    fn times_of_the_day_are_answered_with_times_of_the_day() {
        let mut shift = Shift::default();
        let kept = Some((seconds(10), seconds(100)));
        let part = TimeRange::Clock(seconds(50), Some(seconds(60)));
        assert_eq!(shift.wanted(part, kept, true), Ok(Wanted::Part(seconds(50), Some(seconds(60)))));
        assert_eq!(shift.range(PlayedPart::Wall(seconds(50), None)), "clock=20261122T100050.000Z-");
        let error = shift.wanted(TimeRange::Clock(seconds(5), None), kept, false).unwrap_err();
        assert_eq!(error.to_string(), "kept is clock=20261122T100010.000Z-20261122T100140.000Z");
        assert_eq!(shift.wanted(part, None, false), Err(CannotPlay::Units));
        assert_eq!(shift.wanted(npt(5.0, None), None, false), Ok(Wanted::Edge), "nothing is kept");
    }
}
