//! VP9 (and VP8) in `vp09` and `vp08` sample entries: VP Codec ISO Media File Format Binding, version 1.

use crate::{
    codec::{
        Codec, SampleEntry,
        fields::FieldReader,
        video::{color::Color, visual::Visual},
    },
    error::MediaError,
};
use serde::{Deserialize, Serialize};

/// `VPCodecConfigurationRecord`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vp9Config {
    /// `vp09` or `vp08`.
    pub fourcc: [u8; 4],
    /// Profile, 0 to 3.
    pub profile: u8,
    /// Ten times the level. Where the file has 0 for "unknown": the least level that allows the picture size.
    pub level: u8,
    /// Bits per sample value: 8, 10 or 12.
    pub bit_depth: u8,
    /// `chromaSubsampling`: 0 and 1 are 4:2:0, 2 is 4:2:2, 3 is 4:4:4.
    pub chroma: u8,
    /// Colours.
    pub color: Color,
}

impl Vp9Config {
    /// Returns `vp09.PP.LL.DD`, and all optional fields where any differs from its default.
    pub(in crate::codec) fn parameter(&self) -> String {
        let name = String::from_utf8_lossy(&self.fourcc);
        let short = format!("{name}.{:02}.{:02}.{:02}", self.profile, self.level, self.bit_depth);
        if self.chroma <= 1 && self.color.is_default() {
            return short;
        }
        let Color { primaries, transfer, matrix, full_range } = self.color;
        format!("{short}.{:02}.{primaries:02}.{transfer:02}.{matrix:02}.{:02}", self.chroma, u8::from(full_range))
    }
}

/// Reads a sample entry.
pub(in crate::codec) fn parse(visual: &Visual<'_, '_>) -> Result<SampleEntry, MediaError> {
    let vpcc = visual.need(b"vpcC")?;
    let (version, mut fields) = FieldReader::of_full(&vpcc)?;
    let (profile, level, bit_depth) = (fields.u8()?, fields.u8()?, fields.small(4)?);
    let (chroma, color) = if version == 0 {
        // The layout of the draft: its colour space and transfer function are enumerations of its own, so the `colr`
        // box is preferred.
        fields.skip(4)?;
        let chroma = fields.small(4)?;
        fields.skip(3)?;
        (chroma, visual.color.unwrap_or(Color { full_range: fields.flag()?, ..Color::UNSPECIFIED }))
    } else {
        let (chroma, full_range) = (fields.small(3)?, fields.flag()?);
        (chroma, Color { primaries: fields.u8()?, transfer: fields.u8()?, matrix: fields.u8()?, full_range })
    };
    let level = if level == 0 { least_level(visual.width, visual.height) } else { level };
    let fourcc = visual.fourcc();
    Ok(visual.entry(Codec::Vp9(Vp9Config { fourcc, profile, level, bit_depth, chroma, color })))
}

/// Returns the least level whose luma picture limit allows the size (VP9 Bitstream Specification, Annex A).
pub(in crate::codec) fn least_level(width: u16, height: u16) -> u8 {
    let pixels = u32::from(width) * u32::from(height);
    let levels = [
        (36_864, 10),
        (73_728, 11),
        (122_880, 20),
        (245_760, 21),
        (552_960, 30),
        (983_040, 31),
        (2_228_224, 40),
        (8_912_896, 50),
    ];
    levels.iter().find(|&&(most, _)| pixels <= most).map_or(60, |&(_, level)| level)
}
