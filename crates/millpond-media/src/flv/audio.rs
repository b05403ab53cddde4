//! Bodies of audio tags (Video File Format 10, E.4.2; Enhanced RTMP 2, "Enhanced Audio").

use super::{FlvCodec, FlvContent, cut_off, four_cc, rest, unread, unread_four_cc, unsupported};
use crate::{codec::Medium, error::MediaError};
use bytes::Bytes;

/// `SoundFormat` of MP3, of MP3 at 8 kHz, of AAC, and of a header with a FourCC.
const MP3: u8 = 2;
const MP3_8K: u8 = 14;
const AAC: u8 = 10;
const EXTENDED: u8 = 9;

/// Types of packets.
const CONFIGURATION: u8 = 0;
const FRAME: u8 = 1;
const MULTITRACK: u8 = 5;
const MODIFIED: u8 = 7;

/// Reads the body of a tag.
pub(super) fn read(body: &Bytes) -> Result<Option<(FlvCodec, FlvContent)>, MediaError> {
    let first = body.first().copied().ok_or_else(|| cut_off(0, 1))?;
    match first >> 4 {
        AAC => {
            let packet = *body.get(1).ok_or_else(|| cut_off(body.len(), 2))?;
            content(body, FlvCodec::Aac, packet, 2)
        }
        MP3 | MP3_8K => content(body, FlvCodec::Mp3, FRAME, 1),
        EXTENDED => extended(body, first & 0xf),
        other => Err(unread(Medium::Audio, name(other), other)),
    }
}

/// Reads a body whose codec is a FourCC.
fn extended(body: &Bytes, packet: u8) -> Result<Option<(FlvCodec, FlvContent)>, MediaError> {
    match packet {
        MULTITRACK => return Err(unsupported("several tracks of sound in one message")),
        MODIFIED => return Err(unsupported("modified packets of sound")),
        _ => {}
    }
    let codec = match &four_cc(body, 1)? {
        b"mp4a" => FlvCodec::Aac,
        b".mp3" => FlvCodec::Mp3,
        other => return Err(unread_four_cc(Medium::Audio, *other)),
    };
    content(body, codec, packet, 5)
}

/// Reads a packet whose contents are at `at`.
fn content(body: &Bytes, codec: FlvCodec, packet: u8, at: usize) -> Result<Option<(FlvCodec, FlvContent)>, MediaError> {
    let content = match packet {
        CONFIGURATION => FlvContent::Configuration(rest(body, at)?),
        FRAME => FlvContent::Frame { composition: 0, is_key: true, data: rest(body, at)? },
        // The end of a sequence, the order of channels.
        _ => return Ok(None),
    };
    Ok(Some((codec, content)))
}

/// Names of codecs (E.4.2.1).
fn name(codec: u8) -> Option<&'static str> {
    Some(match codec {
        0 | 3 => "PCM",
        1 => "ADPCM",
        4..=6 => "Nellymoser",
        7 => "G.711 A-law",
        8 => "G.711 mu-law",
        11 => "Speex",
        _ => return None,
    })
}
