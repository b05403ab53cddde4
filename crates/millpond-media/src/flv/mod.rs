//! FLV tags (Video File Format Specification 10, annex E.4; Enhanced RTMP 2), whose bodies are also RTMP's media messages.

mod audio;
mod codec;
mod metadata;
mod packets;
#[cfg(test)]
mod tests;
mod video;
mod writer;

pub use codec::FlvCodec;
pub use metadata::{FlvAnnouncement, FlvMetadata, FlvValue};
pub use writer::{FlvMessage, FlvWriter};

use crate::{boxes::FourCc, codec::Medium, error::MediaError};
use bytes::Bytes;
use packets::Wanted;

/// Path of errors.
const PATH: &str = "FLV tag";
/// Bytes of a tag's header.
const HEADER: usize = 11;
/// Types of tags.
const AUDIO: u8 = 8;
const VIDEO: u8 = 9;
const SCRIPT: u8 = 18;

/// Track number, codec and content of a packet; `None` for packets without pictures and sound.
type Read = Result<Option<(u8, FlvCodec, FlvContent)>, MediaError>;

/// The pictures or the sound of a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlvTag {
    /// Decode time in milliseconds. It wraps.
    pub timestamp: u32,
    /// Number of the track among those of its kind. That of tags without a number is 0.
    pub track: u8,
    /// How they are encoded.
    pub codec: FlvCodec,
    /// Configuration of the decoder, or a coded frame.
    pub content: FlvContent,
}

/// The content of a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlvContent {
    /// The configuration of the decoder, as [`FlvCodec`] tells its form. It is valid from here on.
    Configuration(Bytes),
    /// A frame.
    Frame {
        /// Milliseconds from decoding to presentation.
        composition: i32,
        /// Whether decoding can begin with it. Frames of sound have `true`.
        is_key: bool,
        /// Its bytes, in the form of MP4 samples; of MP3 whole frames, mostly one.
        data: Bytes,
    },
}

impl FlvTag {
    /// Whether a tag has sound, of whatever codec.
    #[must_use]
    pub fn is_sound(tag: &[u8]) -> bool {
        tag.first() == Some(&AUDIO)
    }

    /// Reads a tag of one track: its header, and its body up to the end. `None` for tags without pictures and sound: metadata, ends of
    /// sequences, commands.
    ///
    /// # Errors
    /// The tag is cut off, has several tracks, or its codec is not supported. Unsupported codecs are named.
    pub fn read(tag: &Bytes) -> Result<Option<Self>, MediaError> {
        Self::packets(tag, Wanted::Single).pop().unwrap_or(Ok(None))
    }

    /// Reads the packets of all tracks in a tag, as [`read`](Self::read) reads one. One that can't be read leaves the others as they
    /// are.
    #[must_use]
    pub fn read_all(tag: &Bytes) -> Vec<Result<Self, MediaError>> {
        Self::packets(tag, Wanted::All).into_iter().filter_map(Result::transpose).collect()
    }

    fn packets(tag: &Bytes, wanted: Wanted) -> Vec<Result<Option<Self>, MediaError>> {
        let Some([kind, _, _, _, time @ .., upper, _, _, _]) = tag.first_chunk::<HEADER>() else {
            return vec![Err(cut_off(tag.len(), HEADER))];
        };
        let timestamp = u32::from_be_bytes([*upper, time[0], time[1], time[2]]);
        let body = tag.slice(HEADER..);
        // Some senders begin with an empty message.
        let packets = match *kind {
            _ if body.is_empty() => Vec::new(),
            AUDIO => audio::read(&body, wanted),
            VIDEO => video::read(&body, wanted),
            _ => Vec::new(),
        };
        let tag = |(track, codec, content)| Self { timestamp, track, codec, content };
        packets.into_iter().map(|packet| packet.map(|packet| packet.map(tag))).collect()
    }
}

/// Returns the FourCC at `at`.
fn four_cc(body: &[u8], at: usize) -> Result<[u8; 4], MediaError> {
    body.get(at..).and_then(|rest| rest.first_chunk().copied()).ok_or_else(|| cut_off(body.len(), at + 4))
}

/// Returns the bytes from `at` on.
fn rest(body: &Bytes, at: usize) -> Result<Bytes, MediaError> {
    if at > body.len() { Err(cut_off(body.len(), at)) } else { Ok(body.slice(at..)) }
}

fn cut_off(found: usize, expected: usize) -> MediaError {
    MediaError::truncated(PATH, 0, found as u64, expected as u64)
}

/// Returns the error for a codec with a known name, or with `number` alone.
fn unread(medium: Medium, name: Option<&str>, number: u8) -> MediaError {
    let of = if medium == Medium::Audio { "sound" } else { "pictures" };
    match name {
        Some(name) => unsupported(format!("{name} {of}")).of_codec(medium, name),
        None => unsupported(format!("codec {number} of {of}")).of_codec(medium, format!("codec {number}")),
    }
}

/// Returns the error for a codec with an unknown FourCC.
fn unread_four_cc(medium: Medium, code: FourCc) -> MediaError {
    let code = String::from_utf8_lossy(&code).escape_debug().to_string();
    unread(medium, Some(&code), 0)
}

fn unsupported(what: impl Into<String>) -> MediaError {
    MediaError::unsupported(PATH, 0, what)
}
