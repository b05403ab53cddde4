//! Payload formats: divides frames into packets, and joins packets to frames.
//!
//! A [`Packetizer`] divides a frame in its file form into [`Piece`]s: a few header bytes, and a range of the frame.
//! Nothing is copied. The pieces are the same for all receivers of the frame; senders add sequence numbers, timestamps
//! and SSRC. PCM has one form in packets but several in files, so a [`Conversion`] precedes it.
//!
//! A [`Depacketizer`] is the inverse: it takes packets in order, and returns whole [`Unit`]s. Both directions of a
//! format are in one file, named after the format.

mod aac;
mod ac3;
mod av1;
mod building;
mod depacketizer;
mod latm;
mod mpa;
mod nal;
mod opus;
mod pcm;
mod start_codes;
#[cfg(test)]
mod tests;
mod vpx;

pub use depacketizer::{Depacketizer, MOST_UNIT_BYTES, Unit};
pub use latm::latm_configuration;
pub use pcm::{Conversion, Pcm, Values};

use millpond_media::{
    NalSyntax,
    codec::Codec,
    movie::{Track, TrackKind},
};
use std::ops::Range;

/// Most bytes of a head without memory of its own: nearly all heads.
const SHORT: usize = 8;

/// Bytes before those of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Head {
    /// The bytes, of which a number counts.
    Short([u8; SHORT], u8),
    Long(Box<[u8]>),
}

/// Payload of one packet: [`head`](Piece::head), then a part of the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    head: Head,
    /// Whether the packet has the marker bit.
    pub marker: bool,
    /// Byte range of the frame.
    pub body: Range<usize>,
}

impl Piece {
    fn new(head: &[u8], body: Range<usize>) -> Self {
        let mut bytes = [0; SHORT];
        let head = match bytes.get_mut(..head.len()) {
            Some(short) => {
                short.copy_from_slice(head);
                Head::Short(bytes, head.len() as u8)
            }
            None => Head::Long(head.into()),
        };
        Self { head, marker: false, body }
    }

    /// Bytes before the frame's bytes.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        match &self.head {
            Head::Short(bytes, length) => &bytes[..usize::from(*length)],
            Head::Long(bytes) => bytes,
        }
    }

    /// Length of the payload in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.head().len() + self.body.len()
    }

    /// Whether the payload is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The reason why a frame can't be sent, or a packet can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// The frame violates its codec's format.
    #[error("byte {at} of the frame: found {found}, expected {expected}")]
    Invalid {
        /// Offset in the frame.
        at: usize,
        /// Value found.
        found: String,
        /// Value expected.
        expected: &'static str,
    },
    /// The payload of a packet violates its format.
    #[error("byte {at} of the payload: found {found}, expected {expected}")]
    Packet {
        /// Offset in the payload.
        at: usize,
        /// Value found.
        found: String,
        /// Value expected.
        expected: &'static str,
    },
    /// A unit, or a NAL unit in it, exceeds its limit.
    #[error("an access unit of more than {most} bytes")]
    TooLarge {
        /// Limit in bytes.
        most: usize,
    },
    /// The format of a described stream, or its mode, is not supported.
    #[error("{name} is {found:?}, expected {expected}")]
    Mode {
        /// Name of the parameter.
        name: &'static str,
        /// Value found.
        found: String,
        /// Value expected.
        expected: &'static str,
    },
}

impl PayloadError {
    fn packet(at: usize, found: impl ToString, expected: &'static str) -> Self {
        Self::Packet { at, found: found.to_string(), expected }
    }

    fn new(at: usize, found: impl ToString, expected: &'static str) -> Self {
        Self::Invalid { at, found: found.to_string(), expected }
    }
}

/// Divides the frames of one track into packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packetizer {
    /// H.264 (RFC 6184) in non-interleaved mode, with the length in bytes of NAL unit lengths.
    Avc(u8),
    /// HEVC (RFC 7798), with the length in bytes of NAL unit lengths.
    Hevc(u8),
    /// AV1 (its RTP payload format, version 1.0.0).
    Av1,
    /// VP8 (RFC 7741).
    Vp8,
    /// VP9 (RFC 9628).
    Vp9,
    /// AAC (RFC 3640, AAC-hbr).
    Aac,
    /// MPEG audio (RFC 2250 3.5).
    Mpa,
    /// Opus (RFC 7587).
    Opus,
    /// AC-3 (RFC 4184).
    Ac3,
    /// E-AC-3 (RFC 4598).
    Eac3,
    /// Linear PCM and G.711 (RFC 3551 4.5, RFC 3190).
    Pcm(Pcm),
}

impl Packetizer {
    /// Returns the packetizer of a track; `None` where its codec has no payload format, or its samples are encrypted.
    #[must_use]
    pub fn of(track: &Track) -> Option<Self> {
        if track.protection.is_some() {
            return None;
        }
        match &track.codec {
            Codec::Avc(config) => Some(Self::Avc(config.nal_length_size)),
            Codec::Hevc(config) => Some(Self::Hevc(config.nal_length_size)),
            Codec::Av1(_) => Some(Self::Av1),
            Codec::Vp9(config) if config.fourcc == *b"vp08" => Some(Self::Vp8),
            Codec::Vp9(_) => Some(Self::Vp9),
            Codec::Aac(_) => Some(Self::Aac),
            Codec::MpegAudio(_) => Some(Self::Mpa),
            Codec::Opus(_) => Some(Self::Opus),
            Codec::Ac3(_) => Some(Self::Ac3),
            Codec::Eac3(_) => Some(Self::Eac3),
            Codec::Pcm(config) => Pcm::of(config).map(Self::Pcm),
            Codec::Flac(_) | Codec::Alac(_) => None,
            Codec::Tx3g | Codec::Wvtt(_) | Codec::Stpp(_) | Codec::MatroskaText(_) | Codec::PrivateText(_) => None,
        }
    }

    /// Timestamp ticks per second.
    #[must_use]
    pub fn clock_rate(self, track: &Track) -> u32 {
        match (self, track.kind) {
            (Self::Opus, _) => 48_000,
            (Self::Aac | Self::Ac3 | Self::Eac3 | Self::Pcm(_), TrackKind::Audio { sample_rate, .. }) => sample_rate,
            _ => 90_000,
        }
    }

    /// Whether a key frame contains its parameter sets, or needs none.
    #[must_use]
    pub fn stands_alone(self, frame: &[u8]) -> bool {
        match self {
            Self::Avc(length_size) => nal::has_sets::<nal::Avc>(frame, length_size),
            Self::Hevc(length_size) => nal::has_sets::<nal::Hevc>(frame, length_size),
            _ => true,
        }
    }

    /// Returns the index of the first piece of a key frame with bytes of a slice. Messages about the picture precede
    /// that piece. `None` for codecs without NAL units.
    #[must_use]
    pub fn first_slice(self, frame: &[u8], pieces: &[Piece]) -> Option<usize> {
        let start = match self {
            Self::Avc(length_size) => nal::first_slice::<nal::Avc>(frame, length_size)?,
            Self::Hevc(length_size) => nal::first_slice::<nal::Hevc>(frame, length_size)?,
            _ => return None,
        };
        pieces.iter().position(|piece| piece.body.start >= start)
    }

    /// Returns the static payload type (RFC 3551 6), where clients may require it.
    #[must_use]
    pub fn payload_type(self, track: &Track) -> Option<u8> {
        match self {
            Self::Mpa => Some(14),
            Self::Pcm(pcm) => pcm.payload_type(self.clock_rate(track)),
            _ => None,
        }
    }

    /// Divides a frame into payloads of at most `most` bytes (at least 16), which are appended to `pieces`.
    ///
    /// # Errors
    /// The frame violates its codec's format; `pieces` then contains the payloads before the error.
    pub fn cut(self, frame: &[u8], most: usize, pieces: &mut Vec<Piece>) -> Result<(), PayloadError> {
        let most = most.max(16);
        let first = pieces.len();
        match self {
            Self::Avc(length_size) => nal::cut::<nal::Avc>(frame, length_size, most, pieces)?,
            Self::Hevc(length_size) => nal::cut::<nal::Hevc>(frame, length_size, most, pieces)?,
            Self::Av1 => av1::cut(frame, most, pieces)?,
            Self::Vp8 => vpx::cut_vp8(frame, most, pieces),
            Self::Vp9 => vpx::cut_vp9(frame, most, pieces)?,
            Self::Aac => aac::cut(frame, most, pieces)?,
            Self::Mpa => mpa::cut(frame, most, pieces)?,
            Self::Opus => opus::cut(frame, pieces),
            Self::Ac3 => ac3::cut(frame, most, pieces, false),
            Self::Eac3 => ac3::cut(frame, most, pieces, true),
            Self::Pcm(pcm) => pcm::cut(frame, pcm, most, pieces)?,
        }
        // RFC 6184 5.1, 7798 4.1, 3640 3.1, 4184 4.1 and others set the marker on the last packet of a frame. RFC 2250,
        // 3551 and 7587 set it only at the beginning of a talkspurt, which files don't contain.
        if !matches!(self, Self::Opus | Self::Mpa | Self::Pcm(_))
            && pieces.len() > first
            && let Some(last) = pieces.last_mut()
        {
            last.marker = true;
        }
        Ok(())
    }
}

/// Returns the parameter sets of a track as NAL units of a frame, each preceded by its length. Decoders need them
/// before a key frame, and files keep them apart.
#[must_use]
pub fn parameter_sets(track: &Track) -> Option<Vec<u8>> {
    let (size, sets): (u8, Vec<&[u8]>) = match &track.codec {
        Codec::Avc(config) => (config.nal_length_size, config.parameter_sets().collect()),
        Codec::Hevc(config) => (
            config.nal_length_size,
            [&config.vps, &config.sps, &config.pps].into_iter().flatten().map(Vec::as_slice).collect(),
        ),
        _ => return None,
    };
    let mut bytes = Vec::new();
    for set in sets {
        push_unit(&mut bytes, size, set);
    }
    (!bytes.is_empty()).then_some(bytes)
}

/// Returns the message that tells decoders to turn a track's pictures (H.264 D.1.27, H.265 D.2.17), as a NAL unit of a
/// frame preceded by its length; `None` for upright pictures.
#[must_use]
pub fn orientation(track: &Track) -> Option<Vec<u8>> {
    let TrackKind::Video { orientation, .. } = track.kind else { return None };
    let (syntax, size) = NalSyntax::of(&track.codec)?;
    let mut bytes = Vec::new();
    push_unit(&mut bytes, size, &syntax.orientation(orientation)?);
    (!bytes.is_empty()).then_some(bytes)
}

/// Appends a NAL unit after a length field of `size` bytes, if its length fits.
fn push_unit(bytes: &mut Vec<u8>, size: u8, unit: &[u8]) {
    let length = (unit.len() as u64).to_be_bytes();
    let (high, low) = length.split_at(length.len() - usize::from(size).min(length.len()));
    if high.iter().all(|byte| *byte == 0) {
        bytes.extend_from_slice(low);
        bytes.extend_from_slice(unit);
    }
}

/// Divides a range into parts of at most `most` bytes.
fn parts(range: Range<usize>, most: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(most.max(1)).map(move |start| start..(start + most).min(end))
}
