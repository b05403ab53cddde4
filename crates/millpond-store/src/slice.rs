//! A slice: its name, and its bytes.

use bytes::Bytes;

/// The name of a slice: its object, and its number in it, from 0.
///
/// An object's number belongs to one version of it, so slices of two versions can't be mixed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SliceId {
    pub(crate) object: u64,
    pub(crate) index: u64,
}

/// The bytes of a slice from its start on, in the pieces they were published in: parts of one allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slice {
    /// Each piece with the offset of its end.
    pieces: Vec<(usize, Bytes)>,
}

impl SliceId {
    /// Returns the key of the slice in ledgers.
    pub(crate) fn key(self) -> u64 {
        let mut mixed = self.object ^ self.index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ (mixed >> 32)
    }
}

impl Slice {
    /// Appends bytes.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        self.pieces.push((self.filled() + bytes.len(), bytes));
    }

    /// Returns the number of bytes.
    pub(crate) fn filled(&self) -> usize {
        self.pieces.last().map_or(0, |(end, _)| *end)
    }

    /// Returns all pieces in order.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &Bytes> {
        self.pieces.iter().map(|(_, bytes)| bytes)
    }

    /// Returns the bytes from `offset` to the end of its piece; `None` behind the last byte.
    pub(crate) fn at(&self, offset: usize) -> Option<Bytes> {
        let index = self.pieces.partition_point(|(end, _)| *end <= offset);
        let (end, bytes) = self.pieces.get(index)?;
        let begin = end - bytes.len();
        Some(bytes.slice(offset - begin..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_slice_by_offset() {
        let mut slice = Slice::default();
        assert!(slice.at(0).is_none());
        slice.push(Bytes::from_static(b"abc"));
        slice.push(Bytes::from_static(b"de"));
        assert_eq!(slice.filled(), 5);
        assert_eq!(slice.at(0).unwrap(), "abc");
        assert_eq!(slice.at(2).unwrap(), "c");
        assert_eq!(slice.at(3).unwrap(), "de");
        assert!(slice.at(5).is_none());
    }
}
