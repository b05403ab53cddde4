//! Bodies of video tags (Video File Format 10, E.4.3; Enhanced RTMP 2, "Enhanced Video").

use super::{FlvCodec, FlvContent, cut_off, four_cc, rest, unread, unread_four_cc, unsupported};
use crate::{codec::Medium, error::MediaError};
use bytes::Bytes;

/// Flag of a header with a FourCC.
const EXTENDED: u8 = 0x80;
/// Frame type of key frames, and of commands.
const KEY: u8 = 1;
const COMMAND: u8 = 5;
/// `CodecID` of H.264; and of HEVC, as some senders have it without a FourCC.
const AVC: u8 = 7;
const HEVC: u8 = 12;
/// OBU header and size of an empty temporal delimiter, which samples lack (AV1 Codec ISO Media File Format Binding 2.4).
const DELIMITER: [u8; 2] = [0x12, 0];

/// Types of packets.
const CONFIGURATION: u8 = 0;
const FRAME: u8 = 1;
/// A frame without a composition time, which is 0.
const FRAME_AT_ONCE: u8 = 3;
const MULTITRACK: u8 = 6;
const MODIFIED: u8 = 7;

/// Reads the body of a tag.
pub(super) fn read(body: &Bytes) -> Result<Option<(FlvCodec, FlvContent)>, MediaError> {
    let first = body.first().copied().ok_or_else(|| cut_off(0, 1))?;
    let (kind, low) = (first >> 4 & 7, first & 0xf);
    if kind == COMMAND {
        return Ok(None);
    }
    let is_key = kind == KEY;
    if first & EXTENDED != 0 {
        return extended(body, low, is_key);
    }
    let codec = match low {
        AVC => FlvCodec::Avc,
        HEVC => FlvCodec::Hevc,
        other => return Err(unread(Medium::Video, name(other), other)),
    };
    let packet = *body.get(1).ok_or_else(|| cut_off(body.len(), 2))?;
    content(body, codec, packet, 2, is_key)
}

/// Reads a body whose codec is a FourCC.
fn extended(body: &Bytes, packet: u8, is_key: bool) -> Result<Option<(FlvCodec, FlvContent)>, MediaError> {
    match packet {
        MULTITRACK => return Err(unsupported("several tracks of pictures in one message")),
        MODIFIED => return Err(unsupported("modified packets of pictures")),
        _ => {}
    }
    let codec = match &four_cc(body, 1)? {
        b"avc1" => FlvCodec::Avc,
        b"hvc1" => FlvCodec::Hevc,
        b"av01" => FlvCodec::Av1,
        other => return Err(unread_four_cc(Medium::Video, *other)),
    };
    content(body, codec, packet, 5, is_key)
}

/// Reads a packet whose contents are at `at`. AV1 has no composition times.
fn content(
    body: &Bytes,
    codec: FlvCodec,
    packet: u8,
    at: usize,
    is_key: bool,
) -> Result<Option<(FlvCodec, FlvContent)>, MediaError> {
    let content = match packet {
        CONFIGURATION => FlvContent::Configuration(rest(body, at + if at == 2 { 3 } else { 0 })?),
        FRAME if codec != FlvCodec::Av1 => {
            let time =
                body.get(at..).and_then(|rest| rest.first_chunk::<3>()).ok_or_else(|| cut_off(body.len(), at + 3))?;
            // 24 bits with a sign.
            let composition = i32::from_be_bytes([time[0], time[1], time[2], 0]) >> 8;
            FlvContent::Frame { composition, is_key, data: rest(body, at + 3)? }
        }
        FRAME | FRAME_AT_ONCE => {
            let mut data = rest(body, at)?;
            if codec == FlvCodec::Av1 && data.starts_with(&DELIMITER) {
                data = data.slice(DELIMITER.len()..);
            }
            FlvContent::Frame { composition: 0, is_key, data }
        }
        // The end of a sequence, metadata.
        _ => return Ok(None),
    };
    Ok(Some((codec, content)))
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
