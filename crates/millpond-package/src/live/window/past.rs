//! Segments of a window whose parts are kept elsewhere, such as on a disk.

use super::Window;
use crate::{
    live::{
        boundary,
        epoch::WindowEpoch,
        measure::{TargetDuration, Targets},
        part::SegmentNumber,
        segment::{Segment, SegmentHead, TrackSegment},
    },
    presentation::track::MediaKind,
};
use std::time::Duration;

/// Least number of complete segments behind one that a playlist leaves out.
const FEWEST: u64 = 4;

/// The segments of a window that a playlist or manifest lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Extent {
    /// The newest segments, of [`WindowLimits::listed`](super::WindowLimits::listed).
    #[default]
    Edge,
    /// All that can be fetched.
    Past,
    /// Those from a number on.
    From(SegmentNumber),
    /// Those from one number to another, both included. Nothing follows them.
    Clip(SegmentNumber, SegmentNumber),
}

/// A segment that was cut before the window was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastSegment {
    /// Its number.
    pub number: SegmentNumber,
    /// Its epoch.
    pub epoch: u32,
    /// Its discontinuity sequence number.
    pub discontinuity: u64,
    /// Presentation time of its beginning as time of its stream.
    pub start: Duration,
    /// Wall time of that, since the Unix epoch.
    pub wall: Duration,
    /// Whether the leading track begins it with a key frame.
    pub is_independent: bool,
    /// The tracks of the window.
    pub tracks: Box<[PastTrack]>,
}

/// The part of a [`PastSegment`] that belongs to one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastTrack {
    /// Presentation time of its beginning in ticks of the track.
    pub start: i64,
    /// Ticks that it lasts.
    pub duration: i64,
    /// Length of its parts in bytes; 0 where they are lost.
    pub bytes: u64,
}

impl Extent {
    /// Whether no segment follows.
    #[must_use]
    pub const fn is_clip(self) -> bool {
        matches!(self, Self::Clip(..))
    }

    /// Whether it can include a segment.
    pub(crate) fn reaches(self, number: SegmentNumber) -> bool {
        !matches!(self, Self::Clip(_, last) if number > last)
    }
}

impl Window {
    /// Keeps segments whose parts left memory, for `time`. Those that were not [stored](Self::stored) before become gaps.
    pub fn keep_past(&mut self, time: Duration) {
        self.past = Some(time);
    }

    /// Adds earlier epochs and segments to a window without segments. Segments must be in the order of their numbers. A segment
    /// that does not follow the one before replaces all. Later epochs need other numbers.
    pub fn restore(&mut self, epochs: Vec<WindowEpoch>, segments: Vec<PastSegment>) {
        epochs.into_iter().for_each(|epoch| self.begin(epoch));
        for past in segments {
            if self.segments.back().is_some_and(|last| last.number.next() != past.number) {
                self.segments.clear();
                self.heap = 0;
            }
            let segment = self.past_segment(&past);
            self.heap = self.heap.saturating_add(segment.heap_bytes());
            (self.last_epoch, self.discontinuity) = (Some(past.epoch), past.discontinuity);
            if let Some(epoch) = self.epochs.iter_mut().rev().find(|known| known.number == past.epoch) {
                epoch.began.get_or_insert(past.start);
            }
            self.own = past.number.next();
            self.segments.push_back(segment);
        }
        self.retired = self.segments.len();
        self.version += 1;
        self.forget_epochs();
    }

    /// Ends a window that has only [restored](Self::restore) segments, so that players can begin without others.
    pub fn end(&mut self, target: TargetDuration) {
        self.targets = Some(Targets { segment: target, parts: None });
        self.is_ended = true;
        (0..self.tracks.len()).for_each(|track| self.measure(track));
        self.version += 1;
    }

    /// Whether it [ended](Self::end): no segment follows.
    #[must_use]
    pub const fn is_ended(&self) -> bool {
        self.is_ended
    }

    fn past_segment(&self, past: &PastSegment) -> Segment {
        let wall = self.segments.back().map_or(past.wall, |last| last.wall.max(past.wall));
        let PastSegment { number, epoch, discontinuity, start, is_independent, .. } = *past;
        let head = SegmentHead { number, epoch, discontinuity, start, wall, is_independent };
        let mut segment = Segment::new(head, self.media_before(&head), self.tracks.len());
        for (track, of_track) in segment.tracks.iter_mut().enumerate() {
            *of_track = match past.tracks.get(track) {
                Some(past) => TrackSegment {
                    closed: Some((past.start, past.duration)),
                    bytes: past.bytes,
                    is_stored: past.bytes > 0,
                    is_lost: past.bytes == 0,
                    ..TrackSegment::default()
                },
                None => TrackSegment { closed: Some((0, 0)), is_lost: true, ..TrackSegment::default() },
            };
        }
        segment
    }

    /// Records that the parts of a complete segment of a track are kept elsewhere.
    pub fn stored(&mut self, track: usize, number: SegmentNumber) {
        let of_track = self.get_mut(number).and_then(|segment| segment.tracks.get_mut(track));
        if let Some(of_track) = of_track.filter(|of_track| of_track.is_closed() && !of_track.is_lost) {
            of_track.is_stored = true;
        }
    }

    /// Forgets segments before a number whose parts left memory.
    pub fn forget_before(&mut self, number: SegmentNumber) {
        while self.retired > 0 && self.segments.front().is_some_and(|first| first.number < number) {
            self.pop();
            self.version += 1;
        }
        self.forget_epochs();
    }

    /// Forgets segments that left memory and are too old.
    pub(super) fn expire_past(&mut self) {
        let Some((past, last)) = self.past.zip(self.segments.back().map(|last| last.wall)) else { return };
        // A segment ends where the next one begins.
        while self.retired > 0 && self.segments.get(1).is_some_and(|next| next.wall.saturating_add(past) < last) {
            self.pop();
        }
    }

    /// Forgets the oldest epoch, and its segments that left memory.
    pub(super) fn forget_epoch(&mut self) {
        let Some(epoch) = self.epochs.pop_front() else { return };
        while self.retired > 0 && self.segments.front().is_some_and(|first| first.epoch == epoch.number) {
            self.pop();
        }
    }

    /// Returns the segment at a wall time since the Unix epoch. This is the last segment that begins at or before `wall`, else
    /// the first segment.
    #[must_use]
    pub fn at(&self, wall: Duration) -> Option<SegmentNumber> {
        // Playlists tell whole milliseconds, rounded down.
        let millis = |wall: Duration| wall.as_millis();
        let next = self.segments.partition_point(|segment| millis(segment.wall) <= millis(wall));
        self.segments.get(next.saturating_sub(1)).map(|segment| segment.number)
    }

    /// Number of the first segment that a playlist lists.
    #[must_use]
    pub fn first_listed(&self, extent: Extent) -> Option<SegmentNumber> {
        let (first, last) = (self.segments.front()?, self.segments.back()?);
        match extent {
            Extent::Edge => {
                // Media stays while none comes, so that players who wait find their place again.
                let is_listed = |segment: &Segment| last.media.saturating_sub(segment.media) <= self.limits.listed;
                let place = self.segments.partition_point(|segment| !is_listed(segment));
                // FFmpeg ends where a playlist can't be sent because it has no complete segment.
                let complete = self.segments.iter().rposition(Segment::is_closed);
                let place = complete.map_or(place, |complete| place.min(complete));
                self.segments.get(place).map(|segment| segment.number)
            }
            Extent::Past => Some(first.number),
            Extent::From(number) | Extent::Clip(number, _) => Some(number.max(first.number)),
        }
    }

    /// Number of the first segment that playlists of all tracks list. The first segment of an epoch is not listed where its sound
    /// begins later than its pictures and enough other segments follow: hls.js hangs where a position has no sound.
    #[must_use]
    pub fn first_listed_with_sound(&self, extent: Extent) -> Option<SegmentNumber> {
        let first = self.first_listed(extent)?;
        if extent.is_clip() || !self.is_sound_late(first) {
            return Some(first);
        }
        let complete = self.segments.iter().rev().find(|segment| segment.is_closed());
        let has_more = complete.is_some_and(|last| last.number.0 >= first.0.saturating_add(FEWEST));
        Some(if has_more { first.next() } else { first })
    }

    /// Whether the sound of a segment begins later than its pictures.
    fn is_sound_late(&self, number: SegmentNumber) -> bool {
        let starts = |kind: MediaKind| {
            let of_kind = self.tracks.iter().enumerate().filter(move |(_, track)| track.kind == kind);
            of_kind.filter_map(move |(index, track)| {
                let start = self.segment(number)?.track(index)?.start()?;
                Some(boundary::time(start, track.timescale))
            })
        };
        let (pictures, sound) = (starts(MediaKind::Video).min(), starts(MediaKind::Audio).max());
        pictures.zip(sound).is_some_and(|(pictures, sound)| sound > pictures)
    }

    /// Time before now that an extent reaches, where the newest segment began `away` ago or a little longer.
    #[must_use]
    pub fn depth(&self, extent: Extent, away: Duration) -> Duration {
        if extent != Extent::Edge {
            return self.past.unwrap_or(self.limits.listed);
        }
        let first = self.first_listed(extent).and_then(|first| self.segment(first));
        let listed = first.zip(self.segments.back()).map(|(first, last)| last.wall.saturating_sub(first.wall));
        self.limits.listed.max(listed.unwrap_or_default().saturating_add(away))
    }
}
