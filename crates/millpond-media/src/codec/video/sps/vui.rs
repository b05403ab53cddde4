//! Video usability information (H.264 and H.265, annex E), as far as both standards agree.

use super::golomb::ue;
use crate::{
    codec::{fields::FieldReader, video::color::Color},
    error::MediaError,
};

/// `aspect_ratio_idc` of a ratio that follows as two numbers.
const EXTENDED: u8 = 255;
/// Pixel aspect ratios by `aspect_ratio_idc` from 1 (table E-1 of both standards).
const ASPECTS: [(u32, u32); 16] = [
    (1, 1),
    (12, 11),
    (10, 11),
    (16, 11),
    (40, 33),
    (24, 11),
    (20, 11),
    (32, 11),
    (80, 33),
    (18, 11),
    (15, 11),
    (64, 33),
    (160, 99),
    (4, 3),
    (3, 2),
    (2, 1),
];

/// Properties that the information states.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Vui {
    pub(super) pixel_aspect: Option<(u32, u32)>,
    pub(super) color: Option<Color>,
    /// `time_scale` and `num_units_in_tick`.
    pub(super) timing: Option<(u32, u32)>,
    /// `max_num_reorder_frames`, which only H.264 has here.
    pub(super) reorder_depth: Option<u32>,
}

impl Vui {
    /// Reads the fields up to the chroma locations.
    pub(super) fn picture(&mut self, fields: &mut FieldReader<'_, '_>) -> Result<(), MediaError> {
        if fields.flag()? {
            let (width, height) = match fields.u8()? {
                EXTENDED => (u32::from(fields.u16()?), u32::from(fields.u16()?)),
                index => ASPECTS.get(usize::from(index).wrapping_sub(1)).copied().unwrap_or_default(),
            };
            self.pixel_aspect = Some((width, height)).filter(|_| width > 0 && height > 0);
        }
        if fields.flag()? {
            fields.skip(1)?; // overscan_appropriate_flag
        }
        if fields.flag()? {
            fields.skip(3)?; // video_format
            let mut color = Color { full_range: fields.flag()?, ..Color::UNSPECIFIED };
            if fields.flag()? {
                (color.primaries, color.transfer, color.matrix) = (fields.u8()?, fields.u8()?, fields.u8()?);
            }
            self.color = Some(color).filter(|&color| color != Color::UNSPECIFIED);
        }
        if fields.flag()? {
            ue(fields)?;
            ue(fields)?;
        }
        Ok(())
    }

    /// Reads `num_units_in_tick` and `time_scale`; returns whether they are present.
    pub(super) fn timing(&mut self, fields: &mut FieldReader<'_, '_>) -> Result<bool, MediaError> {
        let is_present = fields.flag()?;
        if is_present {
            let (units, scale) = (fields.bits(32)?, fields.bits(32)?);
            self.timing = Some((scale, units)).filter(|_| scale > 0 && units > 0);
        }
        Ok(is_present)
    }
}
