//! AAC in LATM with LOAS sync (ISO/IEC 14496-3 1.7).

use super::{
    FrameFault, TsConfiguration,
    sound::{Look, SoundCode, SoundFrame},
};
use crate::codec::audio::latm::{self, LatmError, LatmReader};
use bytes::Bytes;

/// Bytes of `AudioSyncStream` before the element: 11 bits of sync word, 13 of length.
const HEADER: usize = 3;

#[derive(Debug)]
pub(super) struct Latm {
    reader: LatmReader,
    configuration: Option<TsConfiguration>,
    /// Whether elements with several frames are refused.
    takes_one: bool,
}

impl Default for Latm {
    fn default() -> Self {
        Self { reader: LatmReader::in_band(), configuration: None, takes_one: false }
    }
}

impl Latm {
    /// Refuses elements with several frames from now on.
    pub(super) fn refuse_several(&mut self) {
        self.takes_one = true;
    }
}

/// Returns the only frame of an element, which is behind its header. The configuration may be in an earlier element.
pub(super) fn raw_data_block(frame: &[u8]) -> Option<Vec<u8>> {
    latm::only_frame(frame.get(HEADER..)?)
}

impl From<LatmError> for FrameFault {
    fn from(error: LatmError) -> Self {
        match error {
            LatmError::Malformed => Self::Garbage,
            LatmError::Unconfigured => Self::Untimed,
            LatmError::Unsupported(what) => Self::Unsupported(what),
        }
    }
}

impl SoundCode for Latm {
    fn look(&self, bytes: &[u8], _is_end: bool) -> Look {
        let begins_well = bytes[0] == 0x56 && bytes.get(1).is_none_or(|byte| byte & 0xe0 == 0xe0);
        match *bytes {
            [_, second, third, ..] if begins_well => {
                Look::Frame { length: HEADER + (usize::from(second & 0x1f) << 8 | usize::from(third)), fixed: 0 }
            }
            _ if begins_well => Look::Short,
            _ => Look::Garbage,
        }
    }

    fn open(&mut self, frame: &[u8], out: &mut Vec<SoundFrame>) -> Result<(), FrameFault> {
        let frames = self.reader.element(frame.get(HEADER..).unwrap_or_default())?;
        let mux = self.reader.mux().ok_or(FrameFault::Untimed)?;
        if self.takes_one && frames.len() > 1 {
            return Err(FrameFault::Unsupported("an element of LATM with several frames"));
        }
        let is_known = matches!(&self.configuration, Some(TsConfiguration::Aac { audio_specific_config })
            if *audio_specific_config == mux.audio_specific_config);
        if !is_known {
            let audio_specific_config = mux.audio_specific_config.clone();
            self.configuration = Some(TsConfiguration::Aac { audio_specific_config });
        }
        let (samples, rate) = (mux.samples, mux.sample_rate);
        out.extend(frames.into_iter().map(|data| SoundFrame { data: Bytes::from(data), samples, rate }));
        Ok(())
    }

    fn configuration(&self) -> Option<&TsConfiguration> {
        self.configuration.as_ref()
    }
}
