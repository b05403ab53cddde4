//! VP8 and VP9: `vp08` and `vp09` with `vpcC` (VP Codec ISO Media File Format Binding, version 1).

use super::{Made, entry};
use crate::{
    boxes::FourCc,
    codec::{
        fields::FieldReader,
        video::{color::Color, vp9::least_level},
    },
    error::MediaError,
};

/// Bytes after the frame tag of a VP8 key frame (RFC 6386 9.1).
const VP8_START: [u8; 3] = [0x9d, 0x01, 0x2a];
/// `frame_sync_code` of VP9 (VP9 bitstream 7.2.1).
const VP9_SYNC: u32 = 0x0049_8342;
/// `color_space` of VP9 for red, green and blue.
const RGB: u32 = 7;

struct Parameters {
    size: (u16, u16),
    profile: u8,
    bit_depth: u8,
    /// `chromaSubsampling`: 1 is 4:2:0, 2 4:2:2, 3 4:4:4.
    chroma: u8,
    color: Color,
}

/// Makes a `vp08` entry from a key frame.
///
/// # Errors
/// The bytes are no key frame of VP8.
pub fn vp8(frame: &[u8]) -> Result<Made, MediaError> {
    let Some([tag, _, _, a, b, c, width, wide, height, high]) = frame.first_chunk::<10>() else {
        return Err(MediaError::truncated("VP8 frame", 0, frame.len() as u64, 10));
    };
    if tag & 1 != 0 || [*a, *b, *c] != VP8_START {
        return Err(MediaError::invalid("VP8 frame", 0, "no start code of a key frame", "a key frame"));
    }
    // Two bits of each field are for scaling.
    let size = [[*width, *wide], [*height, *high]].map(|field| u16::from_le_bytes(field) & 0x3fff);
    let parameters = Parameters {
        size: (size[0], size[1]),
        profile: tag >> 1 & 7,
        bit_depth: 8,
        chroma: 1,
        color: Color::UNSPECIFIED,
    };
    made(b"vp08", &parameters)
}

/// Makes a `vp09` entry from a key frame.
///
/// # Errors
/// The bytes are no key frame of VP9, or its colour planes have different shapes.
pub fn vp9(frame: &[u8]) -> Result<Made, MediaError> {
    vp9_stated(frame, None)
}

/// Makes a `vp09` entry from a key frame and the colours that a container states. Frames can't state transfer functions such as PQ.
///
/// # Errors
/// The bytes are no key frame of VP9, or its colour planes have different shapes.
pub(crate) fn vp9_stated(frame: &[u8], stated: Option<Color>) -> Result<Made, MediaError> {
    let mut fields = FieldReader::new(frame, 0, "VP9 frame");
    let marker = fields.bits(2)?;
    let profile = fields.small(1)? | fields.small(1)? << 1;
    if profile == 3 {
        fields.skip(1)?;
    }
    let (shows_other, is_predicted) = (fields.flag()?, fields.flag()?);
    fields.skip(2)?;
    if marker != 2 || shows_other || is_predicted || fields.bits(24)? != VP9_SYNC {
        return Err(fields.invalid("another frame", "a key frame of VP9"));
    }
    let bit_depth = match profile {
        2 | 3 => 10 + 2 * fields.small(1)?,
        _ => 8,
    };
    let (color, chroma) = vp9_color(&mut fields, profile)?;
    let color = stated.map_or(color, |stated| color.completed(stated));
    let mut length = || fields.bits(16).map(|less| u16::try_from(less + 1).unwrap_or(u16::MAX));
    let size = (length()?, length()?);
    made(b"vp09", &Parameters { size, profile, bit_depth, chroma, color })
}

/// Reads `color_config` after the bit depth (VP9 bitstream 6.2.2); returns the colours and `chromaSubsampling`.
fn vp9_color(fields: &mut FieldReader<'_, '_>, profile: u8) -> Result<(Color, u8), MediaError> {
    let space = fields.bits(3)?;
    let full_range = space == RGB || fields.flag()?;
    let has_shape = profile & 1 != 0;
    let shape = match (has_shape, space) {
        (false, RGB) => return Err(fields.invalid("RGB in profile 0 or 2", "profile 1 or 3")),
        (false, _) => (true, true),
        (true, RGB) => (false, false),
        (true, _) => (fields.flag()?, fields.flag()?),
    };
    let chroma = match shape {
        (true, true) => 1,
        (true, false) => 2,
        (false, false) => 3,
        (false, true) => return Err(fields.unsupported("4:4:0")),
    };
    if has_shape {
        fields.skip(1)?;
    }
    // Table of `color_space` (VP9 bitstream 7.2.2) in code points of ISO/IEC 23091-2.
    let (primaries, transfer, matrix) = match space {
        1 | 3 => (6, 6, 6),
        2 => (1, 1, 1),
        4 => (7, 7, 7),
        5 => (9, 2, 9),
        RGB => (1, 13, 0),
        _ => (2, 2, 2),
    };
    Ok((Color { primaries, transfer, matrix, full_range }, chroma))
}

fn made(kind: &FourCc, parameters: &Parameters) -> Result<Made, MediaError> {
    let Parameters { size, profile, bit_depth, chroma, color } = *parameters;
    if size.0 == 0 || size.1 == 0 {
        return Err(MediaError::invalid("key frame", 0, format!("{} x {} pixels", size.0, size.1), "at least 1 x 1"));
    }
    let packed = bit_depth << 4 | chroma << 1 | u8::from(color.full_range);
    let level = least_level(size.0, size.1);
    let Color { primaries, transfer, matrix, .. } = color;
    // Version 1, and no data for initialization.
    let vpcc = [1, 0, 0, 0, profile, level, packed, primaries, transfer, matrix, 0, 0];
    let picture = entry::Picture { size, pixel_aspect: None, color: None };
    Made::parsed(entry::visual(kind, &picture, (b"vpcC", &vpcc)), b"vide")
}
