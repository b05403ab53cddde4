//! Blocks of some consecutive fragments. A fragment begins with a frame that a cue names.

use super::clusters::{Block, Clusters, Event};
use crate::{error::MediaError, units::ByteRange, work::Work};
use bytes::Bytes;

/// Bytes of a request.
pub(super) const READ: u64 = 1 << 20;
/// Bytes by which a stretch grows where the frame that ends it was not found.
const MORE: u64 = 256 << 10;
/// Ticks by which writers round the time of a cue differently than that of its frame.
const ROUNDED: u64 = 1;
/// Most bytes by which it grows.
const MOST_MORE: u64 = 16 << 20;

/// First frame of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) track: u64,
    /// Time in ticks of the segment.
    pub(super) time: i64,
}

/// Reads the blocks from one mark up to another.
#[derive(Debug)]
pub(super) struct Stretch {
    clusters: Clusters,
    start: u64,
    /// `None` where the stretch begins with the first cluster, or once its first frame was found.
    begin: Option<Mark>,
    /// `None` where the stretch ends with the segment.
    until: Option<Mark>,
    /// Byte at which it ends at first, and at which the segment ends.
    ends: (u64, u64),
    is_over: bool,
}

impl Stretch {
    /// Creates a reader of the blocks in `range`, of a segment that ends at `end`.
    pub(super) fn new(range: ByteRange, (begin, until): (Option<Mark>, Option<Mark>), end: u64, work: Work) -> Self {
        let clusters = Clusters::new(range, READ, work);
        Self { clusters, start: range.start, begin, until, ends: (range.end, end), is_over: false }
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

    /// Whether the segment ends within an element.
    pub(super) fn is_cut_short(&self) -> bool {
        self.clusters.is_cut_short()
    }

    /// Returns the next block of the stretch.
    ///
    /// # Errors
    /// The frame of a mark is not there, or the job has ended.
    pub(super) fn next(&mut self) -> Result<Event, MediaError> {
        loop {
            if self.is_over {
                return Ok(Event::End);
            }
            match self.clusters.next()? {
                Event::Block(block) => {
                    if self.until.is_some_and(|mark| is_at(&block, mark)) && self.begin.is_none() {
                        self.is_over = true;
                        continue;
                    }
                    if let Some(mark) = self.begin {
                        if !is_at(&block, mark) {
                            continue;
                        }
                        self.begin = None;
                    }
                    return Ok(Event::Block(block));
                }
                Event::End if self.until.is_none() && self.begin.is_none() => return Ok(Event::End),
                // The hint of a cue may be missing or wrong.
                Event::End => self.grow()?,
                needs @ Event::Needs(_) => return Ok(needs),
            }
        }
    }

    fn grow(&mut self) -> Result<(), MediaError> {
        let (first, segment) = self.ends;
        let end = self.clusters.end();
        let grown = end.saturating_add(MORE).min(segment);
        let mark = self.begin.or(self.until);
        match mark {
            Some(Mark { track, time }) if grown == end || grown > first.saturating_add(MOST_MORE) => {
                let expected = format!("a frame of track {track} at tick {time}, as the cues say");
                Err(MediaError::invalid("Cluster", self.start, "no such frame", expected))
            }
            _ => {
                self.clusters.extend(grown);
                Ok(())
            }
        }
    }
}

/// Whether a block begins with the frame of a mark.
fn is_at(block: &Block, mark: Mark) -> bool {
    block.is_key && block.track == mark.track && block.time.abs_diff(mark.time) <= ROUNDED
}
