//! Sequence parameter sets of H.265 (7.3.2.2.1 and E.2.1).

use super::{
    Size, bit_depths, chroma, crop,
    golomb::{se, ue, ue_at_most},
    sequence::{OrderCount, OrderSyntax, PictureSequence},
    vui::Vui,
};
use crate::{codec::fields::FieldReader, error::MediaError};

/// Bits of `profile_tier_level` of one layer, without its level (7.3.3).
const PROFILE: usize = 88;
/// Greatest `sps_seq_parameter_set_id` (7.4.3.2.1).
const MOST_ID: u32 = 15;
/// Greatest `sps_max_num_reorder_pics` (A.4.2: `MaxDpbSize` is 16).
const MOST_REORDERED: u32 = 16;
/// Greatest `num_short_term_ref_pic_sets` (7.4.3.2.1).
const MOST_SETS: u32 = 64;
/// Most pictures before or after, in a short-term reference picture set.
const MOST_REFERENCES: u32 = 16;
/// Greatest `num_long_term_ref_pics_sps` (7.4.3.2.1).
const MOST_LONG_TERM: u32 = 32;

/// Reads a set without emulation prevention bytes.
pub(super) fn read(fields: &mut FieldReader<'_, '_>) -> Result<PictureSequence, MediaError> {
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
    let id = ue_at_most(fields, MOST_ID, "as identifier")? as u8;
    let format = ue_at_most(fields, 3, "as chroma format")?;
    let separate = format == 3 && fields.flag()?;
    let (width, height) = (ue(fields)?, ue(fields)?);
    let crop = if fields.flag()? { crop(fields)? } else { (0, 0) };
    let size = Size { width, height, crop, unit: chroma(format, separate) };
    let bit_depths = bit_depths(fields)?;
    let (mut vui, mut reorder_depth, mut order) = (Vui::default(), None, None);
    // Fields before an invalid one are used.
    let _: Result<(), MediaError> = (|| {
        let order_bits = ue_at_most(fields, 12, "as log2_max_pic_order_cnt_lsb_minus4")? + 4;
        let count = OrderCount::Stated(order_bits);
        order = Some(OrderSyntax { has_planes: separate, number_bits: 0, has_fields: false, count });
        reorder_depth = Some(reordering(fields, layers)?);
        tools(fields)?;
        reference_sets(fields, order_bits)?;
        // Temporal motion vectors, strong intra smoothing.
        fields.skip(2)?;
        if fields.flag()? { usability(fields, &mut vui) } else { Ok(()) }
    })();
    Ok(PictureSequence {
        id,
        chroma_format: format as u8,
        bit_depths,
        reorder_depth: reorder_depth.and_then(|depth| u8::try_from(depth).ok()),
        order,
        ..PictureSequence::new(&size, &vui)
    })
}

/// Reads the buffer sizes of sub-layers; returns `sps_max_num_reorder_pics` of the highest one.
fn reordering(fields: &mut FieldReader<'_, '_>, layers: u32) -> Result<u32, MediaError> {
    let first = if fields.flag()? { 0 } else { layers };
    let mut depth = 0;
    for _ in first..=layers {
        ue(fields)?;
        depth = ue_at_most(fields, MOST_REORDERED, "reordered pictures")?;
        ue(fields)?;
    }
    Ok(depth)
}

/// Skips block sizes, scaling lists and coding tools.
fn tools(fields: &mut FieldReader<'_, '_>) -> Result<(), MediaError> {
    // Sizes of coding and transform blocks, depths of transform trees.
    for _ in 0..6 {
        ue(fields)?;
    }
    if fields.flag()? && fields.flag()? {
        scaling_lists(fields)?;
    }
    // Asymmetric motion partitions, sample adaptive offset.
    fields.skip(2)?;
    if fields.flag()? {
        fields.skip(8)?;
        ue(fields)?;
        ue(fields)?;
        fields.skip(1)?;
    }
    Ok(())
}

/// Skips `scaling_list_data` (7.3.4).
fn scaling_lists(fields: &mut FieldReader<'_, '_>) -> Result<(), MediaError> {
    for size in 0..4 {
        for _ in 0..if size == 3 { 2 } else { 6 } {
            if !fields.flag()? {
                ue(fields)?;
                continue;
            }
            if size > 1 {
                se(fields)?;
            }
            for _ in 0..64.min(1 << (4 + 2 * size)) {
                se(fields)?;
            }
        }
    }
    Ok(())
}

/// Skips the reference picture sets.
fn reference_sets(fields: &mut FieldReader<'_, '_>, order_bits: u32) -> Result<(), MediaError> {
    let mut before = Vec::new();
    for set in 0..ue_at_most(fields, MOST_SETS, "reference picture sets")? {
        before = if set > 0 && fields.flag()? { predicted(fields, &before)? } else { stated(fields)? };
    }
    if fields.flag()? {
        for _ in 0..ue_at_most(fields, MOST_LONG_TERM, "long-term pictures")? {
            fields.skip(order_bits as usize + 1)?;
        }
    }
    Ok(())
}

/// Reads a short-term set (7.3.7); returns its order count differences: those before the picture from the nearest on,
/// then those after it.
fn stated(fields: &mut FieldReader<'_, '_>) -> Result<Vec<i64>, MediaError> {
    let earlier = ue_at_most(fields, MOST_REFERENCES, "earlier pictures")?;
    let later = ue_at_most(fields, MOST_REFERENCES, "later pictures")?;
    let mut all = Vec::new();
    for (count, sign) in [(earlier, -1), (later, 1)] {
        let mut distance = 0;
        for _ in 0..count {
            distance += i64::from(ue(fields)?) + 1;
            fields.skip(1)?;
            all.push(sign * distance);
        }
    }
    Ok(all)
}

/// Reads a short-term set that is predicted from the one before it (7.4.8, equations 7-61 and 7-62).
fn predicted(fields: &mut FieldReader<'_, '_>, before: &[i64]) -> Result<Vec<i64>, MediaError> {
    let is_negative = fields.flag()?;
    let distance = i64::from(ue(fields)?) + 1;
    let shift = if is_negative { -distance } else { distance };
    let (mut earlier, mut later) = (Vec::new(), Vec::new());
    for &difference in before.iter().chain(&[0]) {
        // used_by_curr_pic_flag, then use_delta_flag where that is not set.
        if fields.flag()? || fields.flag()? {
            match difference + shift {
                0 => {}
                moved @ ..0 => earlier.push(moved),
                moved => later.push(moved),
            }
        }
    }
    if earlier.len() + later.len() > MOST_REFERENCES as usize {
        return Err(fields.invalid("a reference picture set of more than 16 pictures", "at most 16"));
    }
    earlier.sort_unstable_by(|a, b| b.cmp(a));
    later.sort_unstable();
    earlier.append(&mut later);
    Ok(earlier)
}

/// Reads the usability information up to the timing.
fn usability(fields: &mut FieldReader<'_, '_>, vui: &mut Vui) -> Result<(), MediaError> {
    vui.picture(fields)?;
    // Neutral chroma, field sequence, frame and field information.
    fields.skip(3)?;
    if fields.flag()? {
        // Default display window.
        for _ in 0..4 {
            ue(fields)?;
        }
    }
    vui.timing(fields).map(drop)
}
