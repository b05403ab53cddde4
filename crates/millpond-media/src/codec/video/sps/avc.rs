//! Sequence parameter sets of H.264 (7.3.2.1.1 and E.1).

use super::{
    Size, chroma, crop,
    golomb::{se, ue, ue_at_most},
    sequence::{OrderCount, OrderSyntax, PictureSequence},
    vui::Vui,
};
use crate::{codec::fields::FieldReader, error::MediaError};

/// Profiles whose parameter sets state a chroma format.
pub(in crate::codec) const HIGH: [u8; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];
/// Profiles whose `constraint_set3_flag` restricts pictures to intra coding (A.2).
const MAY_BE_INTRA: [u8; 6] = [44, 86, 100, 110, 122, 244];
/// `profile_idc` of Baseline and Constrained Baseline, which have no B slices (A.2.1).
const BASELINE: u8 = 66;
/// Greatest `seq_parameter_set_id` (7.4.2.1.1).
const MOST_ID: u32 = 31;
/// Greatest `num_ref_frames_in_pic_order_cnt_cycle` (7.4.2.1.1).
const MOST_CYCLE: u32 = 255;
/// Greatest `cpb_cnt_minus1` (E.2.2).
const MOST_BUFFERS: u32 = 31;
/// Greatest `MaxDpbFrames` (A.3.1), and with it `max_num_reorder_frames`.
const MOST_FRAMES: u32 = 16;

/// Reads a set without emulation prevention bytes.
pub(super) fn read(fields: &mut FieldReader<'_, '_>) -> Result<PictureSequence, MediaError> {
    fields.skip(8)?;
    let (profile, constraints) = (fields.u8()?, fields.u8()?);
    fields.skip(8)?;
    let id = ue_at_most(fields, MOST_ID, "as identifier")? as u8;
    let (mut format, mut separate, mut bit_depths) = (1, false, (8, 8));
    if HIGH.contains(&profile) {
        format = ue_at_most(fields, 3, "as chroma format")?;
        separate = format == 3 && fields.flag()?;
        bit_depths = super::bit_depths(fields)?;
        fields.skip(1)?; // qpprime_y_zero_transform_bypass_flag
        if fields.flag()? {
            scaling_lists(fields, if format == 3 { 12 } else { 8 })?;
        }
    }
    let (number_bits, count) = picture_order(fields)?;
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
    let size = Size {
        width: wide.saturating_add(1).saturating_mul(16),
        height: high.saturating_add(1).saturating_mul(16 * fields_of_frame),
        crop,
        unit: (horizontal, vertical * fields_of_frame),
    };
    let vui = usability(fields);
    let is_intra = MAY_BE_INTRA.contains(&profile) && constraints & 0x10 != 0;
    let in_order = count == OrderCount::Decoding || profile == BASELINE || is_intra;
    let stated = vui.reorder_depth.and_then(|depth| u8::try_from(depth).ok());
    Ok(PictureSequence {
        id,
        chroma_format: format as u8,
        bit_depths,
        reorder_depth: stated.or(in_order.then_some(0)),
        // A tick is the time of a field (E.2.1).
        frame_rate: vui.timing.and_then(|(scale, units)| Some((scale, units.checked_mul(2)?))),
        order: Some(OrderSyntax { has_planes: separate, number_bits, has_fields: !frames_only, count }),
        ..PictureSequence::new(&size, &vui)
    })
}

/// Reads the fields of the picture order count. Returns the bits of `frame_num`, and the derivation of the count.
fn picture_order(fields: &mut FieldReader<'_, '_>) -> Result<(u32, OrderCount), MediaError> {
    // log2_max_frame_num_minus4, pic_order_cnt_type.
    let number_bits = ue(fields)?.saturating_add(4);
    let count = match ue(fields)? {
        // log2_max_pic_order_cnt_lsb_minus4
        0 => OrderCount::Stated(ue(fields)?.saturating_add(4)),
        1 => {
            fields.skip(1)?;
            se(fields)?;
            se(fields)?;
            let cycle = ue_at_most(fields, MOST_CYCLE, "frames in a cycle")?;
            for _ in 0..cycle {
                se(fields)?;
            }
            OrderCount::Cycle
        }
        _ => OrderCount::Decoding,
    };
    Ok((number_bits, count))
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

/// Reads the usability information (E.1.1). Fields before an invalid one are used: some encoders write fewer fields than
/// they announce.
fn usability(fields: &mut FieldReader<'_, '_>) -> Vui {
    let mut vui = Vui::default();
    let _: Result<(), MediaError> = (|| {
        if fields.flag()? {
            vui.picture(fields)?;
            let has_timing = vui.timing(fields)?;
            vui.reorder_depth = restrictions(fields, has_timing)?;
        }
        Ok(())
    })();
    vui
}

/// Reads the fields after the timing; returns `max_num_reorder_frames`, where present.
fn restrictions(fields: &mut FieldReader<'_, '_>, has_timing: bool) -> Result<Option<u32>, MediaError> {
    if has_timing {
        fields.skip(1)?; // fixed_frame_rate_flag
    }
    let mut buffered = false;
    for _ in 0..2 {
        if fields.flag()? {
            reference_decoder(fields)?;
            buffered = true;
        }
    }
    // low_delay_hrd_flag, pic_struct_present_flag.
    fields.skip(if buffered { 2 } else { 1 })?;
    if !fields.flag()? {
        return Ok(None);
    }
    fields.skip(1)?; // motion_vectors_over_pic_boundaries_flag
    for _ in 0..4 {
        ue(fields)?;
    }
    ue_at_most(fields, MOST_FRAMES, "reordered frames").map(Some)
}

/// Skips `hrd_parameters` (E.1.2).
fn reference_decoder(fields: &mut FieldReader<'_, '_>) -> Result<(), MediaError> {
    let buffers = ue_at_most(fields, MOST_BUFFERS, "further buffers")?;
    fields.skip(8)?;
    for _ in 0..=buffers {
        ue(fields)?;
        ue(fields)?;
        fields.skip(1)?;
    }
    fields.skip(20)
}
