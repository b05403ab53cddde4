//! Key frames of H.264, and the memory that decoding takes.

use super::Size;
use bytes::Bytes;
use millpond_media::{AvcConfig, Orientation};
use millpond_picture::{DecodeError, Picture};

/// Most macroblocks of a picture: 4096 by 2304.
const MOST_MACROBLOCKS: usize = 256 * 144;
/// Memory that decoding a macroblock takes, in bytes.
const MACROBLOCK: u64 = 1024;

/// A key frame with its parameter sets.
pub(super) struct CodedPicture {
    pub(super) config: AvcConfig,
    /// NAL units, each with its length before it.
    pub(super) bytes: Bytes,
    pub(super) orientation: Orientation,
    /// Size of the picture that is made.
    pub(super) size: Size,
    /// Coded width and height, as the track states them.
    pub(super) coded_size: (u16, u16),
}

impl CodedPicture {
    /// Returns the bytes of memory that decoding takes.
    pub(super) fn memory(&self) -> u64 {
        memory(self.coded_size, self.bytes.len() as u64)
    }

    /// Decodes the picture, turns it for display, and scales it to `size`. Heavy work.
    pub(super) fn decode(&self) -> Result<Picture, DecodeError> {
        let units = units(&self.bytes, usize::from(self.config.nal_length_size));
        let most = usize::try_from(macroblocks(self.coded_size)).unwrap_or(usize::MAX).min(MOST_MACROBLOCKS);
        let picture = millpond_picture::decode(self.config.parameter_sets().chain(units), most)?;
        let picture = if self.orientation.is_mirrored() { picture.mirrored() } else { picture };
        let (width, height) = (self.size.0 as usize, self.size.1 as usize);
        Ok(picture.turned(self.orientation.quarters()).scaled(width, height))
    }
}

/// Returns the bytes of memory that decoding a key frame of `length` bytes takes.
pub(super) fn memory(coded_size: (u16, u16), length: u64) -> u64 {
    3 * length + macroblocks(coded_size) * MACROBLOCK
}

fn macroblocks((width, height): (u16, u16)) -> u64 {
    (u64::from(width) / 16 + 2) * (u64::from(height) / 16 + 3)
}

/// NAL units of a sample, each of which has its length before it (ISO/IEC 14496-15 5.3.3).
fn units(mut sample: &[u8], length_size: usize) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = sample.split_at_checked(length_size).filter(|_| length_size > 0)?;
        let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        let (unit, rest) = rest.split_at(length.min(rest.len()));
        sample = rest;
        Some(unit)
    })
}
