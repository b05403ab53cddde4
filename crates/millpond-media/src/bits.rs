//! A reader of bit fields, most significant bit first.

/// Reads bits; `None` past the end.
#[derive(Clone, Debug)]
pub(crate) struct BitReader<'a> {
    bytes: &'a [u8],
    bit: usize,
}

impl<'a> BitReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, bit: 0 }
    }

    /// Number of unread bits.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len().saturating_mul(8).saturating_sub(self.bit)
    }

    /// Number of bits read.
    pub(crate) fn position(&self) -> usize {
        self.bit
    }

    /// Returns the next `width` bits, at most 32.
    pub(crate) fn bits(&mut self, width: usize) -> Option<u32> {
        let end = self.bit.checked_add(width).filter(|end| *end <= self.bytes.len() * 8)?;
        let mut value = 0_u64;
        while self.bit < end {
            let byte = u64::from(*self.bytes.get(self.bit / 8)?);
            let unread = 8 - self.bit % 8;
            let taken = unread.min(end - self.bit);
            value = value << taken | byte >> (unread - taken) & ((1 << taken) - 1);
            self.bit += taken;
        }
        Some(value as u32)
    }

    /// Returns the next bit.
    pub(crate) fn flag(&mut self) -> Option<bool> {
        self.bits(1).map(|bit| bit != 0)
    }

    /// Skips `width` bits.
    pub(crate) fn skip(&mut self, width: usize) -> Option<()> {
        self.bit = self.bit.checked_add(width).filter(|end| *end <= self.bytes.len() * 8)?;
        Some(())
    }

    /// Skips to the next byte boundary.
    pub(crate) fn align(&mut self) {
        self.bit = self.bit.next_multiple_of(8);
    }

    /// Returns the next `count` bytes, from the next byte boundary on.
    pub(crate) fn aligned_bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        self.align();
        let start = self.bit / 8;
        let taken = self.bytes.get(start..start.checked_add(count)?)?;
        self.bit += count * 8;
        Some(taken)
    }

    /// Returns all bytes from the next byte boundary on.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.bit.div_ceil(8)..).unwrap_or_default()
    }

    /// Returns the next `count` bytes, which may begin within a byte.
    pub(crate) fn bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        let (start, shift) = (self.bit / 8, self.bit % 8);
        self.skip(count.checked_mul(8)?)?;
        if shift == 0 {
            return self.bytes.get(start..start + count).map(<[u8]>::to_vec);
        }
        let pairs = self.bytes.get(start..=start + count)?.windows(2);
        Some(pairs.map(|pair| pair[0] << shift | pair[1] >> (8 - shift)).collect())
    }

    /// Returns an unsigned number in Exp-Golomb code (H.264 9.1).
    pub(crate) fn golomb(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while !self.flag()? {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        Some(((1_u64 << zeros) - 1 + u64::from(self.bits(zeros)?)) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_bytes_and_numbers() {
        let mut reader = BitReader::new(&[0b1010_0101, 0xff, 0x01, 0b0010_1100]);
        assert_eq!(reader.bits(3), Some(5));
        assert_eq!(reader.bytes(2), Some(vec![0b0010_1111, 0b1111_1000]));
        assert_eq!(reader.position(), 19);
        assert_eq!(reader.bits(5), Some(1));
        assert_eq!((reader.golomb(), reader.golomb()), (Some(4), Some(0)));
        assert_eq!(BitReader::new(&[1]).bits(9), None);
        assert_eq!(BitReader::new(&[0; 9]).golomb(), None);
        assert_eq!(BitReader::new(&[1, 2]).bytes(usize::MAX), None);
    }
}
