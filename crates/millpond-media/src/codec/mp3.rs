//! MPEG-1 and MPEG-2 audio layer III: `mp4a` with object type 0x69 or 0x6b, QuickTime's `.mp3`.

use super::{Codec, SampleEntry, sound::Sound};
use serde::{Deserialize, Serialize};

/// Lowest sampling rate of MPEG-1; the rates of MPEG-2 and MPEG-2.5 are lower.
const MPEG1_RATE: u32 = 32_000;

/// Properties of MP3. Every frame contains all that a decoder needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mp3Config {
    /// Channels as stated by the first frame, or by the sample entry where the frame could not be read.
    pub channels: u16,
    /// Samples per second, from the same source.
    pub sample_rate: u32,
}

impl Mp3Config {
    /// Reads the header of a frame (ISO/IEC 11172-3 2.4.1.3, ISO/IEC 13818-3 2.4.2.3); `None` where the bytes are no
    /// layer III frame.
    pub(crate) fn of_frame(bytes: &[u8]) -> Option<Self> {
        let [0xff, second, third, fourth, ..] = *bytes else { return None };
        // The last three bits of the sync word, and the layer.
        if second & 0xe6 != 0xe2 {
            return None;
        }
        let frequency = *[44_100_u32, 48_000, 32_000].get(usize::from(third >> 2 & 3))?;
        let sample_rate = match second >> 3 & 3 {
            3 => frequency,
            2 => frequency / 2,
            0 => frequency / 4,
            _ => return None,
        };
        Some(Self { channels: if fourth >> 6 == 3 { 1 } else { 2 }, sample_rate })
    }

    /// Samples per channel in a frame: 1152 for MPEG-1 (ISO/IEC 11172-3 2.4.2.1), 576 for the lower sampling
    /// frequencies of MPEG-2 (ISO/IEC 13818-3 2.4.2.1).
    #[must_use]
    pub fn samples_per_frame(&self) -> u32 {
        if self.sample_rate >= MPEG1_RATE { 1152 } else { 576 }
    }

    /// Returns `mp4a.6B` for MPEG-1, `mp4a.69` for MPEG-2 (RFC 6381 3.3).
    pub(super) fn parameter(&self) -> String {
        format!("mp4a.{:02X}", self.object_type())
    }

    /// `objectTypeIndication` (ISO/IEC 14496-1 table 5).
    fn object_type(&self) -> u8 {
        if self.sample_rate >= MPEG1_RATE { 0x6b } else { 0x69 }
    }
}

/// Returns the body of `esds` (ISO/IEC 14496-14 6.7.2): version and flags, then descriptors without optional fields.
pub(super) fn descriptor(config: &Mp3Config) -> [u8; 27] {
    let mut body = [0; 27];
    // An ES descriptor of elementary stream 0.
    body[4..9].copy_from_slice(&[3, 21, 0, 0, 0]);
    // A decoder configuration: audio (stream type 5), unknown bit rate and buffer size.
    body[9..13].copy_from_slice(&[4, 13, config.object_type(), 5 << 2 | 1]);
    // An SL configuration for MP4 files.
    body[24..27].copy_from_slice(&[6, 1, 2]);
    body
}

/// Returns the sample entry with these fields.
pub(super) fn entry(sound: &Sound<'_, '_>) -> SampleEntry {
    let (channels, sample_rate) = (sound.channels, sound.sample_rate);
    sound.entry(Codec::Mp3(Mp3Config { channels, sample_rate }), channels, sample_rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_frames_say_channels_and_rate() {
        let of = |bytes: [u8; 4]| Mp3Config::of_frame(&bytes).map(|c| (c.channels, c.sample_rate, c.parameter()));
        assert_eq!(of([0xff, 0xfb, 0x90, 0xc4]), Some((1, 44_100, "mp4a.6B".to_owned())));
        assert_eq!(of([0xff, 0xfb, 0x94, 0x44]), Some((2, 48_000, "mp4a.6B".to_owned())));
        assert_eq!(of([0xff, 0xf3, 0x98, 0x04]), Some((2, 16_000, "mp4a.69".to_owned())));
        assert_eq!(of([0xff, 0xe3, 0x98, 0xc4]), Some((1, 8000, "mp4a.69".to_owned())));
        for none in [[0xff, 0xfd, 0x90, 0xc4], [0xff, 0xeb, 0x90, 0xc4], [0xff, 0xfb, 0x9c, 0xc4], [0x47; 4]] {
            assert_eq!(of(none), None, "{none:x?}");
        }
    }
}
