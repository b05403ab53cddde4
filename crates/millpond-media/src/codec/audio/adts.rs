//! Headers of AAC frames in ADTS (ISO/IEC 13818-7 6.2, ISO/IEC 14496-3 1.A.2).

use super::asc::SAMPLE_RATES;

/// Bytes of the CRC, where there is one.
const CHECKSUM: usize = 2;

/// Header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AdtsHeader {
    /// Bytes of the whole frame, with its header.
    pub(crate) length: usize,
    /// Bytes of the header, with its CRC.
    pub(crate) header: usize,
    /// Samples per second of the core coder.
    pub(crate) sample_rate: u32,
    /// Bits that all frames of a stream have in common.
    pub(crate) fixed: u32,
    /// Whether the frame has several raw data blocks.
    pub(crate) is_divided: bool,
    /// Object type less 1, index of the rate, and channel configuration.
    fields: [u8; 3],
}

impl AdtsHeader {
    /// Bytes of a header without CRC.
    pub(crate) const BYTES: usize = 7;
    /// Samples per channel of a raw data block.
    pub(crate) const SAMPLES: u32 = 1024;

    /// Whether bytes may begin a frame, as far as there are any.
    pub(crate) fn begins(bytes: &[u8]) -> bool {
        bytes.first().is_none_or(|byte| *byte == 0xff) && bytes.get(1).is_none_or(|byte| byte & 0xf6 == 0xf0)
    }

    /// Reads a header; `None` where the bytes are too few, or where fields of it are reserved.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let [first, second, third, fourth, fifth, sixth, seventh, ..] = *bytes else { return None };
        let length = usize::from(fourth & 3) << 11 | usize::from(fifth) << 3 | usize::from(sixth >> 5);
        let index = third >> 2 & 0x0f;
        let sample_rate = SAMPLE_RATES.get(usize::from(index)).copied();
        let header = if second & 1 == 0 { Self::BYTES + CHECKSUM } else { Self::BYTES };
        Some(Self {
            length,
            header,
            sample_rate: sample_rate.filter(|_| Self::begins(bytes) && length >= Self::BYTES)?,
            // Without the private, original and home bits.
            fixed: u32::from_be_bytes([first, second, third & 0xfd, fourth & 0xc0]),
            is_divided: seventh & 3 != 0,
            fields: [third >> 6, index, (third & 1) << 2 | fourth >> 6],
        })
    }

    /// `channel_configuration`; 0 where the frame itself lists the channels.
    pub(crate) fn channel_config(&self) -> u8 {
        self.fields[2]
    }

    /// Returns the `AudioSpecificConfig` (ISO/IEC 14496-3 1.6.2.1) of such frames: 1024 samples, no core coder, no extension.
    pub(crate) fn audio_specific_config(&self) -> [u8; 2] {
        let [profile, index, channels] = self.fields;
        [(profile + 1) << 3 | index >> 1, index << 7 | channels << 3]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_state_length_rate_and_channels() {
        let header = AdtsHeader::read(&[0xff, 0xf1, 0x50, 0x80, 0x2e, 0x7f, 0xfc]).unwrap();
        assert_eq!((header.length, header.header, header.sample_rate, header.channel_config()), (371, 7, 44_100, 2));
        assert_eq!((header.audio_specific_config(), header.is_divided), ([0x12, 0x10], false));
        let protected = AdtsHeader::read(&[0xff, 0xf0, 0x4d, 0x80, 0x2e, 0x7f, 0xfd]).unwrap();
        assert_eq!((protected.header, protected.channel_config(), protected.is_divided), (9, 6, true));
        for none in [[0xff, 0xfb, 0x50, 0x80, 0x2e, 0x7f, 0xfc], [0xff, 0xf1, 0x74, 0x80, 0x2e, 0x7f, 0xfc]] {
            assert_eq!(AdtsHeader::read(&none), None, "{none:x?}");
        }
        assert_eq!(AdtsHeader::read(&[0xff, 0xf1, 0x50, 0x80, 0, 0x7f, 0xfc]), None, "shorter than its header");
    }
}
