//! A reader of bit fields whose errors name the byte in the object.

use crate::{bits::BitReader, boxes::Node, error::MediaError};

/// Reads fields of 1 to 32 bits. A read past the end is an error that names the offset.
#[derive(Clone, Debug)]
pub(super) struct FieldReader<'a, 'p> {
    bits: BitReader<'a>,
    offset: u64,
    path: &'p str,
}

impl<'a, 'p> FieldReader<'a, 'p> {
    /// Creates a reader of `bytes`, which are at `offset` of the object in the box `path`.
    pub(super) fn new(bytes: &'a [u8], offset: u64, path: &'p str) -> Self {
        Self { bits: BitReader::new(bytes), offset, path }
    }

    /// Creates a reader of the body of a box.
    pub(super) fn of(node: &'p Node<'a>) -> Self {
        Self::new(node.body, node.body_offset(), &node.path)
    }

    /// Creates a reader of the body of a full box (ISO/IEC 14496-12 4.2) after its version and flags; also returns the
    /// version.
    pub(super) fn of_full(node: &'p Node<'a>) -> Result<(u8, Self), MediaError> {
        let mut reader = Self::of(node);
        let version = reader.u8()?;
        reader.skip(24)?;
        Ok((version, reader))
    }

    /// Number of unread bits.
    pub(super) fn left(&self) -> usize {
        self.bits.left()
    }

    /// Returns the next `width` bits, at most 32.
    pub(super) fn bits(&mut self, width: u32) -> Result<u32, MediaError> {
        let width = width.min(32) as usize;
        self.bits.bits(width).ok_or_else(|| self.cut(width.div_ceil(8)))
    }

    /// One bit.
    pub(super) fn flag(&mut self) -> Result<bool, MediaError> {
        Ok(self.bits(1)? != 0)
    }

    /// Returns the next 8 bits.
    pub(super) fn u8(&mut self) -> Result<u8, MediaError> {
        Ok(self.bits(8)? as u8)
    }

    /// Returns the next 16 bits.
    pub(super) fn u16(&mut self) -> Result<u16, MediaError> {
        Ok(self.bits(16)? as u16)
    }

    /// Returns a field of at most 8 bits.
    pub(super) fn small(&mut self, width: u32) -> Result<u8, MediaError> {
        Ok(self.bits(width.min(8))? as u8)
    }

    /// Skips `width` bits.
    pub(super) fn skip(&mut self, width: usize) -> Result<(), MediaError> {
        self.bits.skip(width).ok_or_else(|| self.cut(width.div_ceil(8)))
    }

    /// Skips to the next byte boundary.
    pub(super) fn align(&mut self) {
        self.bits.align();
    }

    /// Returns the next `count` bytes, from the next byte boundary on.
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], MediaError> {
        self.bits.aligned_bytes(count).ok_or_else(|| self.cut(count))
    }

    /// Returns a reader of the next `count` bytes alone, and skips them.
    pub(super) fn part(&mut self, count: usize) -> Result<Self, MediaError> {
        self.align();
        let offset = self.at();
        Ok(Self::new(self.take(count)?, offset, self.path))
    }

    /// Returns all bytes from the next byte boundary on.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bits.rest()
    }

    /// Offset in the object of the byte that holds the next bit.
    pub(super) fn at(&self) -> u64 {
        self.offset.saturating_add(self.bits.position() as u64 / 8)
    }

    /// Returns an error about the field that was just read.
    pub(super) fn invalid(&self, found: impl Into<String>, expected: impl Into<String>) -> MediaError {
        MediaError::invalid(self.path, self.before(), found, expected)
    }

    /// Returns an error that names an unsupported value of the field just read.
    pub(super) fn unsupported(&self, found: impl Into<String>) -> MediaError {
        MediaError::unsupported(self.path, self.before(), found)
    }

    fn before(&self) -> u64 {
        self.offset.saturating_add(self.bits.position().saturating_sub(1) as u64 / 8)
    }

    fn cut(&self, wanted: usize) -> MediaError {
        MediaError::truncated(self.path, self.at(), (self.left() / 8) as u64, wanted as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_cross_bytes() {
        let mut reader = FieldReader::new(&[0b1010_0101, 0xff, 0x01, 0x80], 100, "x");
        assert_eq!(reader.bits(3), Ok(0b101));
        assert_eq!(reader.bits(9), Ok(0b0_0101_1111));
        assert_eq!(reader.at(), 101);
        assert_eq!(reader.take(1), Ok(&[0x01][..]));
        assert_eq!(reader.flag(), Ok(true));
        assert_eq!(reader.left(), 7);
        assert_eq!(reader.bits(8), Err(MediaError::truncated("x", 103, 0, 1)));
        assert_eq!(reader.bits(7), Ok(0));
    }

    #[test]
    fn a_count_that_overflows_is_cut_short() {
        let mut reader = FieldReader::new(&[1, 2], 0, "x");
        assert!(reader.take(usize::MAX).is_err());
        assert!(reader.skip(usize::MAX).is_err());
        assert_eq!(reader.u16(), Ok(0x0102));
    }

    proptest! {
        #[test]
        fn pieces_are_the_whole(value: u64, first in 0_u32..=32) {
            let bytes = value.to_be_bytes();
            let mut reader = FieldReader::new(&bytes, 0, "x");
            let high = u64::from(reader.bits(first).unwrap());
            let middle = u64::from(reader.bits(32 - first).unwrap());
            let low = u64::from(reader.bits(32).unwrap());
            let high = if first == 0 { 0 } else { high << (64 - first) };
            prop_assert_eq!(high | middle << 32 | low, value);
        }
    }
}
