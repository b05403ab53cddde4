//! Segments in memory: the parts of all tracks between two boundaries.

use super::part::{Part, SegmentNumber};
use std::time::Duration;

/// One segment of all tracks.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Its number.
    pub number: SegmentNumber,
    /// Its epoch.
    pub epoch: u32,
    /// Its discontinuity sequence number (RFC 8216 4.3.3.3), common to all tracks.
    pub discontinuity: u64,
    /// Presentation time of its beginning as stream time.
    pub start: Duration,
    /// Wall time of its beginning, since the Unix epoch. It never falls from one segment to the next.
    pub wall: Duration,
    /// Whether the leading track begins it with a key frame.
    pub is_independent: bool,
    /// Time of the media between the window's first segment and this one, without the time between epochs.
    pub(super) media: Duration,
    pub(super) tracks: Box<[TrackSegment]>,
}

/// Fields of a segment that are fixed when the segment begins. The fields are those of [`Segment`].
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentHead {
    pub(super) number: SegmentNumber,
    pub(super) epoch: u32,
    pub(super) discontinuity: u64,
    pub(super) start: Duration,
    pub(super) wall: Duration,
    pub(super) is_independent: bool,
}

/// The part of a segment that belongs to one track.
#[derive(Clone, Debug, Default)]
pub struct TrackSegment {
    pub(super) parts: Vec<Part>,
    pub(super) closed: Option<(i64, i64)>,
    pub(super) bytes: u64,
    pub(super) heap: u64,
    pub(super) is_lost: bool,
    /// Whether its parts are kept elsewhere too.
    pub(super) is_stored: bool,
}

impl Segment {
    pub(super) fn new(head: SegmentHead, media: Duration, tracks: usize) -> Self {
        let SegmentHead { number, epoch, discontinuity, start, wall, is_independent } = head;
        let tracks = vec![TrackSegment::default(); tracks].into();
        Self { number, epoch, discontinuity, start, wall, is_independent, media, tracks }
    }

    /// Returns the segment of one track.
    #[must_use]
    pub fn track(&self, track: usize) -> Option<&TrackSegment> {
        self.tracks.get(track)
    }

    /// Whether it is complete in all tracks.
    pub(super) fn is_closed(&self) -> bool {
        self.tracks.iter().all(TrackSegment::is_closed)
    }

    /// Bytes of memory that it holds.
    pub(super) fn heap_bytes(&self) -> u64 {
        let fixed = size_of::<Self>() + self.tracks.len() * size_of::<TrackSegment>();
        fixed as u64 + self.tracks.iter().map(|track| track.heap).sum::<u64>()
    }
}

impl TrackSegment {
    /// Returns the parts so far, in order.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether no further part follows.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Whether it is complete but has no media.
    #[must_use]
    pub fn is_gap(&self) -> bool {
        self.is_lost || (self.is_closed() && self.parts.is_empty() && !self.is_stored)
    }

    /// Presentation time of its beginning as stream time, in ticks of the track; `None` before its first part.
    #[must_use]
    pub fn start(&self) -> Option<i64> {
        self.closed.map(|(start, _)| start).or_else(|| self.parts.first().map(|part| part.start))
    }

    /// Ticks that it lasts, up to its last part.
    #[must_use]
    pub fn duration(&self) -> i64 {
        let parts = || self.parts.iter().map(|part| part.duration).fold(0, i64::saturating_add);
        self.closed.map_or_else(parts, |(_, duration)| duration)
    }

    /// Length of its parts in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Ends it earlier than before, and drops the parts behind the new end. Returns the bytes of memory that they held.
    pub(super) fn shorten(&mut self, (start, duration): (i64, i64)) -> u64 {
        self.closed = None;
        let mut freed = 0_u64;
        while self.duration() > duration
            && let Some(part) = self.parts.pop()
        {
            self.bytes = self.bytes.saturating_sub(part.len());
            freed = freed.saturating_add(part.heap_bytes());
        }
        self.heap = self.heap.saturating_sub(freed);
        self.closed = Some((start, duration));
        freed
    }

    /// Drops the parts from memory. The segment becomes a gap, unless they are kept elsewhere. Returns the bytes of memory that
    /// they held.
    pub(super) fn retire(&mut self) -> u64 {
        if !self.is_stored {
            return self.lose();
        }
        self.parts = Vec::new();
        std::mem::take(&mut self.heap)
    }

    /// Drops the parts: the segment becomes a gap. Returns the bytes of memory that they held.
    pub(super) fn lose(&mut self) -> u64 {
        self.is_lost = true;
        self.parts = Vec::new();
        self.bytes = 0;
        std::mem::take(&mut self.heap)
    }
}
