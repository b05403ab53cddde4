//! Bodies of video tags (Video File Format 10, E.4.3; Enhanced RTMP 2, "Enhanced Video").

use super::{
    FlvCodec, FlvContent, Read, cut_off,
    packets::{self, CONFIGURATION, FRAME, Packet, Wanted},
    rest, unread, unread_four_cc,
};
use crate::{codec::Medium, error::MediaError};
use bytes::Bytes;

/// Flag of a header with a FourCC.
pub(super) const EXTENDED: u8 = 0x80;
/// Frame type of key frames, and of commands.
pub(super) const KEY: u8 = 1;
const COMMAND: u8 = 5;
/// `CodecID` of H.264; and of HEVC, as some senders have it without a FourCC.
pub(super) const AVC: u8 = 7;
const HEVC: u8 = 12;
/// OBU header and size of an empty temporal delimiter, which samples lack (AV1 Codec ISO Media File Format Binding 2.4).
const DELIMITER: [u8; 2] = [0x12, 0];

/// Type of packets with a frame whose composition time is 0 and absent.
pub(super) const FRAME_AT_ONCE: u8 = 3;
/// Type of packets of several tracks.
const MULTITRACK: u8 = 6;

/// Reads the body of a tag.
pub(super) fn read(body: &Bytes, wanted: Wanted) -> Vec<Read> {
    let Some(first) = body.first().copied() else { return vec![Err(cut_off(0, 1))] };
    let (kind, low) = (first >> 4 & 7, first & 0xf);
    if kind == COMMAND {
        return vec![Ok(None)];
    }
    let is_key = kind == KEY;
    if first & EXTENDED == 0 {
        return vec![plain(body, low, is_key).map(|read| read.map(|(codec, content)| (0, codec, content)))];
    }
    match packets::read(body, low, MULTITRACK, wanted) {
        Ok(packets) => packets.into_iter().map(|packet| extended(packet, is_key)).collect(),
        Err(error) => vec![Err(error)],
    }
}

/// Reads a body without a FourCC. Each has a composition time.
fn plain(body: &Bytes, codec: u8, is_key: bool) -> Result<Option<(FlvCodec, FlvContent)>, MediaError> {
    let codec = match codec {
        AVC => FlvCodec::Avc,
        HEVC => FlvCodec::Hevc,
        other => return Err(unread(Medium::Video, name(other), other)),
    };
    let packet = *body.get(1).ok_or_else(|| cut_off(body.len(), 2))?;
    let data = rest(body, 2)?;
    let content = match packet {
        CONFIGURATION => FlvContent::Configuration(rest(&data, 3)?),
        FRAME => timed(&data, is_key)?,
        // The end of a sequence.
        _ => return Ok(None),
    };
    Ok(Some((codec, content)))
}

/// Reads a packet whose codec is a FourCC. Codecs without NAL units have no composition times.
fn extended(packet: Packet, is_key: bool) -> Read {
    let Packet { track, code, kind, content: mut data } = packet;
    let codec = match &code {
        b"avc1" => FlvCodec::Avc,
        b"hvc1" => FlvCodec::Hevc,
        b"av01" => FlvCodec::Av1,
        b"vp09" => FlvCodec::Vp9,
        b"vp08" => FlvCodec::Vp8,
        _ => return Err(unread_four_cc(Medium::Video, code)),
    };
    let content = match kind {
        CONFIGURATION => FlvContent::Configuration(data),
        FRAME if codec.syntax().is_some() => timed(&data, is_key)?,
        FRAME | FRAME_AT_ONCE => {
            if codec == FlvCodec::Av1 && data.starts_with(&DELIMITER) {
                data = data.slice(DELIMITER.len()..);
            }
            FlvContent::Frame { composition: 0, is_key, data }
        }
        // The end of a sequence, metadata.
        _ => return Ok(None),
    };
    Ok(Some((track, codec, content)))
}

/// Reads a frame behind its composition time: 24 bits with a sign.
fn timed(data: &Bytes, is_key: bool) -> Result<FlvContent, MediaError> {
    let [a, b, c] = *data.first_chunk().ok_or_else(|| cut_off(data.len(), 3))?;
    let composition = i32::from_be_bytes([a, b, c, 0]) >> 8;
    Ok(FlvContent::Frame { composition, is_key, data: rest(data, 3)? })
}

/// Names of codecs (E.4.3.1).
fn name(codec: u8) -> Option<&'static str> {
    Some(match codec {
        2 => "Sorenson H.263",
        3 => "Screen video",
        4 | 5 => "On2 VP6",
        6 => "Screen video 2",
        _ => return None,
    })
}
