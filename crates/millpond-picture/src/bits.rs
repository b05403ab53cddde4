//! Reading of bits, and of Exp-Golomb codes (9.1).
//!
//! This reader is not the one of `millpond-media`. Decoding peeks at 16 bits for each code of CAVLC and takes single bits for CABAC, both
//! past the end. On 4 MB of random bytes, optimized, peeking took 30 ms against 66 ms with that reader, and single bits 19 ms against
//! 71 ms. Exp-Golomb codes took 107 ms against 122 ms.

use crate::DecodeError;

/// Returns the bytes of a NAL unit without emulation prevention bytes (7.3.1).
pub(crate) fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut zeros = 0;
    for byte in bytes {
        if zeros >= 2 && *byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if *byte == 0 { zeros + 1 } else { 0 };
        out.push(*byte);
    }
    out
}

/// Reads bits, most significant first.
#[derive(Clone, Debug)]
pub(crate) struct BitReader<'a> {
    bytes: &'a [u8],
    bit: usize,
    /// Place of the last bit that is one: the stop bit of a payload. `None` where all bits are zero.
    stop: Option<usize>,
}

impl<'a> BitReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let last = bytes.iter().enumerate().rfind(|(_, byte)| **byte != 0);
        let stop = last.map(|(place, byte)| place * 8 + 7 - byte.trailing_zeros() as usize);
        Self { bytes, bit: 0, stop }
    }

    /// Number of bits that are left.
    pub(crate) fn left(&self) -> usize {
        (self.bytes.len() * 8).saturating_sub(self.bit)
    }

    /// Returns the next bit; 0 past the end.
    pub(crate) fn bit_or_zero(&mut self) -> u32 {
        let byte = self.bytes.get(self.bit / 8).copied().unwrap_or(0);
        let bit = byte >> (7 - self.bit % 8) & 1;
        self.bit += 1;
        u32::from(bit)
    }

    /// Returns the next 16 bits without reading them; zeros past the end.
    pub(crate) fn peek(&self) -> u32 {
        let at = self.bit / 8;
        let byte = |n: usize| u32::from(self.bytes.get(at + n).copied().unwrap_or(0));
        let three = byte(0) << 16 | byte(1) << 8 | byte(2);
        three >> (8 - self.bit % 8) & 0xffff
    }

    /// Skips bits that were peeked at.
    pub(crate) fn skip(&mut self, count: usize) -> Result<(), DecodeError> {
        if self.left() < count {
            return Err(DecodeError::Truncated("bits"));
        }
        self.bit += count;
        Ok(())
    }

    /// Returns the next `count` bits, at most 32.
    pub(crate) fn bits(&mut self, count: usize) -> Result<u32, DecodeError> {
        if self.left() < count {
            return Err(DecodeError::Truncated("bits"));
        }
        Ok((0..count).fold(0, |value, _| value << 1 | self.bit_or_zero()))
    }

    pub(crate) fn flag(&mut self) -> Result<bool, DecodeError> {
        self.bits(1).map(|bit| bit == 1)
    }

    /// Returns an unsigned number.
    pub(crate) fn ue(&mut self) -> Result<u32, DecodeError> {
        let mut zeros = 0;
        while !self.flag()? {
            zeros += 1;
            if zeros > 31 {
                return Err(DecodeError::Invalid("number"));
            }
        }
        Ok((1_u32 << zeros).wrapping_sub(1).wrapping_add(self.bits(zeros)?))
    }

    /// Returns an unsigned number of at most `most`.
    pub(crate) fn ue_at_most(&mut self, most: u32, what: &'static str) -> Result<usize, DecodeError> {
        let value = self.ue()?;
        if value > most { Err(DecodeError::Invalid(what)) } else { Ok(value as usize) }
    }

    /// Returns a signed number.
    pub(crate) fn se(&mut self) -> Result<i32, DecodeError> {
        let value = i64::from(self.ue()?);
        let half = (value + 1) / 2;
        i32::try_from(if value % 2 == 0 { -half } else { half }).map_err(|_| DecodeError::Invalid("number"))
    }

    /// Returns a signed number within bounds.
    pub(crate) fn se_within(&mut self, least: i32, most: i32, what: &'static str) -> Result<i32, DecodeError> {
        let value = self.se()?;
        if (least..=most).contains(&value) { Ok(value) } else { Err(DecodeError::Invalid(what)) }
    }

    /// Goes to the next byte, and returns `count` bytes.
    pub(crate) fn aligned_bytes(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let start = self.bit.div_ceil(8);
        let bytes = self.bytes.get(start..start.saturating_add(count)).ok_or(DecodeError::Truncated("samples"))?;
        self.bit = (start + count) * 8;
        Ok(bytes)
    }

    /// Goes to the next byte.
    pub(crate) fn align(&mut self) {
        self.bit = self.bit.next_multiple_of(8);
    }

    /// Whether payload follows: more than the stop bit and zeros (`more_rbsp_data`, 7.2).
    pub(crate) fn has_more(&self) -> bool {
        self.stop.is_some_and(|stop| self.bit < stop)
    }
}
