//! HEVC (H.265) in `hvc1` and `hev1` sample entries: ISO/IEC 14496-15 8.3.3.1 and 8.4.1.

use crate::{
    codec::{
        Codec, SampleEntry,
        fields::FieldReader,
        nested_bytes,
        video::{
            avc::{nal_length_size, nal_units},
            color::Color,
            dolby_vision::DolbyVision,
            visual::Visual,
        },
    },
    error::MediaError,
};
use serde::{Deserialize, Serialize};

/// NAL unit types of parameter sets (ISO/IEC 23008-2 table 7-1).
const VPS: u8 = 32;
const SPS: u8 = 33;
const PPS: u8 = 34;

/// Offset of the number of arrays in an `HEVCDecoderConfigurationRecord` (ISO/IEC 14496-15 8.3.3.1.2).
const ARRAYS: usize = 22;

/// `HEVCDecoderConfigurationRecord`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HevcConfig {
    /// `hvc1` (parameter sets only in the sample entry) or `hev1` (parameter sets may also be in samples).
    pub fourcc: [u8; 4],
    /// `general_profile_space`: 0 to 3.
    pub profile_space: u8,
    /// `general_profile_idc`: 1 is Main, 2 Main 10.
    pub profile: u8,
    /// `general_tier_flag`: high tier.
    pub high_tier: bool,
    /// `general_profile_compatibility_flags`, flag 0 in the most significant bit.
    pub compatibility: u32,
    /// `general_constraint_indicator_flags`.
    pub constraints: [u8; 6],
    /// `general_level_idc`: 30 times the level.
    pub level: u8,
    /// Length in bytes of the length field before each NAL unit: 1, 2 or 4.
    pub nal_length_size: u8,
    /// Video parameter sets: NAL units without start code or length.
    pub vps: Vec<Vec<u8>>,
    /// Sequence parameter sets.
    pub sps: Vec<Vec<u8>>,
    /// Picture parameter sets.
    pub pps: Vec<Vec<u8>>,
    /// Colours, where the sample entry states them.
    pub color: Option<Color>,
    /// Dolby Vision, where the sample entry states it.
    pub dolby_vision: Option<DolbyVision>,
}

impl HevcConfig {
    /// NAL units that must precede the first picture, in order.
    pub fn parameter_sets(&self) -> impl Iterator<Item = &[u8]> {
        self.vps.iter().chain(&self.sps).chain(&self.pps).map(Vec::as_slice)
    }

    /// Returns the element of a `codecs` parameter, such as `hvc1.1.6.L93.B0` (ISO/IEC 14496-15 E.3): the compatibility
    /// flags in reverse bit order, and the constraint bytes without trailing zeros. Pictures that only Dolby Vision shows have
    /// its own: `dvh1.05.06`.
    pub(in crate::codec) fn parameter(&self) -> String {
        if let Some(vision) = self.alone() {
            return vision.parameter(&String::from_utf8_lossy(&self.entry_type()));
        }
        let space = ["", "A", "B", "C"].get(usize::from(self.profile_space)).unwrap_or(&"");
        let tier = if self.high_tier { 'H' } else { 'L' };
        let name = String::from_utf8_lossy(&self.fourcc);
        let compatibility = self.compatibility.reverse_bits();
        let mut text = format!("{name}.{space}{}.{compatibility:X}.{tier}{}", self.profile, self.level);
        let used = self.constraints.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        for byte in self.constraints.iter().take(used) {
            text.push_str(&format!(".{byte:X}"));
        }
        text
    }

    fn alone(&self) -> Option<&DolbyVision> {
        self.dolby_vision.as_ref().filter(|vision| vision.stands_alone())
    }

    /// Returns the type of the sample entry in init segments.
    pub(crate) fn entry_type(&self) -> [u8; 4] {
        match (self.alone(), &self.fourcc) {
            (Some(_), b"hvc1") => *b"dvh1",
            (Some(_), _) => *b"dvhe",
            (None, fourcc) => *fourcc,
        }
    }

    pub(in crate::codec) fn heap_bytes(&self) -> usize {
        nested_bytes(&self.vps) + nested_bytes(&self.sps) + nested_bytes(&self.pps)
    }
}

/// Reads a sample entry.
pub(in crate::codec) fn parse(visual: &Visual<'_, '_>) -> Result<SampleEntry, MediaError> {
    let dolby_vision = visual.dolby_vision()?;
    let hvcc = visual.need(b"hvcC")?;
    let mut fields = FieldReader::of(&hvcc);
    let version = fields.u8()?;
    // Files from before the standard was final have version 0 and the same layout.
    if version > 1 {
        return Err(fields.invalid(format!("configurationVersion {version}"), "1"));
    }
    let (profile_space, high_tier, profile) = (fields.small(2)?, fields.flag()?, fields.small(5)?);
    let compatibility = fields.bits(32)?;
    let mut constraints = [0; 6];
    constraints.copy_from_slice(fields.take(6)?);
    let level = fields.u8()?;
    // Spatial segmentation, parallelism, chroma format, bit depths, frame rate, temporal layers.
    fields.skip(8 * 8 + 6)?;
    let mut config = HevcConfig {
        fourcc: visual.fourcc(),
        profile_space,
        profile,
        high_tier,
        compatibility,
        constraints,
        level,
        nal_length_size: nal_length_size(&mut fields)?,
        vps: Vec::new(),
        sps: Vec::new(),
        pps: Vec::new(),
        color: visual.color,
        dolby_vision,
    };
    for _ in 0..fields.bits(8)? {
        fields.skip(2)?;
        let kind = fields.small(6)?;
        let count = fields.bits(16)?;
        let units = nal_units(&mut fields, count)?;
        match kind {
            VPS => config.vps.extend(units),
            SPS => config.sps.extend(units),
            PPS => config.pps.extend(units),
            // Supplemental information for the whole stream, which players don't need.
            _ => {}
        }
    }
    Ok(visual.entry(Codec::Hevc(config)))
}

/// States in `array_completeness` of all arrays of an `HEVCDecoderConfigurationRecord` (ISO/IEC 14496-15 8.3.3.1.2) whether samples
/// hold no further parameter sets.
pub(crate) fn state_completeness(record: &mut [u8], is_complete: bool) {
    let short = |record: &[u8], at: usize| Some(usize::from(*record.get(at)?) << 8 | usize::from(*record.get(at + 1)?));
    let mut at = ARRAYS + 1;
    for _ in 0..record.get(ARRAYS).copied().unwrap_or(0) {
        let Some(first) = record.get_mut(at) else { return };
        *first = *first & 0x7f | u8::from(is_complete) << 7;
        let Some(count) = short(record, at + 1) else { return };
        at += 3;
        for _ in 0..count {
            let Some(len) = short(record, at) else { return };
            at += 2 + len;
        }
    }
}
