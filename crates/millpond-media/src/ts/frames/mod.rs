//! Frames of one stream, from its PES packets.

mod ac3;
mod access_unit;
mod adts;
mod anchors;
mod byte_stream;
mod configuration;
mod fields;
mod latm;
mod mpeg_audio;
mod opus;
mod parameter_sets;
mod picture_times;
mod pictures;
mod sound;

use super::{coding::StreamCoding, event::PesUnit};
use crate::{
    codec::{StreamForm, nal::NalSyntax},
    units::ByteRange,
};
pub(crate) use byte_stream::{byte_stream_units, find_start_code};
use bytes::Bytes;
pub use configuration::TsConfiguration;
use pictures::Pictures;
use sound::SoundFrames;
use std::{borrow::Cow, fmt};

/// Bits of a timestamp.
const CLOCK_MASK: u64 = (1 << 33) - 1;

/// A frame as MP4 files hold it: a picture of NAL units with lengths of 4 bytes, or a frame of sound without sync words
/// and headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TsFrame {
    /// Presentation time, in 90 kHz modulo 2^33.
    pub pts: u64,
    /// Decoding time on the same clock.
    pub dts: u64,
    /// The frame, without parameter sets and access unit delimiters.
    pub data: Bytes,
    /// Place in the elementary stream: the payloads of all PES packets of the stream so far, joined. A picture begins with the start
    /// code of its first NAL unit in `data`, a frame of sound with its header.
    pub source: ByteRange,
    /// Whether decoding can begin here.
    pub is_sync: bool,
    /// Whether the stream has no time for this picture, so that both times continue at the last distance. Times of
    /// sound follow from its sampling rate and are exact.
    pub is_estimated: bool,
}

/// Result of a [`Framer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Framed {
    /// Configuration of the frames after it, at first and after each change.
    Configuration(TsConfiguration),
    /// A frame.
    Frame(TsFrame),
    /// A frame that is dropped, and why.
    Fault(FrameFault),
}

/// Reason why frames are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameFault {
    /// Bytes of the frame were lost.
    Incomplete,
    /// Bytes that are no frame. The search for the next frame skips them.
    Garbage,
    /// No time of the stream applies to the frame.
    Untimed,
    /// A frame, or parameter sets, beyond the limit of bytes; or too many frames in one PES packet.
    TooLarge,
    /// A property of the stream that is not supported.
    Unsupported(&'static str),
}

impl fmt::Display for FrameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incomplete => write!(f, "a frame with lost bytes"),
            Self::Garbage => write!(f, "bytes that are no frame"),
            Self::Untimed => write!(f, "a frame before the first timestamp"),
            Self::TooLarge => write!(f, "a frame or parameter sets beyond the limits"),
            Self::Unsupported(what) => write!(f, "{what} is not supported"),
        }
    }
}

/// Turns the PES packets of one stream into frames.
///
/// Only complete frames are given. A picture ends where the next picture begins. If each PES packet so far held whole pictures, a
/// picture ends with its packet, which saves the delay of one frame.
#[derive(Debug)]
pub struct Framer {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Pictures(Box<Pictures>),
    Adts(SoundFrames<adts::Adts>),
    Latm(SoundFrames<latm::Latm>),
    MpegAudio(SoundFrames<mpeg_audio::MpegAudio>),
    Ac3(SoundFrames<ac3::Ac3>),
    Opus(SoundFrames<opus::Opus>),
}

/// Returns the frame that [`TsFrame::source`] holds, as in [`TsFrame::data`]. `None` if the bytes hold none.
pub(crate) fn frame_of(form: StreamForm, source: &[u8]) -> Option<Cow<'_, [u8]>> {
    Some(match form {
        StreamForm::Avc => Cow::Owned(byte_stream::picture(NalSyntax::Avc, source)),
        StreamForm::Hevc => Cow::Owned(byte_stream::picture(NalSyntax::Hevc, source)),
        StreamForm::Adts => Cow::Borrowed(adts::raw_data_block(source)?),
        StreamForm::Latm => Cow::Owned(latm::raw_data_block(source)?),
        StreamForm::Opus => Cow::Borrowed(opus::packet(source)?),
        StreamForm::MpegAudio | StreamForm::Ac3 | StreamForm::Plain => Cow::Borrowed(source),
    })
}

impl Framer {
    /// Creates a framer; `None` for codings without frames.
    #[must_use]
    pub fn new(coding: StreamCoding) -> Option<Self> {
        let kind = match coding {
            StreamCoding::Avc => Kind::Pictures(Box::new(Pictures::new(NalSyntax::Avc))),
            StreamCoding::Hevc => Kind::Pictures(Box::new(Pictures::new(NalSyntax::Hevc))),
            StreamCoding::Adts => Kind::Adts(SoundFrames::default()),
            StreamCoding::Latm => Kind::Latm(SoundFrames::default()),
            StreamCoding::MpegAudio => Kind::MpegAudio(SoundFrames::default()),
            StreamCoding::Ac3 | StreamCoding::Eac3 => Kind::Ac3(SoundFrames::default()),
            StreamCoding::Opus(channels) => Kind::Opus(SoundFrames::new(opus::Opus::new(channels))),
            StreamCoding::Cues | StreamCoding::Teletext | StreamCoding::DvbSubtitles | StreamCoding::Other(_) => {
                return None;
            }
        };
        Some(Self { kind })
    }

    /// Returns the same framer for files. A picture ends only where the next one begins, even if each PES packet so far held whole
    /// pictures: a few multiplexers put the end of a picture into the next packet. Elements of LATM with several frames are refused,
    /// because [`frame_of`] could not tell the frames of one place apart.
    pub(crate) fn for_files(mut self) -> Self {
        match &mut self.kind {
            Kind::Pictures(pictures) => pictures.wait_for_next(),
            Kind::Latm(sound) => sound.code().refuse_several(),
            _ => {}
        }
        self
    }

    /// Bytes of frames that are being assembled.
    pub(crate) fn held(&self) -> usize {
        match &self.kind {
            Kind::Pictures(pictures) => pictures.held(),
            Kind::Adts(sound) => sound.held(),
            Kind::Latm(sound) => sound.held(),
            Kind::MpegAudio(sound) => sound.held(),
            Kind::Ac3(sound) => sound.held(),
            Kind::Opus(sound) => sound.held(),
        }
    }

    /// Takes the next PES packet of the stream, and appends the frames that it completes.
    pub fn push(&mut self, unit: &PesUnit, out: &mut Vec<Framed>) {
        match &mut self.kind {
            Kind::Pictures(pictures) => pictures.push(unit, out),
            Kind::Adts(sound) => sound.push(unit, out),
            Kind::Latm(sound) => sound.push(unit, out),
            Kind::MpegAudio(sound) => sound.push(unit, out),
            Kind::Ac3(sound) => sound.push(unit, out),
            Kind::Opus(sound) => sound.push(unit, out),
        }
    }

    /// Ends the stream: the last picture is complete. Frames of sound always end with their bytes.
    pub fn finish(&mut self, out: &mut Vec<Framed>) {
        if let Kind::Pictures(pictures) = &mut self.kind {
            pictures.finish(out);
        }
    }
}
