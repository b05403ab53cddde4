//! Reads picture sizes from sequence parameter sets (H.264 7.3.2.1.1 and H.265 7.3.2.2.1).

use super::{Codec, bits::FieldReader};
use crate::{
    error::MediaError,
    movie::TrackKind,
    nal::{NalSyntax, unescaped},
};

/// Profiles of H.264 whose parameter sets state a chroma format.
const HIGH: [u8; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];
/// Greatest `num_ref_frames_in_pic_order_cnt_cycle` (H.264 7.4.2.1.1).
const MOST_CYCLE: u32 = 255;
/// Bits of `profile_tier_level` of one layer, without its level (H.265 7.3.3).
const PROFILE: usize = 88;

/// Position of width and height in a visual sample entry, header included (ISO/IEC 14496-12 12.1.3.2).
const SIZE_PLACE: std::ops::Range<usize> = 32..36;

/// Returns width and height from the parameter sets in a codec's configuration.
pub(crate) fn configured_size(codec: &Codec) -> Option<(u16, u16)> {
    let (syntax, _) = NalSyntax::of(codec)?;
    let sets = match codec {
        Codec::Avc(config) => &config.sps,
        Codec::Hevc(config) => &config.sps,
        _ => return None,
    };
    sets.iter().find_map(|set| picture_size(syntax, set))
}

/// Whether a video track states no size.
pub(crate) fn lacks_size(kind: &TrackKind) -> bool {
    matches!(kind, TrackKind::Video { width, height, .. } if *width == 0 || *height == 0)
}

/// Sets the size of a track and its sample entry where they state none: players take the entry's for the pictures'
/// size.
pub(crate) fn fill_size(kind: &mut TrackKind, sample_entry: &mut [u8], size: (u16, u16)) {
    if !lacks_size(kind) {
        return;
    }
    if let TrackKind::Video { width, height, .. } = kind {
        (*width, *height) = size;
    }
    if let Some(place) = sample_entry.get_mut(SIZE_PLACE) {
        let (width, height) = (size.0.to_be_bytes(), size.1.to_be_bytes());
        place.copy_from_slice(&[width[0], width[1], height[0], height[1]]);
    }
}

/// Returns the cropped width and height in pixels from a sequence parameter set (a NAL unit without start code). `None`
/// where it can't be read, or its sizes exceed 16 bits.
pub(crate) fn picture_size(syntax: NalSyntax, unit: &[u8]) -> Option<(u16, u16)> {
    let bytes = unescaped(unit);
    let mut fields = FieldReader::new(&bytes, 0, "sequence parameter set");
    let size = match syntax {
        NalSyntax::Avc => avc(&mut fields),
        NalSyntax::Hevc => hevc(&mut fields),
    };
    let (width, height) = size.ok()?.cropped()?;
    Some((u16::try_from(width).ok().filter(|w| *w > 0)?, u16::try_from(height).ok().filter(|h| *h > 0)?))
}

struct Size {
    width: u32,
    height: u32,
    /// Cropping at left and right, top and bottom, in units of `unit`.
    crop: (u32, u32),
    /// Pixels per unit of cropping.
    unit: (u32, u32),
}

impl Size {
    fn cropped(&self) -> Option<(u32, u32)> {
        let width = self.width.checked_sub(self.crop.0.checked_mul(self.unit.0)?)?;
        Some((width, self.height.checked_sub(self.crop.1.checked_mul(self.unit.1)?)?))
    }
}

/// Returns the pixels per chroma sample (table 6-1 of both standards); 1 where there is no chroma.
const fn chroma(format: u32, separate: bool) -> (u32, u32) {
    match (format, separate) {
        (1, false) => (2, 2),
        (2, false) => (2, 1),
        _ => (1, 1),
    }
}

fn avc(fields: &mut FieldReader<'_, '_>) -> Result<Size, MediaError> {
    fields.skip(8)?;
    let profile = fields.u8()?;
    fields.skip(16)?;
    ue(fields)?;
    let (mut format, mut separate) = (1, false);
    if HIGH.contains(&profile) {
        format = ue(fields)?;
        separate = format == 3 && fields.flag()?;
        // Bit depths, lossless coding flag.
        ue(fields)?;
        ue(fields)?;
        fields.skip(1)?;
        if fields.flag()? {
            scaling_lists(fields, if format == 3 { 12 } else { 8 })?;
        }
    }
    ue(fields)?;
    match ue(fields)? {
        0 => {
            ue(fields)?;
        }
        1 => {
            fields.skip(1)?;
            se(fields)?;
            se(fields)?;
            let cycle = ue(fields)?;
            if cycle > MOST_CYCLE {
                return Err(fields.invalid(format!("a cycle of {cycle} frames"), "at most 255"));
            }
            for _ in 0..cycle {
                se(fields)?;
            }
        }
        _ => {}
    }
    // Number of reference frames, gaps allowed in frame numbers.
    ue(fields)?;
    fields.skip(1)?;
    let (wide, high) = (ue(fields)?, ue(fields)?);
    let frames_only = fields.flag()?;
    // Frame or field macroblocks; direct inference.
    fields.skip(if frames_only { 1 } else { 2 })?;
    let crop = if fields.flag()? { crop(fields)? } else { (0, 0) };
    let fields_of_frame = if frames_only { 1 } else { 2 };
    let (horizontal, vertical) = chroma(format, separate);
    Ok(Size {
        width: wide.saturating_add(1).saturating_mul(16),
        height: high.saturating_add(1).saturating_mul(16 * fields_of_frame),
        crop,
        unit: (horizontal, vertical * fields_of_frame),
    })
}

/// Skips scaling lists (7.3.2.1.1.1).
fn scaling_lists(fields: &mut FieldReader<'_, '_>, count: u32) -> Result<(), MediaError> {
    for list in 0..count {
        if !fields.flag()? {
            continue;
        }
        let (mut last, mut next) = (8_i64, 8_i64);
        for _ in 0..if list < 6 { 16 } else { 64 } {
            if next != 0 {
                next = (last + i64::from(se(fields)?)).rem_euclid(256);
            }
            last = if next == 0 { last } else { next };
        }
    }
    Ok(())
}

fn hevc(fields: &mut FieldReader<'_, '_>) -> Result<Size, MediaError> {
    fields.skip(16 + 4)?;
    let layers = fields.bits(3)?;
    fields.skip(1 + PROFILE + 8)?;
    let mut present = Vec::new();
    for _ in 0..layers {
        present.push((fields.flag()?, fields.flag()?));
    }
    fields.skip(if layers > 0 { 2 * (8 - layers as usize) } else { 0 })?;
    for (profile, level) in present {
        fields.skip(if profile { PROFILE } else { 0 })?;
        fields.skip(if level { 8 } else { 0 })?;
    }
    ue(fields)?;
    let format = ue(fields)?;
    let separate = format == 3 && fields.flag()?;
    let (width, height) = (ue(fields)?, ue(fields)?);
    let crop = if fields.flag()? { crop(fields)? } else { (0, 0) };
    Ok(Size { width, height, crop, unit: chroma(format, separate) })
}

/// Returns the sums of offsets from left and right, and from top and bottom.
fn crop(fields: &mut FieldReader<'_, '_>) -> Result<(u32, u32), MediaError> {
    let across = ue(fields)?.saturating_add(ue(fields)?);
    Ok((across, ue(fields)?.saturating_add(ue(fields)?)))
}

/// Reads an unsigned number in Exp-Golomb code (9.1).
fn ue(fields: &mut FieldReader<'_, '_>) -> Result<u32, MediaError> {
    let mut zeros = 0;
    while !fields.flag()? {
        zeros += 1;
        if zeros > 31 {
            return Err(fields.invalid("a number of more than 32 bits", "one of at most 32"));
        }
    }
    Ok((1 << zeros) - 1 + fields.bits(zeros)?)
}

/// Reads a signed number in Exp-Golomb code (9.1.1).
fn se(fields: &mut FieldReader<'_, '_>) -> Result<i32, MediaError> {
    let code = ue(fields)?;
    let size = (code.div_ceil(2)) as i32;
    Ok(if code % 2 == 1 { size } else { -size })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::hex;
    use proptest::prelude::*;

    fn size(syntax: NalSyntax, digits: &str) -> Option<(u16, u16)> {
        picture_size(syntax, &hex(digits))
    }

    #[test]
    fn sizes_of_sets_of_real_encoders() {
        let sets = [
            (
                NalSyntax::Avc,
                "6764000cacd941419f9f011000000300100000030320f1429960",
                (320, 180),
                "cropped from 192 lines",
            ),
            (NalSyntax::Avc, "6764000dacd941519e226c0440000003004000000c83c50a6580", (322, 182), "cropped both ways"),
            (NalSyntax::Avc, "67f4000d919b282a33c7c5e022000003000200000300641e28532c", (322, 182), "4:4:4"),
            (NalSyntax::Avc, "67640015acd941533c45e022000003000200000300643e28532c", (322, 184), "fields"),
            (NalSyntax::Avc, "6742c00dd901519e226c0440000003004000000c83c50a92", (322, 182), "baseline"),
            (
                NalSyntax::Hevc,
                "420101016000000300900000030000 03003ca00a480b9c9596566924caf016808000000300800000 0c8422",
                (322, 182),
                "cropped from 328x184",
            ),
        ];
        for (syntax, digits, expected, name) in sets {
            assert_eq!(size(syntax, &digits.replace(' ', "")), Some(expected), "{name}");
        }
    }

    #[test]
    fn a_set_that_is_cut_short_has_no_size() {
        let whole = hex("6764000cacd941419f9f0110");
        for len in 0..9 {
            assert_eq!(picture_size(NalSyntax::Avc, &whole[..len]), None, "{len}");
        }
        assert_eq!(size(NalSyntax::Hevc, "4201"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = (picture_size(NalSyntax::Avc, &bytes), picture_size(NalSyntax::Hevc, &bytes));
        }
    }
}
