//! Bodies of audio tags (Video File Format 10, E.4.2; Enhanced RTMP 2, "Enhanced Audio").

use super::{
    FlvCodec, FlvContent, Read, cut_off,
    packets::{self, CONFIGURATION, FRAME, Packet, Wanted},
    rest, unread, unread_four_cc,
};
use crate::{codec::Medium, error::MediaError};
use bytes::Bytes;

/// `SoundFormat` of MP3, of MP3 at 8 kHz, of AAC, and of a header with a FourCC.
pub(super) const MP3: u8 = 2;
pub(super) const MP3_8K: u8 = 14;
pub(super) const AAC: u8 = 10;
pub(super) const EXTENDED: u8 = 9;
/// Type of packets of several tracks.
pub(super) const MULTITRACK: u8 = 5;

/// Reads the body of a tag.
pub(super) fn read(body: &Bytes, wanted: Wanted) -> Vec<Read> {
    let Some(first) = body.first().copied() else { return vec![Err(cut_off(0, 1))] };
    if first >> 4 != EXTENDED {
        return vec![plain(body, first >> 4).map(|read| read.map(|(codec, content)| (0, codec, content)))];
    }
    match packets::read(body, first & 0xf, MULTITRACK, wanted) {
        Ok(packets) => packets.into_iter().map(extended).collect(),
        Err(error) => vec![Err(error)],
    }
}

/// Reads a body without a FourCC.
fn plain(body: &Bytes, format: u8) -> Result<Option<(FlvCodec, FlvContent)>, MediaError> {
    let (codec, packet, at) = match format {
        AAC => (FlvCodec::Aac, *body.get(1).ok_or_else(|| cut_off(body.len(), 2))?, 2),
        MP3 | MP3_8K => (FlvCodec::Mp3, FRAME, 1),
        other => return Err(unread(Medium::Audio, name(other), other)),
    };
    let content = content(packet, rest(body, at)?);
    Ok(content.map(|content| (codec, content)))
}

/// Reads a packet whose codec is a FourCC.
fn extended(packet: Packet) -> Read {
    let Packet { track, code, kind, content: data } = packet;
    let codec = match &code {
        b"mp4a" => FlvCodec::Aac,
        b".mp3" => FlvCodec::Mp3,
        b"Opus" => FlvCodec::Opus,
        b"fLaC" => FlvCodec::Flac,
        b"ac-3" => FlvCodec::Ac3,
        b"ec-3" => FlvCodec::Eac3,
        _ => return Err(unread_four_cc(Medium::Audio, code)),
    };
    Ok(content(kind, data).map(|content| (track, codec, content)))
}

fn content(packet: u8, data: Bytes) -> Option<FlvContent> {
    match packet {
        CONFIGURATION => Some(FlvContent::Configuration(data)),
        FRAME => Some(FlvContent::Frame { composition: 0, is_key: true, data }),
        // The end of a sequence, the order of channels.
        _ => None,
    }
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
