//! Blocks of some consecutive fragments. A fragment begins with a frame that a cue names.

use super::clusters::{Block, Clusters, Event, Mark};
use crate::{error::MediaError, units::ByteRange, work::Work};
use bytes::Bytes;

/// Bytes of a request.
const READ: u64 = 1 << 20;
/// Most bytes behind its range in which the frame that ends a stretch is searched.
const MOST_MORE: u64 = 16 << 20;

/// The frames at which a stretch begins and ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// `None` where the stretch begins with the first cluster.
    pub(super) begin: Option<Mark>,
    /// `None` where the stretch ends with the segment.
    pub(super) until: Option<Mark>,
}

impl Marks {
    /// All of a segment.
    pub(super) const ALL: Self = Self { begin: None, until: None };
}

/// Reads the blocks from one mark up to another.
#[derive(Debug)]
pub(super) struct Stretch {
    clusters: Clusters,
    range: ByteRange,
    /// `None` where the stretch begins with the first cluster, or once its first frame was found.
    begin: Option<Mark>,
    /// `None` where the stretch ends with the segment.
    until: Option<Mark>,
    segment_end: u64,
    is_over: bool,
}

impl Stretch {
    /// Creates a reader of the blocks in `range`, of a segment that ends at `end`.
    pub(super) fn new(range: ByteRange, marks: Marks, end: u64, work: Work) -> Self {
        let Marks { begin, until } = marks;
        let mut clusters = Clusters::new(range, end, READ, work);
        if let Some(mark) = until {
            clusters.end_at(mark);
        }
        Self { clusters, range, begin, until, segment_end: end, is_over: false }
    }

    /// Shows the beginning of the next frame of a track.
    pub(super) fn show_first_of(&mut self, track: u64) {
        self.clusters.show_first_of(track);
    }

    /// Takes the bytes of the range that was needed.
    pub(super) fn supply(&mut self, bytes: Bytes) {
        self.clusters.supply(bytes);
    }

    /// Frames of the block that was returned last.
    pub(super) fn frames(&self) -> &[ByteRange] {
        self.clusters.frames()
    }

    /// Beginning of the first frame of the last block, as far as its bytes are available.
    pub(super) fn available(&self) -> &[u8] {
        self.clusters.available()
    }

    /// Whether the segment ends within an element.
    pub(super) fn is_cut_short(&self) -> bool {
        self.clusters.is_cut_short()
    }

    /// Returns the next block of the stretch.
    ///
    /// # Errors
    /// The frame of a mark is not there, or the job has ended.
    pub(super) fn next(&mut self) -> Result<Event, MediaError> {
        while !self.is_over {
            let farthest = self.range.end.saturating_add(MOST_MORE);
            match self.clusters.next()? {
                Event::Block(block) if self.begins(&block) => return Ok(Event::Block(block)),
                Event::Block(_) => {}
                needs @ Event::Needs(_) if self.clusters.at() < farthest => return Ok(needs),
                Event::Needs(_) => return Err(self.missing()),
                Event::End
                    if self.begin.is_some() || self.until.is_some() && self.clusters.at() >= self.segment_end =>
                {
                    return Err(self.missing());
                }
                Event::End => self.is_over = true,
            }
        }
        Ok(Event::End)
    }

    /// Whether the first frame was found, now or before.
    fn begins(&mut self, block: &Block) -> bool {
        if self.begin.is_some_and(|mark| !block.is_key || !mark.is(block.track, block.time)) {
            return false;
        }
        self.begin = None;
        true
    }

    fn missing(&self) -> MediaError {
        let mark = self.begin.or(self.until).unwrap_or(Mark { track: 0, time: 0 });
        let expected = format!("a frame of track {} at tick {}, as the cues say", mark.track, mark.time);
        MediaError::invalid("Cluster", self.range.start, "no such frame", expected)
    }
}
