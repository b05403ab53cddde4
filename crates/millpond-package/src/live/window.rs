//! The segments of a stream that playlists list, and some older ones that players may still fetch.

mod captions;
mod cues;
mod follow;
mod listings;
mod past;
mod rates;

pub(super) use rates::steady;

use super::{
    boundary::time,
    cutter::Cut,
    epoch::WindowEpoch,
    measure::Targets,
    part::{Part, SegmentNumber},
    segment::{Segment, SegmentHead, TrackSegment},
};
use crate::{
    presentation::{captions::CaptionRule, track::MediaKind},
    timeline::bandwidth::Bandwidth,
};
use bytes::Bytes;
use cues::Cues;
pub use cues::{Cue, PastCue};
pub(crate) use cues::{CueAttribute, CuePoint, CueRange};
pub use follow::Continuation;
use millpond_media::{CaptionSearch, units::Timescale};
pub use past::{Extent, PastSegment, PastTrack};
use std::{collections::VecDeque, sync::Arc, time::Duration};

/// Longest time without media for which playlists keep listing what came before.
const MOST_AWAY: Duration = Duration::from_secs(15 * 60);
/// Most epochs that a window remembers. Those of its segments are remembered as long as they last.
const MOST_EPOCHS: usize = 64;

/// Bounds of a window. The oldest segments leave first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLimits {
    /// Most segments, the unfinished one included; at least 2.
    pub segments: usize,
    /// Most bytes of memory for parts. An unfinished segment that is larger alone becomes a gap.
    pub bytes: u64,
    /// Longest time of media from the end of a segment to the beginning of the newest one.
    pub age: Duration,
    /// Time of media that playlists list before their end. Older segments can still be fetched.
    pub listed: Duration,
}

/// A track of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowTrack {
    /// Name in URLs, such as `v1`.
    pub name: String,
    /// Kind of the track.
    pub kind: MediaKind,
    /// Clock of its parts.
    pub timescale: Timescale,
}

/// The newest position of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// Number of the segment with the last part.
    pub segment: SegmentNumber,
    /// Index of the last part in it.
    pub part: u16,
}

/// The result of looking a part up in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartLookUp<'a> {
    /// It is complete.
    Complete(&'a Part),
    /// It is the next part of its track, at which playlists hint.
    Next,
    /// It left the window, or never was announced.
    Unknown,
}

/// Segments of all tracks of a stream.
///
/// The caller announces each epoch with [`Self::begin`] before it pushes the cuts of its segments. Memory is bounded by
/// [`WindowLimits`], and the work of a push by the number of segments that leave.
#[derive(Debug)]
pub struct Window {
    limits: WindowLimits,
    tracks: Vec<WindowTrack>,
    targets: Option<Targets>,
    epochs: VecDeque<WindowEpoch>,
    /// Consecutive numbers.
    segments: VecDeque<Segment>,
    /// Time for which segments stay whose parts left memory. Without it they leave with their parts.
    past: Option<Duration>,
    /// Number of segments at the beginning whose parts left memory.
    retired: usize,
    /// Number of the first segment that was cut for this window.
    own: SegmentNumber,
    /// Whether no segment follows.
    is_ended: bool,
    /// Discontinuity sequence number of the next epoch's first segment.
    discontinuity: u64,
    last_epoch: Option<u32>,
    heap: u64,
    version: u64,
    /// For each track, the version of its last change.
    changes: Vec<u64>,
    rates: Vec<Bandwidth>,
    cues: Cues,
    /// The rule by which manifests announce captions within pictures.
    caption_rule: Arc<CaptionRule>,
    /// For each track, the captions in its pictures so far.
    captions: Vec<CaptionSearch>,
}

impl Window {
    /// Creates an empty window. `discontinuity` is the discontinuity sequence number of the first segment.
    #[must_use]
    pub fn new(limits: WindowLimits, tracks: Vec<WindowTrack>, discontinuity: u64) -> Self {
        let (rates, changes) = (vec![Bandwidth::default(); tracks.len()], vec![0; tracks.len()]);
        let limits = WindowLimits { segments: limits.segments.max(2), ..limits };
        let captions = tracks.iter().map(|_| CaptionSearch::default()).collect();
        Self {
            limits,
            tracks,
            targets: None,
            epochs: VecDeque::new(),
            segments: VecDeque::new(),
            past: None,
            retired: 0,
            own: SegmentNumber(0),
            is_ended: false,
            discontinuity,
            last_epoch: None,
            heap: 0,
            version: 0,
            changes,
            rates,
            cues: Cues::default(),
            caption_rule: Arc::default(),
            captions,
        }
    }

    /// Announces captions within pictures by a rule.
    #[must_use]
    pub fn with_captions(self, caption_rule: Arc<CaptionRule>) -> Self {
        Self { caption_rule, ..self }
    }

    /// Announces an epoch.
    pub fn begin(&mut self, epoch: WindowEpoch) {
        self.epochs.push_back(epoch);
        self.forget_epochs();
        self.change(None);
    }

    /// Counts a change of one track, or of all.
    fn change(&mut self, track: Option<usize>) {
        self.version += 1;
        let all = 0..self.changes.len();
        let changed = track.map_or(all, |track| track..track.saturating_add(1));
        self.changes.get_mut(changed).into_iter().flatten().for_each(|version| *version = self.version);
    }

    /// Takes a decision of the cutter.
    pub fn push(&mut self, cut: Cut) {
        let track = match &cut {
            Cut::Targets(_) | Cut::Opened { .. } => None,
            Cut::Part(part) => Some(part.track),
            Cut::Closed { track, .. } => Some(*track),
        };
        match cut {
            Cut::Targets(targets) => self.targets = Some(targets),
            Cut::Opened { segment, epoch, start, is_independent } => self.open(segment, epoch, start, is_independent),
            Cut::Part(part) => self.take(part),
            Cut::Closed { track, segment, start, duration } => {
                if let Some(of_track) = self.get_mut(segment).and_then(|segment| segment.tracks.get_mut(track)) {
                    of_track.closed = Some((start, duration));
                    self.measure(track);
                }
            }
        }
        self.change(track);
        self.evict();
    }

    fn open(&mut self, number: SegmentNumber, epoch: u32, start: Duration, is_independent: bool) {
        let follows = self.segments.back().is_none_or(|last| last.number.next() == number);
        if !follows {
            self.segments.clear();
            (self.heap, self.retired) = (0, 0);
        }
        if self.last_epoch.is_some_and(|last| last != epoch) || !follows {
            self.discontinuity = self.discontinuity.saturating_add(1);
        }
        self.last_epoch = Some(epoch);
        if let Some(epoch) = self.epochs.iter_mut().rev().find(|known| known.number == epoch) {
            epoch.began.get_or_insert(start);
        }
        let wall = self.epoch(epoch).map_or(start, |epoch| epoch.wall_of(start));
        let wall = self.segments.back().map_or(wall, |last| last.wall.max(wall));
        let head = SegmentHead { number, epoch, discontinuity: self.discontinuity, start, wall, is_independent };
        let segment = Segment::new(head, self.media_before(&head), self.tracks.len());
        self.heap = self.heap.saturating_add(segment.heap_bytes());
        if self.segments.is_empty() {
            self.own = number;
        }
        self.segments.push_back(segment);
        self.expire_cues();
    }

    /// Time of the media up to a segment that follows the last one. Segments of earlier runs are as old as their wall times.
    fn media_before(&self, head: &SegmentHead) -> Duration {
        let Some(last) = self.segments.back() else { return Duration::ZERO };
        let lasted = match last.epoch == head.epoch {
            true => head.start.saturating_sub(last.start),
            false => {
                let (passed, media) = (head.wall.saturating_sub(last.wall), self.longest(last));
                let forgiven = if self.is_own(last) { MOST_AWAY } else { Duration::ZERO };
                media.max(passed.saturating_sub(forgiven))
            }
        };
        last.media.saturating_add(lasted)
    }

    /// Duration of a segment's longest track.
    fn longest(&self, segment: &Segment) -> Duration {
        let tracks = self.tracks.iter().zip(&segment.tracks);
        tracks.map(|(track, of)| time(of.duration(), track.timescale)).max().unwrap_or_default()
    }

    fn take(&mut self, part: Part) {
        self.search_captions(&part);
        let Some(segment) = self.get_mut(part.segment) else { return };
        let Some(track) = segment.tracks.get_mut(part.track).filter(|track| !track.is_lost) else { return };
        let heap = part.heap_bytes();
        track.bytes = track.bytes.saturating_add(part.len());
        track.heap = track.heap.saturating_add(heap);
        track.parts.push(part);
        self.heap = self.heap.saturating_add(heap);
    }

    /// Evicts segments until the limits are kept. Unfinished segments stay, but lose their parts where these alone are too large.
    fn evict(&mut self) {
        while self.is_over() && self.retire() {}
        self.expire_past();
        if self.heap > self.limits.bytes {
            let lost: u64 = self
                .segments
                .iter_mut()
                .skip(self.retired)
                .flat_map(|segment| &mut segment.tracks)
                .map(TrackSegment::lose)
                .sum();
            self.heap = self.heap.saturating_sub(lost);
            self.change(None);
        }
        self.forget_epochs();
    }

    /// Takes the oldest segment with parts in memory out of it, where it is complete and not the only one. Returns whether it
    /// was.
    fn retire(&mut self) -> bool {
        let is_complete = self.in_memory() > 1 && self.segments.get(self.retired).is_some_and(Segment::is_closed);
        if is_complete && self.past.is_none() {
            self.pop();
        } else if is_complete && let Some(segment) = self.segments.get_mut(self.retired) {
            let freed: u64 = segment.tracks.iter_mut().map(TrackSegment::retire).sum();
            self.heap = self.heap.saturating_sub(freed);
            self.retired += 1;
        }
        is_complete
    }

    fn pop(&mut self) {
        let evicted = self.segments.pop_front();
        self.retired = self.retired.saturating_sub(1);
        self.heap = self.heap.saturating_sub(evicted.map_or(0, |segment| segment.heap_bytes()));
    }

    /// Evicts the oldest segment from memory, where it is complete and not the only one.
    pub fn evict_oldest(&mut self) {
        if self.retire() {
            self.forget_epochs();
            self.change(None);
        }
    }

    /// Number of segments with parts in memory.
    #[must_use]
    pub fn in_memory(&self) -> usize {
        self.segments.len().saturating_sub(self.retired)
    }

    fn is_over(&self) -> bool {
        let age = || {
            let (second, last) = (self.segments.get(self.retired + 1)?, self.segments.back()?);
            Some(last.media.saturating_sub(second.media))
        };
        self.in_memory() > self.limits.segments
            || self.heap > self.limits.bytes
            || age().is_some_and(|age| age > self.limits.age)
    }

    /// Forgets epochs before that of the first segment.
    fn forget_epochs(&mut self) {
        let first = self.segments.front().map(|segment| segment.epoch);
        while self.epochs.front().zip(first).is_some_and(|(epoch, first)| epoch.number != first)
            && self.epochs.iter().any(|epoch| Some(epoch.number) == first)
        {
            self.epochs.pop_front();
        }
        while self.epochs.len() > MOST_EPOCHS {
            self.forget_epoch();
        }
    }

    fn get_mut(&mut self, number: SegmentNumber) -> Option<&mut Segment> {
        let first = self.segments.front()?.number;
        self.segments.get_mut(usize::try_from(number.0.checked_sub(first.0)?).ok()?)
    }

    /// Number of changes so far. Texts that are rendered from the window differ only if this number differs.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Version of the last change of a track or of all tracks. What leaves the window is none.
    #[must_use]
    pub fn track_version(&self, track: usize) -> u64 {
        self.changes.get(track).copied().unwrap_or(self.version)
    }

    /// Bounds.
    #[must_use]
    pub const fn limits(&self) -> &WindowLimits {
        &self.limits
    }

    /// Tracks, in the order of their indexes.
    #[must_use]
    pub fn tracks(&self) -> &[WindowTrack] {
        &self.tracks
    }

    /// Index of the track of a name.
    #[must_use]
    pub fn track(&self, name: &str) -> Option<usize> {
        self.tracks.iter().position(|track| track.name == name)
    }

    /// Target durations; `None` until they are measured.
    #[must_use]
    pub const fn targets(&self) -> Option<&Targets> {
        self.targets.as_ref()
    }

    /// Bytes of memory held for parts.
    #[must_use]
    pub const fn heap_bytes(&self) -> u64 {
        self.heap
    }

    /// Bits per second of a track, measured over a minute and rounded up, so that they seldom change.
    #[must_use]
    pub fn bandwidth(&self, track: usize) -> Bandwidth {
        self.rates.get(track).copied().unwrap_or_default()
    }

    /// All segments, the oldest first.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &Segment> + ExactSizeIterator {
        self.segments.iter()
    }

    /// Segments whose parts are in memory, the oldest first.
    pub(crate) fn with_parts(&self) -> impl DoubleEndedIterator<Item = &Segment> {
        self.segments.iter().skip(self.retired)
    }

    /// Number of segments up to `last` that were cut for this window, including segments that left it.
    #[must_use]
    pub fn cut_to(&self, last: SegmentNumber) -> u64 {
        last.next().0.saturating_sub(self.own.0)
    }

    /// Whether a segment was cut for this window. Stream times of other segments belong to other runs.
    pub(crate) fn is_own(&self, segment: &Segment) -> bool {
        segment.number >= self.own
    }

    /// Returns the segment of a number.
    #[must_use]
    pub fn segment(&self, number: SegmentNumber) -> Option<&Segment> {
        let first = self.segments.front()?.number;
        self.segments.get(usize::try_from(number.0.checked_sub(first.0)?).ok()?)
    }

    /// Whether a segment of a track has an entry in segment timelines: a complete one has, and with parts one that has
    /// begun.
    #[must_use]
    pub fn is_timed(&self, of_track: &TrackSegment) -> bool {
        let has_parts = self.targets().is_some_and(|targets| targets.parts.is_some());
        of_track.is_closed() || has_parts && !of_track.parts().is_empty()
    }

    /// Starts of a track's segments in segment timelines, in ticks of its timescale, the newest first. Those of segments of
    /// earlier runs are left out.
    fn starts(&self, track: usize) -> impl Iterator<Item = (SegmentNumber, i64)> {
        self.segments.iter().rev().take_while(|segment| self.is_own(segment)).filter_map(move |segment| {
            let of_track = segment.track(track).filter(|of_track| self.is_timed(of_track))?;
            Some((segment.number, of_track.start()?))
        })
    }

    /// Start of the newest segment of a track in segment timelines, in ticks of its timescale.
    #[must_use]
    pub fn newest_start(&self, track: usize) -> Option<i64> {
        self.starts(track).next().map(|(_, start)| start)
    }

    /// Returns the segment that starts at a time by segment timelines, in ticks of the track's timescale. Segments whose parts
    /// left memory are found too.
    #[must_use]
    pub fn segment_at(&self, track: usize, start: i64) -> Option<SegmentNumber> {
        self.starts(track).find(|(_, other)| *other == start).map(|(number, _)| number)
    }

    /// Returns an epoch that the window remembers.
    #[must_use]
    pub fn epoch(&self, number: u32) -> Option<&WindowEpoch> {
        self.epochs.iter().rev().find(|epoch| epoch.number == number)
    }

    /// The newest epoch.
    #[must_use]
    pub fn newest_epoch(&self) -> Option<&WindowEpoch> {
        self.epochs.back()
    }

    /// Returns the init segment of a track in an epoch.
    #[must_use]
    pub fn init(&self, track: usize, epoch: u32) -> Option<&Bytes> {
        self.epoch(epoch)?.init(track)
    }

    /// Number of a track's newest complete segment.
    #[must_use]
    pub fn last_closed(&self, track: usize) -> Option<SegmentNumber> {
        let is_closed = |segment: &&Segment| segment.track(track).is_some_and(TrackSegment::is_closed);
        self.segments.iter().rev().find(is_closed).map(|segment| segment.number)
    }

    /// Number of the segment that the next part of a track belongs to.
    #[must_use]
    pub fn next_segment(&self, track: usize) -> Option<SegmentNumber> {
        match self.last_closed(track) {
            Some(last) => Some(last.next()),
            None => self.segments.front().map(|segment| segment.number),
        }
    }

    /// Position of the last part of a track. A gap counts as one part.
    #[must_use]
    pub fn edge(&self, track: usize) -> Option<Edge> {
        let last = |segment: &Segment| {
            let of_track = segment.track(track)?;
            let part = match of_track.parts.last() {
                Some(part) => part.index,
                None if of_track.is_closed() => 0,
                None => return None,
            };
            Some(Edge { segment: segment.number, part })
        };
        self.segments.iter().rev().find_map(last)
    }

    /// Position of the next part of a track, at which playlists hint.
    #[must_use]
    pub fn hint(&self, track: usize) -> Option<Edge> {
        let segment = self.next_segment(track)?;
        let of_track = self.segment(segment).and_then(|segment| segment.track(track));
        if of_track.is_some_and(|of_track| of_track.is_lost) {
            return Some(Edge { segment: segment.next(), part: 0 });
        }
        let part = of_track.and_then(|of_track| of_track.parts.last());
        Some(Edge { segment, part: part.map_or(0, |part| part.index.saturating_add(1)) })
    }

    /// Whether a part comes after the next one of its track, by a segment at most.
    #[must_use]
    pub fn is_ahead(&self, track: usize, place: Edge) -> bool {
        self.hint(track).is_some_and(|hint| place > hint && place.segment <= hint.segment.next())
    }

    /// Looks a part up.
    #[must_use]
    pub fn part(&self, track: usize, place: Edge) -> PartLookUp<'_> {
        let parts = self.segment(place.segment).and_then(|segment| segment.track(track)).map(TrackSegment::parts);
        match parts.and_then(|parts| parts.get(usize::from(place.part))) {
            Some(part) => PartLookUp::Complete(part),
            None if self.hint(track) == Some(place) => PartLookUp::Next,
            None => PartLookUp::Unknown,
        }
    }

    /// Whether a track has subtitles.
    #[must_use]
    pub fn is_text(&self, track: usize) -> bool {
        self.tracks.get(track).is_some_and(|track| track.kind == MediaKind::Text)
    }

    /// Whether all tracks have a complete segment, so that players can begin. Subtitles may have none.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let is_ready = |track| self.last_closed(track).is_some_and(|last| self.is_ended || last >= self.own);
        // Subtitles come later, and players ask for them later.
        let mut media = (0..self.tracks.len()).filter(|track| !self.is_text(*track)).peekable();
        self.targets.is_some() && media.peek().is_some() && media.all(is_ready)
    }

    /// Whether all subtitles have a complete segment, where there are any.
    #[must_use]
    pub fn has_begun_texts(&self) -> bool {
        let is_begun = |track| self.last_closed(track).is_some_and(|last| self.is_ended || last >= self.own);
        (0..self.tracks.len()).filter(|track| self.is_text(*track)).all(is_begun)
    }

    /// All epochs that the window remembers, the oldest first.
    pub fn epochs(&self) -> impl DoubleEndedIterator<Item = &WindowEpoch> {
        self.epochs.iter()
    }
}

#[cfg(test)]
mod tests;
