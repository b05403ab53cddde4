//! STREAMINFO and frame headers of FLAC (RFC 9639 8.2 and 9.1).

use super::flac_crc::crc8;
use crate::bits::BitReader;

/// Properties of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamInfo {
    /// Samples per channel in the shortest and the longest frame.
    pub(super) blocks: (u32, u32),
    pub(super) sample_rate: u32,
    pub(super) channels: u32,
    pub(super) bits: u32,
}

impl StreamInfo {
    /// Bytes of the block without its header.
    pub(super) const BYTES: usize = 34;

    /// Reads the body of the block; `None` for too few bytes, and for a rate of 0.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let mut fields = BitReader::new(body.get(..Self::BYTES)?);
        let blocks = (fields.bits(16)?, fields.bits(16)?);
        // Bytes of the shortest and the longest frame.
        fields.skip(48)?;
        let sample_rate = fields.bits(20).filter(|rate| *rate > 0)?;
        let (channels, bits) = (fields.bits(3)? + 1, fields.bits(5)? + 1);
        Some(Self { blocks, sample_rate, channels, bits })
    }

    /// Whether a frame is one of the stream.
    pub(super) fn has(&self, header: &FrameHeader) -> bool {
        header.channels == self.channels
            && header.sample_rate.is_none_or(|rate| rate == self.sample_rate)
            && header.bits.is_none_or(|bits| bits == self.bits)
    }

    /// Bytes that a frame has at most: twice those of its samples without compression.
    pub(super) fn most_bytes(&self, block: u32) -> usize {
        let bits = u64::from(block) * u64::from(self.channels) * u64::from(self.bits + 1);
        usize::try_from(bits / 8 * 2 + 256).unwrap_or(usize::MAX)
    }
}

/// Header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    /// Samples per channel.
    pub(super) block: u32,
    /// `None` where STREAMINFO states it.
    pub(super) sample_rate: Option<u32>,
    pub(super) channels: u32,
    /// Bits per sample; `None` where STREAMINFO states them.
    pub(super) bits: Option<u32>,
    /// Number of the frame, or of its first sample where the length of frames varies.
    pub(super) number: u64,
    /// Whether the length of frames varies.
    pub(super) is_variable: bool,
    /// Bytes of the header.
    pub(super) length: usize,
}

impl FrameHeader {
    /// Bytes that hold every header.
    pub(super) const MOST: usize = 16;

    /// Whether bytes may begin a header: the sync code, and a bit that is 0.
    pub(super) fn begins(bytes: &[u8]) -> bool {
        matches!(bytes, [0xff, second, ..] if second & 0xfe == 0xf8)
    }

    /// Reads a header and checks its CRC; `None` where the bytes begin with none.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        if !Self::begins(bytes) {
            return None;
        }
        let mut fields = BitReader::new(bytes.get(..Self::MOST).unwrap_or(bytes));
        fields.skip(15)?;
        let is_variable = fields.flag()?;
        let (block, rate) = (fields.bits(4)?, fields.bits(4)?);
        let channels = match fields.bits(4)? {
            mode @ 0..=7 => mode + 1,
            8..=10 => 2,
            _ => return None,
        };
        let bits = match fields.bits(3)? {
            0 => None,
            3 => return None,
            code => Some([0, 8, 12, 0, 16, 20, 24, 32][code as usize & 7]),
        };
        if fields.flag()? {
            return None;
        }
        let number = number(&mut fields)?;
        let block = match block {
            0 => return None,
            1 => 192,
            code @ 2..=5 => 576 << (code - 2),
            6 => fields.bits(8)? + 1,
            7 => fields.bits(16)? + 1,
            code => 256 << (code - 8),
        };
        let sample_rate = match rate {
            0 => None,
            12 => Some(fields.bits(8)? * 1000),
            13 => Some(fields.bits(16)?),
            14 => Some(fields.bits(16)? * 10),
            15 => return None,
            code => Some(RATES[code as usize % RATES.len()]),
        };
        let length = fields.position() / 8;
        let is_whole = fields.bits(8)? == u32::from(crc8(bytes.get(..length)?));
        let header = Self { block, sample_rate, channels, bits, number, is_variable, length: length + 1 };
        is_whole.then_some(header)
    }
}

/// Samples per second by code (9.1.2).
const RATES: [u32; 12] = [0, 88_200, 176_400, 192_000, 8000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000];

/// Reads a number in the code of UTF-8 with up to seven bytes (9.1.5).
fn number(fields: &mut BitReader<'_>) -> Option<u64> {
    let first = fields.bits(8)? as u8;
    let more = match first.leading_ones() {
        0 => return Some(first.into()),
        count @ 2..=7 => count - 1,
        _ => return None,
    };
    let mut number = u64::from(first & (0x7f_u8 >> more.saturating_add(1).min(7)));
    for _ in 0..more {
        let byte = fields.bits(8)?;
        if byte & 0xc0 != 0x80 {
            return None;
        }
        number = number << 6 | u64::from(byte & 0x3f);
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appends the CRC.
    fn with_crc(header: &[u8]) -> Vec<u8> {
        [header, &[crc8(header)]].concat()
    }

    #[test]
    fn headers_state_length_rate_and_number() {
        let bytes = with_crc(&[0xff, 0xf8, 0xc9, 0x18, 0x02]);
        let header = FrameHeader::read(&bytes).unwrap();
        let expected = FrameHeader {
            block: 4096,
            sample_rate: Some(44_100),
            channels: 2,
            bits: Some(16),
            number: 2,
            is_variable: false,
            length: 6,
        };
        assert_eq!(header, expected);
        let bytes = with_crc(&[0xff, 0xf9, 0x7d, 0xa0, 0xc4, 0x80, 0x03, 0xe7, 0xac, 0x44]);
        let header = FrameHeader::read(&bytes).unwrap();
        assert_eq!((header.block, header.sample_rate, header.channels, header.bits), (1000, Some(44_100), 2, None));
        assert_eq!((header.number, header.is_variable, header.length), (0x100, true, 11));
        let long = with_crc(&[0xff, 0xf9, 0xc9, 0x18, 0xfe, 0xbf, 0xbf, 0xbf, 0xbf, 0xbf, 0xbf]);
        assert_eq!(FrameHeader::read(&long).map(|header| header.number), Some((1 << 36) - 1));
        let mut damaged = bytes;
        damaged[4] ^= 1;
        for none in [&damaged[..], b"\xff\xfb\x90\x04", &with_crc(&[0xff, 0xf8, 0x09, 0x18, 0x02]), &[], &[0xff, 0xf8]]
        {
            assert_eq!(FrameHeader::read(none), None, "{none:x?}");
        }
    }
}
