//! AAC in ADTS (ISO/IEC 13818-7 6.2, ISO/IEC 14496-3 1.A.2).

use super::{
    FrameFault, TsConfiguration,
    sound::{Look, SoundCode, SoundFrame},
};
use crate::codec::SAMPLE_RATES;
use bytes::Bytes;

/// Bytes of a header without CRC.
const HEADER: usize = 7;
/// Bytes of the CRC, where there is one.
const CHECKSUM: usize = 2;
/// Samples per channel of a raw data block.
const SAMPLES: u32 = 1024;

#[derive(Debug, Default)]
pub(super) struct Adts {
    /// Fields of the header that the configuration was made of.
    fields: Option<[u8; 3]>,
    configuration: Option<TsConfiguration>,
}

impl SoundCode for Adts {
    fn look(&self, bytes: &[u8], _is_end: bool) -> Look {
        let begins_well = bytes[0] == 0xff && bytes.get(1).is_none_or(|byte| byte & 0xf6 == 0xf0);
        let [first, second, third, fourth, fifth, sixth, _, ..] = *bytes else {
            return if begins_well { Look::Short } else { Look::Garbage };
        };
        let length = usize::from(fourth & 3) << 11 | usize::from(fifth) << 3 | usize::from(sixth >> 5);
        let rate = usize::from(third >> 2 & 0x0f);
        if !begins_well || length < HEADER || rate >= SAMPLE_RATES.len() {
            return Look::Garbage;
        }
        // Without the private, original and home bits.
        Look::Frame { length, fixed: u32::from_be_bytes([first, second, third & 0xfd, fourth & 0xc0]) }
    }

    fn open(&mut self, frame: &[u8], out: &mut Vec<SoundFrame>) -> Result<(), FrameFault> {
        let [_, second, third, fourth, _, _, seventh, ..] = *frame else { return Err(FrameFault::Garbage) };
        let header = if second & 1 == 0 { HEADER + CHECKSUM } else { HEADER };
        if seventh & 3 != 0 {
            return Err(FrameFault::Unsupported("an ADTS frame of several raw data blocks"));
        }
        let (profile, index, channels) = (third >> 6, third >> 2 & 0x0f, (third & 1) << 2 | fourth >> 6);
        if channels == 0 {
            return Err(FrameFault::Unsupported("ADTS without a channel configuration"));
        }
        let data = frame.get(header..).filter(|data| !data.is_empty()).ok_or(FrameFault::Garbage)?;
        let rate = SAMPLE_RATES.get(usize::from(index)).copied().ok_or(FrameFault::Garbage)?;
        let fields = [profile, index, channels];
        if self.fields != Some(fields) {
            self.fields = Some(fields);
            // Object type, index of the rate, channels; 1024 samples, no core coder, no extension.
            let object_type = profile + 1;
            let audio_specific_config = vec![object_type << 3 | index >> 1, index << 7 | channels << 3];
            self.configuration = Some(TsConfiguration::Aac { audio_specific_config });
        }
        out.push(SoundFrame { data: Bytes::copy_from_slice(data), samples: SAMPLES, rate });
        Ok(())
    }

    fn configuration(&self) -> Option<&TsConfiguration> {
        self.configuration.as_ref()
    }
}
