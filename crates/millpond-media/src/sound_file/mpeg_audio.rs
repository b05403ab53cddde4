//! MPEG audio of layers I to III (ISO/IEC 11172-3, ISO/IEC 13818-3), mostly MP3.

use super::{
    frames::{Frame, FrameCode},
    gapless::Gapless,
};
use crate::{
    codec::{
        MpegAudioHeader,
        make::{self, Made},
    },
    error::MediaError,
    units::Timescale,
};

/// Most bytes of a frame of the free format that is recognised.
const MOST_FREE: usize = 4608;
/// Bytes by which frames of one bit rate differ, at most: a slot of layer I.
const SLOT: usize = 4;

#[derive(Debug, Default)]
pub(super) struct MpegAudio;

impl FrameCode for MpegAudio {
    const NAME: &'static str = "MPEG audio";
    const HEADER: usize = 4;

    fn frame(bytes: &[u8]) -> Option<Frame> {
        let header = MpegAudioHeader::read(bytes)?;
        let length = u32::try_from(header.length?).ok().filter(|length| *length > Self::HEADER as u32)?;
        let (samples, rate) = (header.samples, Timescale::new(header.sample_rate)?);
        Some(Frame { length, header: 0, samples, rate, fixed: header.fixed.into(), refused: None })
    }

    fn made(header: &[u8]) -> Result<Made, MediaError> {
        make::mpeg_audio(header)
    }

    fn gapless(frame: &[u8]) -> Option<Gapless> {
        Gapless::read(frame)
    }
}

/// Whether frames of the free format, which state no length, follow one another at equal distances.
pub(super) fn is_free(bytes: &[u8]) -> bool {
    let fixed = |place: usize| {
        let header = MpegAudioHeader::read(bytes.get(place..)?)?;
        header.length.is_none().then_some(header.fixed)
    };
    let Some(kind) = fixed(0) else { return false };
    let is_one = |place: &usize| fixed(*place) == Some(kind);
    let second = (MpegAudio::HEADER..MOST_FREE).find(is_one);
    second.is_some_and(|second| (2 * second - SLOT..=2 * second + SLOT).any(|place| is_one(&place)))
}
