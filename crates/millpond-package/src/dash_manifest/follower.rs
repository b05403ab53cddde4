//! The requests for the segments of one track.

use super::{
    Presentation,
    choice::{Track, TrackRole, time_of},
    presentation::Period,
    runs::{Segment, around, first_from, next_end},
};
use std::{sync::Arc, time::Duration};

/// Media behind the position, beyond the distance of the start, after which it moves to the live edge.
const MOST_BEHIND: Duration = Duration::from_secs(30);
/// Bounds of the pause before a segment is requested again.
const AGAIN: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(1));
/// Bounds of a wait.
const WAIT: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Durations of segments for which a segment is requested again at least.
const TRIED: u32 = 3;

/// Follows a track of a live presentation.
///
/// Call [`next`](Self::next), do what it says, and tell the outcome of a piece: [`taken`](Self::taken) or [`failed`](Self::failed).
#[derive(Clone, Debug)]
pub struct Follower {
    role: TrackRole,
    position: Option<Position>,
    /// End of the last segment of an earlier session, since the Unix epoch.
    resumes: Option<Duration>,
    /// Stretch and init section of the pieces before.
    init: Option<(u64, InitSegment)>,
    /// Whether the piece before is missing.
    is_torn: bool,
    /// The segment that was not there, by stretch and time; since when, and when it is requested again.
    trying: Option<(u64, u64, Duration, Duration)>,
    /// Whether segments turned out not to exist before they are complete.
    ignores_early: bool,
}

/// The place in the presentation behind the last segment.
#[derive(Clone, Copy, Debug)]
struct Position {
    stretch: u64,
    /// Least media time of the next segment, and the expected one.
    from: u64,
    expected: u64,
    /// End of the piece before, since the Unix epoch.
    end: Duration,
}

/// The next step of a follower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Request a piece.
    Piece(Piece),
    /// Wait until then, or until the manifest was read again.
    Wait {
        /// Time on the clock of the source.
        until: Duration,
    },
    /// Nothing follows: the presentation has ended.
    Ended,
}

/// A segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Number of its stretch: that of its Period.
    pub stretch: u64,
    /// Number of the segment.
    pub number: u64,
    /// Media time of its beginning, in ticks of its track.
    pub time: u64,
    /// `BaseURL`s that lead from the manifest to its URI.
    pub bases: Vec<Arc<str>>,
    /// URI.
    pub uri: String,
    /// Init section, where it is not that of the piece before.
    pub init: Option<InitSegment>,
    /// Media time at which its Period begins.
    pub offset: Duration,
    /// Wall time of that.
    pub wall: Duration,
    /// Whether pieces before it are missing.
    pub is_torn: bool,
    duration: u64,
    end: Duration,
    /// Time at which it is complete; `None` where the manifest lists it.
    complete: Option<Duration>,
}

/// An init section: `BaseURL`s that lead to its URI, and that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitSegment {
    /// `BaseURL`s.
    pub bases: Vec<Arc<str>>,
    /// URI.
    pub uri: String,
}

/// The decision on a segment whose request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// It is requested again.
    Again,
    /// It is a gap.
    Missed,
}

impl Follower {
    /// Creates a follower of the tracks with a role.
    #[must_use]
    pub fn new(role: TrackRole) -> Self {
        Self { role, position: None, resumes: None, init: None, is_torn: true, trying: None, ignores_early: false }
    }

    /// Goes on from where a follower was in the session before.
    #[must_use]
    pub fn following(self, before: &Self) -> Self {
        let resumes = before.position.map(|position| position.end).or(before.resumes);
        Self { resumes, ignores_early: before.ignores_early, ..self }
    }

    /// Language that the manifest states.
    #[must_use]
    pub fn language(&self) -> Option<&str> {
        self.role.language.as_deref()
    }

    /// Returns what is to be done.
    #[must_use]
    pub fn next(&self, presentation: &Presentation, now: Duration) -> Next {
        let wait = |until: Option<Duration>| {
            let (soonest, latest) = (now.saturating_add(WAIT.0), now.saturating_add(WAIT.1));
            Next::Wait { until: until.map_or(latest, |until| until.clamp(soonest, latest)) }
        };
        match self.piece(presentation, now) {
            Some(piece) => {
                match self.trying.filter(|(stretch, time, ..)| (*stretch, *time) == (piece.stretch, piece.time)) {
                    Some((.., again)) if now < again => wait(Some(again)),
                    _ => Next::Piece(piece),
                }
            }
            None if presentation.has_ended() => Next::Ended,
            None => wait(self.expected(presentation)),
        }
    }

    fn piece(&self, presentation: &Presentation, now: Duration) -> Option<Piece> {
        let position = self.position.filter(|position| position.stretch >= presentation.first_stretch);
        let found = match position {
            Some(position) => self.behind(presentation, position, now),
            None => self.begin(presentation, now),
        };
        let (period, track, segment) = found?;
        let live = presentation.edge(&self.role, now).unwrap_or_default();
        let most = presentation.hold_back().saturating_add(MOST_BEHIND);
        let is_far = live.saturating_sub(period.presented(track, segment.time)) > most;
        let (period, track, segment) =
            match is_far.then(|| self.at(presentation, presentation.live_point(now), now)).flatten() {
                Some((later, track, ahead)) if (later.stretch, ahead.time) > (period.stretch, segment.time) => {
                    (later, track, ahead)
                }
                _ => (period, track, segment),
            };
        let is_next = position.is_some_and(|position| {
            position.stretch != period.stretch || segment.time <= position.expected.saturating_add(segment.duration / 2)
        });
        let wall = presentation.begins.saturating_add(period.start);
        let end =
            presentation.begins.saturating_add(period.presented(track, segment.time.saturating_add(segment.duration)));
        let init = InitSegment { bases: track.bases.clone(), uri: track.init()? };
        let is_known = self.init.as_ref().is_some_and(|(stretch, known)| (*stretch, known) == (period.stretch, &init));
        Some(Piece {
            stretch: period.stretch,
            number: track.number(segment.index),
            time: segment.time,
            bases: track.bases.clone(),
            uri: track.uri(segment.index, segment.time)?,
            init: (!is_known).then_some(init),
            offset: time_of(track.offset, track.timescale),
            wall,
            is_torn: self.is_torn || !is_next,
            duration: segment.duration,
            end,
            complete: (!segment.is_listed).then_some(end),
        })
    }

    /// The first segment of a session.
    fn begin<'p>(&self, presentation: &'p Presentation, now: Duration) -> Option<(&'p Period, &'p Track, Segment)> {
        let resumes = self.resumes.filter(|_| presentation.first_stretch == 0);
        let resumes = resumes.and_then(|resumes| resumes.checked_sub(presentation.begins));
        let edge = presentation.edge(&self.role, now)?;
        let is_near = |resumes: &Duration| {
            *resumes <= edge.saturating_add(presentation.segment_duration())
                && *resumes >= presentation.start.saturating_sub(MOST_BEHIND)
        };
        match resumes.filter(is_near) {
            Some(resumes) => self.begins_at(presentation, resumes, now),
            None => self.at(presentation, presentation.start, now),
        }
    }

    /// The first segment that begins at a presentation time, or about then.
    fn begins_at<'p>(
        &self,
        presentation: &'p Presentation,
        time: Duration,
        now: Duration,
    ) -> Option<(&'p Period, &'p Track, Segment)> {
        self.tracks(presentation).find_map(|(period, track)| {
            let half = presentation.segment_duration() / 2;
            let from = period.media(track, time.saturating_sub(half));
            let segment = first_from(&track.runs, from, presentation.bounds(period, track, now, self.early(track)))?;
            Some((period, track, segment))
        })
    }

    /// The segment that a presentation time lies in.
    fn at<'p>(
        &self,
        presentation: &'p Presentation,
        time: Duration,
        now: Duration,
    ) -> Option<(&'p Period, &'p Track, Segment)> {
        let lying = |(period, track): (&'p Period, &'p Track)| {
            let bounds = presentation.bounds(period, track, now, self.early(track));
            let segment = around(&track.runs, period.media(track, time), bounds)?;
            Some((period, track, segment))
        };
        let mut all: Vec<_> = self.tracks(presentation).filter_map(lying).collect();
        let place = all.iter().rposition(|(period, ..)| period.start <= time).unwrap_or(0);
        (place < all.len()).then(|| all.swap_remove(place))
    }

    /// The first segment behind a position.
    fn behind<'p>(
        &self,
        presentation: &'p Presentation,
        position: Position,
        now: Duration,
    ) -> Option<(&'p Period, &'p Track, Segment)> {
        let mut later = self.tracks(presentation).filter(|(period, _)| period.stretch >= position.stretch);
        later.find_map(|(period, track)| {
            let bounds = presentation.bounds(period, track, now, self.early(track));
            let from = if period.stretch == position.stretch { position.from } else { 0 };
            let segment = first_from(&track.runs, from, bounds)?;
            if segment.is_listed {
                return Some((period, track, segment));
            }
            // Segments that time adds also leave with time.
            let left = presentation
                .depth
                .and_then(|depth| now.checked_sub(depth))
                .map(|left| left.saturating_sub(presentation.begins));
            let left = left.map_or(0, |left| period.media(track, left).saturating_sub(segment.duration));
            Some((period, track, first_from(&track.runs, from.max(left), bounds)?))
        })
    }

    /// The tracks of its role, by Periods.
    fn tracks<'p>(&self, presentation: &'p Presentation) -> impl Iterator<Item = (&'p Period, &'p Track)> {
        presentation.periods.iter().filter_map(|period| Some((period, period.track(&self.role)?)))
    }

    fn early(&self, track: &Track) -> Duration {
        if self.ignores_early { Duration::ZERO } else { track.early }
    }

    /// When time adds the next segment.
    fn expected(&self, presentation: &Presentation) -> Option<Duration> {
        let (period, track) = self.tracks(presentation).last()?;
        let from =
            self.position.filter(|position| position.stretch == period.stretch).map_or(0, |position| position.from);
        let end = next_end(&track.runs, from)?;
        let end = presentation.begins.saturating_add(period.presented(track, end));
        Some(end.saturating_sub(self.early(track)))
    }

    /// Notes that a piece was received.
    pub fn taken(&mut self, piece: &Piece) {
        if let Some(init) = &piece.init {
            self.init = Some((piece.stretch, init.clone()));
        }
        self.pass(piece, false);
    }

    /// Notes that a piece could not be received. One that is not there yet is requested again, until frames behind it would be due.
    pub fn failed(&mut self, piece: &Piece, presentation: &Presentation, now: Duration, is_final: bool) -> Failed {
        let known = self.trying.filter(|(stretch, time, ..)| (*stretch, *time) == (piece.stretch, piece.time));
        let since = known.map_or(now, |(_, _, since, _)| since);
        if piece.complete.is_some_and(|complete| now < complete) {
            self.ignores_early = true;
        }
        let step = presentation.segment_duration();
        if is_final || now.saturating_sub(since) >= presentation.hold_back().max(step.saturating_mul(TRIED)) {
            self.pass(piece, true);
            return Failed::Missed;
        }
        let again = now.saturating_add((step / 4).clamp(AGAIN.0, AGAIN.1));
        self.trying = Some((piece.stretch, piece.time, since, again));
        Failed::Again
    }

    fn pass(&mut self, piece: &Piece, is_torn: bool) {
        self.position = Some(Position {
            stretch: piece.stretch,
            from: piece.time.saturating_add((piece.duration / 2).max(1)),
            expected: piece.time.saturating_add(piece.duration),
            end: piece.end,
        });
        (self.is_torn, self.trying) = (is_torn, None);
    }
}
