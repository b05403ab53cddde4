//! Samples that lie in several objects: the index of a stitched title.
//!
//! Offsets of its sample tables have the number of the object in their upper bits. So one table holds samples of several objects,
//! and no run of neighbouring samples crosses from one object into the next.

use crate::units::ByteRange;

/// Bits of an offset in an object: 16 TiB.
const OFFSET_BITS: u32 = 44;

/// The objects of a stitched movie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stitched {
    /// Number of objects that samples lie in, from object 0.
    pub objects: u16,
    /// The reason why one decoder can't play all items; `None` where one can. Tracks then lack the samples of such items, and only
    /// clips have them.
    pub split: Option<String>,
    /// Times at which the items begin, in nanoseconds of the title.
    pub starts: Vec<i64>,
    /// For each clip of the movie, the item that it shows, counted from 0. An item has no clip of a track that its file lacks.
    pub clip_items: Vec<usize>,
}

impl Stitched {
    /// Returns the object of a sample's range, and the range in it.
    #[must_use]
    pub const fn place(range: ByteRange) -> (u16, ByteRange) {
        let object = range.start >> OFFSET_BITS;
        let base = object << OFFSET_BITS;
        (object as u16, ByteRange { start: range.start - base, end: range.end - base })
    }

    /// Bytes of heap held.
    pub(crate) fn heap_bytes(&self) -> usize {
        let items = self.starts.capacity() * size_of::<i64>() + self.clip_items.capacity() * size_of::<usize>();
        size_of::<Self>() + items + self.split.as_ref().map_or(0, String::len)
    }

    /// Returns the offset that stands for one in an object; `None` beyond 16 TiB.
    #[must_use]
    pub(crate) fn offset(object: u16, offset: u64) -> Option<u64> {
        (offset >> OFFSET_BITS == 0).then_some((u64::from(object) << OFFSET_BITS) | offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_names_its_object() {
        let start = Stitched::offset(3, 1000).unwrap();
        assert_eq!(Stitched::place(ByteRange::at(start, 50)), (3, ByteRange::at(1000, 50)));
        assert_eq!(Stitched::place(ByteRange::at(7, 50)), (0, ByteRange::at(7, 50)));
        let last = (1 << OFFSET_BITS) - 1;
        let start = Stitched::offset(u16::MAX, last).unwrap();
        assert_eq!(Stitched::place(ByteRange::at(start, 1)), (u16::MAX, ByteRange::at(last, 1)));
        assert_eq!(Stitched::offset(0, 1 << OFFSET_BITS), None);
    }
}
