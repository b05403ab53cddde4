//! AV1 in `av01` sample entries: AV1 Codec ISO Media File Format Binding 2.2, 2.3 and 5.

use crate::{
    codec::{
        Codec, SampleEntry,
        fields::FieldReader,
        make::av1_color,
        video::{color::Color, dolby_vision::DolbyVision, visual::Visual},
    },
    error::MediaError,
};
use serde::{Deserialize, Serialize};

/// `AV1CodecConfigurationRecord`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Av1Config {
    /// `seq_profile`: 0 Main, 1 High, 2 Professional.
    pub profile: u8,
    /// `seq_level_idx_0`.
    pub level: u8,
    /// `seq_tier_0`: high tier.
    pub high_tier: bool,
    /// Bits per sample value: 8, 10 or 12.
    pub bit_depth: u8,
    /// Whether there are no colour planes.
    pub monochrome: bool,
    /// `chroma_subsampling_x`, `chroma_subsampling_y` and `chroma_sample_position`.
    pub chroma: (bool, bool, u8),
    /// Colours, where the sample entry or its sequence header states them.
    pub color: Option<Color>,
    /// Dolby Vision, where the sample entry states it.
    pub dolby_vision: Option<DolbyVision>,
}

impl Av1Config {
    fn alone(&self) -> Option<&DolbyVision> {
        self.dolby_vision.as_ref().filter(|vision| vision.stands_alone())
    }

    /// Returns the type of the sample entry in init segments.
    pub(crate) fn entry_type(&self) -> [u8; 4] {
        if self.alone().is_some() { *b"dav1" } else { *b"av01" }
    }

    /// Returns `av01.P.LLT.DD`, and all optional fields where any differs from its default (section 5). Pictures that only
    /// Dolby Vision shows have its own: `dav1.10.06`.
    pub(in crate::codec) fn parameter(&self) -> String {
        if let Some(vision) = self.alone() {
            return vision.parameter("dav1");
        }
        let tier = if self.high_tier { 'H' } else { 'M' };
        let short = format!("av01.{}.{:02}{tier}.{:02}", self.profile, self.level, self.bit_depth);
        let color = self.color.unwrap_or(Color::UNSPECIFIED);
        let (x, y, position) = self.chroma;
        if color.is_default() && x && y && !self.monochrome {
            return short;
        }
        let color = if self.color.is_some() { color } else { Color { primaries: 1, transfer: 1, matrix: 1, ..color } };
        let position = if x && y { position } else { 0 };
        format!(
            "{short}.{}.{}{}{position}.{:02}.{:02}.{:02}.{}",
            u8::from(self.monochrome),
            u8::from(x),
            u8::from(y),
            color.primaries,
            color.transfer,
            color.matrix,
            u8::from(color.full_range),
        )
    }
}

/// Reads a sample entry.
pub(in crate::codec) fn parse(visual: &Visual<'_, '_>) -> Result<SampleEntry, MediaError> {
    let dolby_vision = visual.dolby_vision()?;
    let av1c = visual.need(b"av1C")?;
    let mut fields = FieldReader::of(&av1c);
    let marker = fields.u8()?;
    if marker != 0x81 {
        return Err(fields.invalid(format!("marker and version {marker:#04x}"), "0x81"));
    }
    let (profile, level) = (fields.small(3)?, fields.small(5)?);
    let high_tier = fields.flag()?;
    let bit_depth = match (fields.flag()?, fields.flag()?) {
        (false, _) => 8,
        (true, false) => 10,
        (true, true) => 12,
    };
    let monochrome = fields.flag()?;
    let chroma = (fields.flag()?, fields.flag()?, fields.small(2)?);
    // Whether a presentation delay is stated, and the delay.
    fields.skip(8)?;
    let color = visual.color.or_else(|| av1_color(fields.rest()).filter(|color| !color.is_default()));
    let config = Av1Config { profile, level, high_tier, bit_depth, monochrome, chroma, color, dolby_vision };
    Ok(visual.entry(Codec::Av1(config)))
}
