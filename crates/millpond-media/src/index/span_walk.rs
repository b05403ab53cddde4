//! Walks the boxes of a stretch of an object that an index of fragments names, and gathers its `moof` boxes.

use crate::{
    boxes::show,
    error::MediaError,
    index::lane::{Here, Lane},
    units::ByteRange,
    work::Work,
};
use bytes::Bytes;

/// Bytes read where the next box is not known.
const HOP: u64 = 4 << 10;
/// Most boxes of a stretch.
const MOST_BOXES: u32 = 1 << 16;
/// Bytes of heap that a fragment takes besides its box.
const FRAGMENT_HEAP: u64 = 128;

/// The walk over one stretch.
#[derive(Debug)]
pub(crate) struct SpanWalk {
    lane: Lane,
    /// Fragments found, with their offsets.
    moofs: Vec<(u64, Bytes)>,
    /// Whether there are boxes of media other than fragments.
    has_media: bool,
    largest: u64,
    held: u64,
    limit: u64,
    boxes: u32,
    work: Work,
}

impl SpanWalk {
    /// Creates a walk over `range`, which holds at most `limit` bytes of fragments.
    pub(crate) fn new(range: ByteRange, limit: u64, work: Work) -> Self {
        let (lane, moofs) = (Lane::new(range.start, range.end), Vec::new());
        Self { lane, moofs, has_media: false, largest: 0, held: 0, limit, boxes: 0, work }
    }

    /// Offset of the next byte that is needed.
    pub(crate) fn needed_from(&self) -> u64 {
        self.lane.held_to()
    }

    /// Takes the bytes of the range that was needed.
    pub(crate) fn supply(&mut self, bytes: Bytes) {
        self.lane.append(bytes);
    }

    /// Walks as far as the bytes allow. Returns the range needed next; `None` at the end.
    ///
    /// # Errors
    /// The stretch is not made of whole boxes, or holds too many.
    pub(crate) fn step(&mut self) -> Result<Option<ByteRange>, MediaError> {
        loop {
            let at = self.lane.at();
            self.work.spend(1).map_err(|error| MediaError::work("moof", at, error))?;
            let (kind, size) = match self.lane.here() {
                Here::End => return Ok(None),
                Here::Unknown => {
                    return Ok(Some(self.lane.want((self.largest + self.largest / 2).max(HOP))));
                }
                Here::Garbage => {
                    let found = "bytes that are no box".to_owned();
                    return Err(MediaError::invalid("fragment", at, found, "the boxes that an index names"));
                }
                Here::Box { header, size } => (header.kind, size),
            };
            if size > self.lane.left() {
                return Err(MediaError::truncated(show(kind), at, self.lane.left(), size));
            }
            if &kind == b"moof" {
                if self.held.saturating_add(size) > self.limit {
                    return Err(MediaError::too_large("moof", at, size, self.limit, "bytes of metadata"));
                }
                let Some(bytes) = self.lane.bytes(size) else { return Ok(Some(self.lane.want(size))) };
                // A copy, because a part would keep everything that was read with it.
                self.moofs.push((at, Bytes::copy_from_slice(&bytes)));
                self.held += size + FRAGMENT_HEAP;
                self.largest = self.largest.max(size);
            }
            self.has_media |= matches!(&kind, b"mdat" | b"moov" | b"sidx" | b"styp");
            self.boxes += 1;
            if self.boxes > MOST_BOXES {
                let (found, most) = (u64::from(self.boxes), u64::from(MOST_BOXES));
                return Err(MediaError::too_large(show(kind), at, found, most, "boxes between two fragments"));
            }
            self.lane.advance(size);
        }
    }

    /// Fragments found so far, with their offsets.
    pub(crate) fn moofs(&self) -> &[(u64, Bytes)] {
        &self.moofs
    }

    /// Whether a box of media was found.
    pub(crate) fn has_media(&self) -> bool {
        self.has_media || !self.moofs.is_empty()
    }
}
