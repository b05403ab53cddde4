//! MPEG-1 and MPEG-2 audio of all layers: `mp4a` with object type 0x69 or 0x6b, QuickTime's `.mp3`.

use crate::codec::{Codec, SampleEntry, audio::sound::Sound};
use serde::{Deserialize, Serialize};

/// Lowest sampling rate of MPEG-1; the rates of MPEG-2 and MPEG-2.5 are lower.
const MPEG1_RATE: u32 = 32_000;
/// The layer that sample entries are read as: MP3 is by far the most frequent one.
const USUAL_LAYER: u8 = 3;

/// Properties of MPEG audio. Every frame contains all that a decoder needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MpegAudioConfig {
    /// Layer, from 1 to 3, as stated by the first frame; 3 where the frame could not be read.
    pub layer: u8,
    /// Channels as stated by the first frame, or by the sample entry where the frame could not be read.
    pub channels: u16,
    /// Samples per second, from the same source.
    pub sample_rate: u32,
}

impl MpegAudioConfig {
    /// Reads the header of a frame; `None` where the bytes begin with none.
    pub(crate) fn of_frame(bytes: &[u8]) -> Option<Self> {
        let MpegAudioHeader { layer, channels, sample_rate, .. } = MpegAudioHeader::read(bytes)?;
        Some(Self { layer, channels, sample_rate })
    }

    /// Samples per channel in a frame (ISO/IEC 11172-3 2.4.2.1); fewer in layer III of the lower sampling frequencies of
    /// MPEG-2 (ISO/IEC 13818-3 2.4.2.1).
    #[must_use]
    pub fn samples_per_frame(&self) -> u32 {
        samples(self.layer, self.sample_rate < MPEG1_RATE)
    }

    /// Usual name.
    pub(in crate::codec) fn name(&self) -> &'static str {
        match self.layer {
            1 => "MPEG audio layer I",
            2 => "MPEG audio layer II",
            _ => "MP3",
        }
    }

    /// Returns `mp4a.6B` for MPEG-1, `mp4a.69` for MPEG-2 (RFC 6381 3.3): the object types have all layers.
    pub(in crate::codec) fn parameter(&self) -> String {
        format!("mp4a.{:02X}", self.object_type())
    }

    /// Returns the element of a `codecs` parameter for a transport stream, which has no MP4 object types: players know the
    /// audio object types of ISO/IEC 14496-3 table 1.17, such as `mp4a.40.34` for MP3.
    #[must_use]
    pub fn ts_parameter(&self) -> String {
        format!("mp4a.40.{}", 31 + self.layer)
    }

    /// `objectTypeIndication` (ISO/IEC 14496-1 table 5).
    fn object_type(&self) -> u8 {
        if self.sample_rate >= MPEG1_RATE { 0x6b } else { 0x69 }
    }
}

/// Fields of a frame's header (ISO/IEC 11172-3 2.4.1.3, ISO/IEC 13818-3 2.4.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpegAudioHeader {
    /// Layer, from 1 to 3.
    pub layer: u8,
    /// Channels: 1 or 2.
    pub channels: u16,
    /// Samples per second.
    pub sample_rate: u32,
    /// Samples per channel of the frame.
    pub samples: u32,
    /// Bytes of the whole frame; `None` for the free format, which states no length.
    pub length: Option<usize>,
    /// Bits of version, layer and sampling rate, which all frames of a stream have in common.
    pub fixed: u16,
}

impl MpegAudioHeader {
    /// Reads the header of a frame; `None` where the bytes are too few, or where fields of it are reserved.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let [0xff, second, third, fourth, ..] = *bytes else { return None };
        if second & 0xe0 != 0xe0 {
            return None;
        }
        // 3 is MPEG-1, 2 MPEG-2, 0 MPEG-2.5; layers count down from 3.
        let (version, layer) = (second >> 3 & 3, 4 - (second >> 1 & 3));
        let frequency = *[44_100_u32, 48_000, 32_000].get(usize::from(third >> 2 & 3))?;
        let (sample_rate, is_low) = match version {
            3 => (frequency, false),
            2 => (frequency / 2, true),
            0 => (frequency / 4, true),
            _ => return None,
        };
        let rates = match (layer, is_low) {
            (1, false) => &LAYER_1,
            (2, false) => &LAYER_2,
            (3, false) => &LAYER_3,
            (1, true) => &LOW_LAYER_1,
            (2 | 3, true) => &LOW_LAYER_2_3,
            _ => return None,
        };
        let bit_rate = u32::from(*rates.get(usize::from(third >> 4))?) * 1000;
        let samples = samples(layer, is_low);
        let slot = if layer == 1 { 4 } else { 1 };
        let slots = samples / 8 / slot * bit_rate / sample_rate + u32::from(third >> 1 & 1);
        Some(Self {
            layer,
            channels: if fourth >> 6 == 3 { 1 } else { 2 },
            sample_rate,
            samples,
            length: (bit_rate > 0).then_some((slots * slot) as usize),
            fixed: u16::from_be_bytes([second & 0xfe, third & 0x0c]),
        })
    }
}

/// Returns the samples per channel of a frame; `is_low` for the sampling frequencies of MPEG-2.
const fn samples(layer: u8, is_low: bool) -> u32 {
    match (layer, is_low) {
        (1, _) => 384,
        (3, true) => 576,
        _ => 1152,
    }
}

/// Bit rates by index in kbit/s; 0 is the free format.
const LAYER_1: [u16; 15] = [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448];
const LAYER_2: [u16; 15] = [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384];
const LAYER_3: [u16; 15] = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const LOW_LAYER_1: [u16; 15] = [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256];
const LOW_LAYER_2_3: [u16; 15] = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];

/// Returns the body of `esds` (ISO/IEC 14496-14 6.7.2): version and flags, then descriptors without optional fields.
pub(in crate::codec) fn descriptor(config: &MpegAudioConfig) -> [u8; 27] {
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
pub(in crate::codec) fn entry(sound: &Sound<'_, '_>) -> SampleEntry {
    let (layer, channels, sample_rate) = (USUAL_LAYER, sound.channels, sound.sample_rate);
    sound.entry(Codec::MpegAudio(MpegAudioConfig { layer, channels, sample_rate }), channels, sample_rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_frames_say_layer_channels_and_rate() {
        let of = |bytes: [u8; 4]| {
            MpegAudioConfig::of_frame(&bytes).map(|c| (c.layer, c.channels, c.sample_rate, c.parameter()))
        };
        assert_eq!(of([0xff, 0xfb, 0x90, 0xc4]), Some((3, 1, 44_100, "mp4a.6B".to_owned())));
        assert_eq!(of([0xff, 0xfb, 0x94, 0x44]), Some((3, 2, 48_000, "mp4a.6B".to_owned())));
        assert_eq!(of([0xff, 0xf3, 0x98, 0x04]), Some((3, 2, 16_000, "mp4a.69".to_owned())));
        assert_eq!(of([0xff, 0xe3, 0x98, 0xc4]), Some((3, 1, 8000, "mp4a.69".to_owned())));
        assert_eq!(of([0xff, 0xfd, 0x94, 0xc4]), Some((2, 1, 48_000, "mp4a.6B".to_owned())));
        assert_eq!(of([0xff, 0xf5, 0x94, 0x04]), Some((2, 2, 24_000, "mp4a.69".to_owned())));
        assert_eq!(of([0xff, 0xff, 0x94, 0x04]), Some((1, 2, 48_000, "mp4a.6B".to_owned())));
        for none in [[0xff, 0xf9, 0x90, 0xc4], [0xff, 0xeb, 0x90, 0xc4], [0xff, 0xfb, 0x9c, 0xc4], [0x47; 4]] {
            assert_eq!(of(none), None, "{none:x?}");
        }
    }

    #[test]
    fn headers_state_the_length_of_frames() {
        let of = |bytes: [u8; 4]| MpegAudioHeader::read(&bytes).map(|header| (header.length, header.samples));
        assert_eq!(of([0xff, 0xfb, 0x92, 0x04]), Some((Some(418), 1152)), "128 kbit/s, padded");
        assert_eq!(of([0xff, 0xfd, 0xa4, 0x04]), Some((Some(576), 1152)), "192 kbit/s at 48 kHz");
        assert_eq!(of([0xff, 0xff, 0xc4, 0x04]), Some((Some(384), 384)), "384 kbit/s at 48 kHz");
        assert_eq!(of([0xff, 0xf3, 0x84, 0x04]), Some((Some(192), 576)), "64 kbit/s at 24 kHz");
        assert_eq!(of([0xff, 0xfb, 0x02, 0x04]), Some((None, 1152)), "the free format");
        assert_eq!(of([0xff, 0xfb, 0xf2, 0x04]), None, "an invalid rate");
    }
}
