//! AC-3 and E-AC-3 (ETSI TS 102 366). The sync frames themselves tell which of both they are.

use super::{
    FrameFault, TsConfiguration,
    sound::{Look, SoundCode, SoundFrame},
};
use crate::codec::{Ac3Frame, make};
use bytes::Bytes;

/// Most sync frames of a frame for MP4: six of one block, each with dependent substreams.
const MOST_FRAMES: usize = 48;

#[derive(Debug, Default)]
pub(super) struct Ac3 {
    /// Fields that the configuration was made of: all but the data rate.
    fields: Option<Vec<u8>>,
    configuration: Option<TsConfiguration>,
}

impl SoundCode for Ac3 {
    fn look(&self, bytes: &[u8], is_end: bool) -> Look {
        let begins_well = |bytes: &[u8]| bytes.iter().zip([0x0b, 0x77]).all(|(found, expected)| *found == expected);
        if bytes.len() < Ac3Frame::HEADER {
            return if begins_well(bytes) { Look::Short } else { Look::Garbage };
        }
        let Some(first) = Ac3Frame::read(bytes).filter(|first| first.leads) else { return Look::Garbage };
        let fixed = u32::from(first.is_enhanced) << 8 | u32::from(first.rate_code);
        let (mut length, mut blocks) = (first.length, first.blocks);
        if !first.is_enhanced {
            return Look::Frame { length, fixed };
        }
        for _ in 1..MOST_FRAMES {
            let rest = bytes.get(length..).unwrap_or_default();
            if rest.is_empty() && is_end && bytes.len() == length && blocks >= Ac3Frame::BLOCKS {
                return Look::Frame { length, fixed };
            }
            if rest.len() < Ac3Frame::HEADER {
                return if begins_well(rest) { Look::Short } else { Look::Garbage };
            }
            let Some(next) = Ac3Frame::read(rest).filter(|next| next.is_enhanced) else { return Look::Garbage };
            if next.leads && blocks >= Ac3Frame::BLOCKS {
                return Look::Frame { length, fixed };
            }
            blocks += if next.leads { next.blocks } else { 0 };
            length += next.length;
        }
        Look::Garbage
    }

    fn open(&mut self, frame: &[u8], out: &mut Vec<SoundFrame>) -> Result<(), FrameFault> {
        let first = Ac3Frame::read(frame).ok_or(FrameFault::Garbage)?;
        let specific = if first.is_enhanced { make::dec3(frame) } else { make::dac3(frame) };
        let specific = specific.map_err(|_| FrameFault::Garbage)?;
        let (channels, rate) = (specific.channels, specific.sample_rate);
        if self.fields.as_deref() != Some(specific.fixed(first.is_enhanced)) {
            self.fields = Some(specific.fixed(first.is_enhanced).to_vec());
            self.configuration = Some(match first.is_enhanced {
                true => TsConfiguration::Eac3 { channels, sample_rate: rate },
                false => TsConfiguration::Ac3 { channels, sample_rate: rate },
            });
        }
        let samples = Ac3Frame::BLOCKS * Ac3Frame::SAMPLES;
        out.push(SoundFrame { data: Bytes::copy_from_slice(frame), samples, rate });
        Ok(())
    }

    fn configuration(&self) -> Option<&TsConfiguration> {
        self.configuration.as_ref()
    }
}
