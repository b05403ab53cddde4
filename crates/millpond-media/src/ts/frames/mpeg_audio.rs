//! MPEG-1 and MPEG-2 audio.

use super::{
    FrameFault, TsConfiguration,
    sound::{Look, SoundCode, SoundFrame},
};
use crate::codec::MpegAudioHeader;
use bytes::Bytes;

#[derive(Debug, Default)]
pub(super) struct MpegAudio {
    configuration: Option<TsConfiguration>,
}

impl SoundCode for MpegAudio {
    fn look(&self, bytes: &[u8], _is_end: bool) -> Look {
        if bytes.len() < 4 {
            let begins_well = bytes[0] == 0xff && bytes.get(1).is_none_or(|byte| byte & 0xe0 == 0xe0);
            return if begins_well { Look::Short } else { Look::Garbage };
        }
        // Frames of the free format have no known length.
        match MpegAudioHeader::read(bytes).and_then(|header| Some((header.length?, header.fixed))) {
            Some((length, fixed)) => Look::Frame { length, fixed: fixed.into() },
            None => Look::Garbage,
        }
    }

    fn open(&mut self, frame: &[u8], out: &mut Vec<SoundFrame>) -> Result<(), FrameFault> {
        let header = MpegAudioHeader::read(frame).ok_or(FrameFault::Garbage)?;
        let MpegAudioHeader { layer, channels, sample_rate, samples, .. } = header;
        self.configuration = Some(TsConfiguration::MpegAudio { layer, channels, sample_rate });
        out.push(SoundFrame { data: Bytes::copy_from_slice(frame), samples, rate: sample_rate });
        Ok(())
    }

    fn configuration(&self) -> Option<&TsConfiguration> {
        self.configuration.as_ref()
    }
}
