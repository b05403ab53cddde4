//! AAC in ADTS (ISO/IEC 13818-7 6.2, ISO/IEC 14496-3 1.A.2).

use super::{
    FrameFault, TsConfiguration,
    sound::{Look, SoundCode, SoundFrame},
};
use crate::codec::AdtsHeader;
use bytes::Bytes;

#[derive(Debug, Default)]
pub(super) struct Adts {
    /// The configuration of the last header, and what streams are told of it.
    configuration: Option<([u8; 2], TsConfiguration)>,
}

/// Returns the raw data block of a frame that has only one (ISO/IEC 14496-3 1.A.2.2): the bytes behind its header.
pub(super) fn raw_data_block(frame: &[u8]) -> Option<&[u8]> {
    frame.get(AdtsHeader::read(frame)?.header..).filter(|data| !data.is_empty())
}

impl SoundCode for Adts {
    fn look(&self, bytes: &[u8], _is_end: bool) -> Look {
        if bytes.len() < AdtsHeader::BYTES {
            return if AdtsHeader::begins(bytes) { Look::Short } else { Look::Garbage };
        }
        match AdtsHeader::read(bytes) {
            Some(AdtsHeader { length, fixed, .. }) => Look::Frame { length, fixed },
            None => Look::Garbage,
        }
    }

    fn open(&mut self, frame: &[u8], out: &mut Vec<SoundFrame>) -> Result<(), FrameFault> {
        let header = AdtsHeader::read(frame).ok_or(FrameFault::Garbage)?;
        if header.is_divided {
            return Err(FrameFault::Unsupported("an ADTS frame of several raw data blocks"));
        }
        if header.channel_config() == 0 {
            return Err(FrameFault::Unsupported("ADTS without a channel configuration"));
        }
        let data = raw_data_block(frame).ok_or(FrameFault::Garbage)?;
        let config = header.audio_specific_config();
        if self.configuration.as_ref().is_none_or(|(last, _)| *last != config) {
            let audio_specific_config = config.to_vec();
            self.configuration = Some((config, TsConfiguration::Aac { audio_specific_config }));
        }
        let (data, samples, rate) = (Bytes::copy_from_slice(data), AdtsHeader::SAMPLES, header.sample_rate);
        out.push(SoundFrame { data, samples, rate });
        Ok(())
    }

    fn configuration(&self) -> Option<&TsConfiguration> {
        self.configuration.as_ref().map(|(_, configuration)| configuration)
    }
}
