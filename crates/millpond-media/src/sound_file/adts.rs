//! AAC in ADTS (ISO/IEC 14496-3 1.A.2).

use super::frames::{Frame, FrameCode};
use crate::{
    codec::{
        AdtsHeader,
        make::{self, Made},
    },
    error::MediaError,
    units::Timescale,
};

#[derive(Debug, Default)]
pub(super) struct Adts;

impl FrameCode for Adts {
    const NAME: &'static str = "ADTS";
    const HEADER: usize = AdtsHeader::BYTES;

    fn frame(bytes: &[u8]) -> Option<Frame> {
        let header = AdtsHeader::read(bytes).filter(|header| header.length > header.header)?;
        let refused = match () {
            () if header.is_divided => Some("a frame of several raw data blocks"),
            () if header.channel_config() == 0 => Some("a header without channel configuration"),
            () => None,
        };
        Some(Frame {
            length: header.length as u32,
            header: header.header as u32,
            samples: AdtsHeader::SAMPLES,
            rate: Timescale::new(header.sample_rate)?,
            fixed: header.fixed,
            refused,
        })
    }

    fn made(header: &[u8]) -> Result<Made, MediaError> {
        let read = AdtsHeader::read(header).ok_or_else(|| MediaError::invalid(Self::NAME, 0, "no header", "one"))?;
        make::aac(&read.audio_specific_config())
    }
}
