//! MPEG-1 and MPEG-2 audio (ISO/IEC 11172-3 2.4.1.3, ISO/IEC 13818-3 2.4.2.3).

use super::{
    FrameFault, TsConfiguration,
    sound::{Look, SoundCode, SoundFrame},
};
use bytes::Bytes;

#[derive(Debug, Default)]
pub(super) struct MpegAudio {
    configuration: Option<TsConfiguration>,
}

/// Fields of a frame's header.
struct FrameHeader {
    layer: u8,
    channels: u16,
    sample_rate: u32,
    samples: u32,
    /// Bytes of the whole frame.
    length: usize,
}

impl FrameHeader {
    /// Reads a header; `None` where its fields are reserved, or of the free format.
    fn read([first, second, third, fourth]: [u8; 4]) -> Option<Self> {
        if first != 0xff || second & 0xe0 != 0xe0 {
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
        let (kilobits, samples) = match (layer, is_low) {
            (1, false) => (&LAYER_1, 384),
            (2, false) => (&LAYER_2, 1152),
            (3, false) => (&LAYER_3, 1152),
            (1, true) => (&LOW_LAYER_1, 384),
            (2, true) => (&LOW_LAYER_2_3, 1152),
            (3, true) => (&LOW_LAYER_2_3, 576),
            _ => return None,
        };
        let bit_rate = u32::from(*kilobits.get(usize::from(third >> 4)).filter(|rate| **rate > 0)?) * 1000;
        let slot = if layer == 1 { 4 } else { 1 };
        let slots = samples / 8 / slot * bit_rate / sample_rate + u32::from(third >> 1 & 1);
        let channels = if fourth >> 6 == 3 { 1 } else { 2 };
        Some(Self { layer, channels, sample_rate, samples, length: (slots * slot) as usize })
    }
}

impl SoundCode for MpegAudio {
    fn look(&self, bytes: &[u8], _is_end: bool) -> Look {
        let Some(&header) = bytes.first_chunk::<4>() else {
            let begins_well = bytes[0] == 0xff && bytes.get(1).is_none_or(|byte| byte & 0xe0 == 0xe0);
            return if begins_well { Look::Short } else { Look::Garbage };
        };
        let [_, second, third, _] = header;
        match FrameHeader::read(header) {
            // Bits of version, layer and sampling rate.
            Some(found) => {
                Look::Frame { length: found.length, fixed: u32::from_be_bytes([0, 0, second & 0xfe, third & 0x0c]) }
            }
            None => Look::Garbage,
        }
    }

    fn open(&mut self, frame: &[u8], out: &mut Vec<SoundFrame>) -> Result<(), FrameFault> {
        let header = frame.first_chunk().and_then(|header| FrameHeader::read(*header)).ok_or(FrameFault::Garbage)?;
        let FrameHeader { layer, channels, sample_rate, samples, .. } = header;
        self.configuration = Some(TsConfiguration::MpegAudio { layer, channels, sample_rate });
        out.push(SoundFrame { data: Bytes::copy_from_slice(frame), samples, rate: sample_rate });
        Ok(())
    }

    fn configuration(&self) -> Option<&TsConfiguration> {
        self.configuration.as_ref()
    }
}

/// Bit rates by index in kbit/s; 0 is the free format, or invalid.
const LAYER_1: [u16; 16] = [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 0];
const LAYER_2: [u16; 16] = [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 0];
const LAYER_3: [u16; 16] = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0];
const LOW_LAYER_1: [u16; 16] = [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256, 0];
const LOW_LAYER_2_3: [u16; 16] = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0];
