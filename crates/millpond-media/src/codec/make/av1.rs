//! AV1: `av01` with `av1C` (AV1 Codec ISO Media File Format Binding 2.2 and 2.3).

use super::{Made, entry};
use crate::{
    codec::{fields::FieldReader, video::color::Color},
    error::MediaError,
};

/// Path of errors.
const PATH: &str = "AV1 sequence header";
/// `obu_type` of a sequence header (AV1 bitstream 6.2.2).
const SEQUENCE_HEADER: u8 = 1;
/// Most OBUs before the sequence header.
const MOST_OBUS: usize = 64;
/// Level from which a tier is stated (5.5.1).
const FIRST_TIERED: u32 = 8;
/// Colours for which planes are not subsampled: BT.709 primaries, sRGB transfer, identity matrix (5.5.2).
const SRGB: (u8, u8, u8) = (1, 13, 0);

/// Properties of a sequence header (AV1 bitstream 5.5).
#[derive(Debug, Default)]
struct Sequence {
    profile: u8,
    level: u8,
    high_tier: bool,
    size: (u16, u16),
    /// `high_bitdepth`, `twelve_bit` and `mono_chrome`.
    depth: (bool, bool, bool),
    /// `chroma_subsampling_x`, `chroma_subsampling_y` and `chroma_sample_position`.
    chroma: (bool, bool, u8),
    color: Option<Color>,
}

/// Makes an `av01` entry from a temporal unit with a sequence header, in the form of samples: each OBU has its size.
///
/// # Errors
/// The unit has no sequence header, or one that can't be read.
pub fn av1(unit: &[u8]) -> Result<Made, MediaError> {
    let (obu, body) = sequence_header(unit)
        .ok_or_else(|| MediaError::invalid(PATH, 0, "no sequence header", "one before the first frame"))?;
    entry::bounded(obu.len())?;
    let sequence = Sequence::read(&mut FieldReader::new(body, 0, PATH))?;
    let (high, twelve, monochrome) = sequence.depth;
    let (x, y, position) = sequence.chroma;
    let flags = [sequence.high_tier, high, twelve, monochrome, x, y];
    let packed = flags.iter().fold(0, |bits, flag| bits << 1 | u8::from(*flag)) << 2 | position;
    // Marker and version; no presentation delay.
    let av1c = [&[0x81, sequence.profile << 5 | sequence.level, packed, 0], obu].concat();
    let picture = entry::Picture { size: sequence.size, pixel_aspect: None, color: sequence.color };
    Made::parsed(entry::visual(b"av01", &picture, (b"av1C", &av1c)), b"vide")
}

/// Returns the colours that the sequence header in `configOBUs` of `av1C` states.
pub(crate) fn av1_color(obus: &[u8]) -> Option<Color> {
    let (_, body) = sequence_header(obus)?;
    Sequence::read(&mut FieldReader::new(body, 0, PATH)).ok()?.color
}

/// Returns the sequence header OBU, and its body.
fn sequence_header(unit: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut rest = unit;
    for _ in 0..MOST_OBUS {
        let first = *rest.first()?;
        let header = if first & 4 != 0 { 2 } else { 1 };
        // Without a size field, the OBU extends to the end.
        let (start, length) = match first & 2 {
            0 => (header, rest.len().checked_sub(header)?),
            _ => leb128(rest, header)?,
        };
        let body = rest.get(start..start.checked_add(length)?)?;
        if first >> 3 & 0xf == SEQUENCE_HEADER {
            return Some((&rest[..start + length], body));
        }
        rest = &rest[start + length..];
    }
    None
}

/// Reads a number (AV1 bitstream 4.10.5) at `at`; returns the place after it, and the number.
fn leb128(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let mut value = 0;
    for (place, byte) in bytes.get(at..)?.iter().take(4).enumerate() {
        value |= usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some((at + place + 1, value));
        }
    }
    None
}

impl Sequence {
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, MediaError> {
        let mut sequence = Self { profile: fields.small(3)?, ..Self::default() };
        fields.skip(1)?; // still_picture
        let is_reduced = fields.flag()?;
        if is_reduced {
            sequence.level = fields.small(5)?;
        } else {
            sequence.operating_points(fields)?;
        }
        let widths = [fields.bits(4)? + 1, fields.bits(4)? + 1];
        let mut length = |width| fields.bits(width).map(|less| u16::try_from(less + 1).unwrap_or(u16::MAX));
        sequence.size = (length(widths[0])?, length(widths[1])?);
        if !is_reduced && fields.flag()? {
            fields.skip(4 + 3)?; // lengths of frame identifiers
        }
        // Large superblocks, intra filters.
        fields.skip(3)?;
        if !is_reduced {
            tools(fields)?;
        }
        // Super resolution, directional enhancement, restoration.
        fields.skip(3)?;
        sequence.color(fields)?;
        Ok(sequence)
    }

    /// Reads timing, decoder model and operating points; the first one states level and tier.
    fn operating_points(&mut self, fields: &mut FieldReader<'_, '_>) -> Result<(), MediaError> {
        let mut delay_bits = None;
        if fields.flag()? {
            fields.skip(32 + 32)?;
            if fields.flag()? {
                uvlc(fields)?;
            }
            if fields.flag()? {
                delay_bits = Some(fields.bits(5)? as usize + 1);
                fields.skip(32 + 5 + 5)?;
            }
        }
        let has_delays = fields.flag()?;
        for point in 0..=fields.bits(5)? {
            fields.skip(12)?;
            let level = fields.bits(5)?;
            let high_tier = level >= FIRST_TIERED && fields.flag()?;
            if point == 0 {
                (self.level, self.high_tier) = (level as u8, high_tier);
            }
            if let Some(bits) = delay_bits
                && fields.flag()?
            {
                fields.skip(2 * bits + 1)?;
            }
            if has_delays && fields.flag()? {
                fields.skip(4)?;
            }
        }
        Ok(())
    }

    /// Reads `color_config` (5.5.2).
    fn color(&mut self, fields: &mut FieldReader<'_, '_>) -> Result<(), MediaError> {
        let high = fields.flag()?;
        let twelve = self.profile == 2 && high && fields.flag()?;
        let monochrome = self.profile != 1 && fields.flag()?;
        self.depth = (high, twelve, monochrome);
        let mut color = Color::UNSPECIFIED;
        if fields.flag()? {
            (color.primaries, color.transfer, color.matrix) = (fields.u8()?, fields.u8()?, fields.u8()?);
        }
        if !monochrome && (color.primaries, color.transfer, color.matrix) == SRGB {
            color.full_range = true;
        } else {
            color.full_range = fields.flag()?;
            let (x, y) = match self.profile {
                _ if monochrome => (true, true),
                0 => (true, true),
                1 => (false, false),
                _ if twelve => {
                    let x = fields.flag()?;
                    (x, x && fields.flag()?)
                }
                _ => (true, false),
            };
            let position = if x && y && !monochrome { fields.small(2)? } else { 0 };
            self.chroma = (x, y, position);
        }
        self.color = Some(color).filter(|&color| color != Color::UNSPECIFIED);
        Ok(())
    }
}

/// Skips the coding tools that a reduced header lacks.
fn tools(fields: &mut FieldReader<'_, '_>) -> Result<(), MediaError> {
    // Compound predictions, warped motion, dual filters.
    fields.skip(4)?;
    let has_order = fields.flag()?;
    if has_order {
        fields.skip(2)?;
    }
    // A choice per frame, or else a fixed value.
    let may_be_screen = fields.flag()? || fields.flag()?;
    if may_be_screen && !fields.flag()? {
        fields.skip(1)?;
    }
    fields.skip(if has_order { 3 } else { 0 })
}

/// Skips a number of variable length (4.10.3).
fn uvlc(fields: &mut FieldReader<'_, '_>) -> Result<(), MediaError> {
    let mut zeros = 0;
    while !fields.flag()? {
        zeros += 1;
    }
    fields.skip(if zeros < 32 { zeros } else { 0 })
}
