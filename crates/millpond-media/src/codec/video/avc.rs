//! AVC (H.264) in `avc1` and `avc3` sample entries: ISO/IEC 14496-15 5.3.3.1 and 5.4.2.

use crate::{
    codec::{
        Codec, SampleEntry,
        fields::FieldReader,
        nested_bytes,
        video::{color::Color, visual::Visual},
    },
    error::MediaError,
};
use serde::{Deserialize, Serialize};

/// `AVCDecoderConfigurationRecord`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AvcConfig {
    /// `avc1` (parameter sets only in the sample entry) or `avc3` (parameter sets may also be in samples).
    pub fourcc: [u8; 4],
    /// `AVCProfileIndication`: `profile_idc`.
    pub profile: u8,
    /// `profile_compatibility`: the constraint flags.
    pub compatibility: u8,
    /// `AVCLevelIndication`: `level_idc`.
    pub level: u8,
    /// Length in bytes of the length field before each NAL unit: 1, 2 or 4.
    pub nal_length_size: u8,
    /// Sequence parameter sets: NAL units without start code or length.
    pub sps: Vec<Vec<u8>>,
    /// Picture parameter sets: NAL units without start code or length.
    pub pps: Vec<Vec<u8>>,
    /// Colours, where the sample entry states them.
    pub color: Option<Color>,
}

impl AvcConfig {
    /// NAL units that must precede the first picture, in order.
    pub fn parameter_sets(&self) -> impl Iterator<Item = &[u8]> {
        self.sps.iter().chain(&self.pps).map(Vec::as_slice)
    }

    /// Returns the element of a `codecs` parameter: `avc1.PPCCLL` (RFC 6381 3.3).
    pub(in crate::codec) fn parameter(&self) -> String {
        let name = String::from_utf8_lossy(&self.fourcc);
        format!("{name}.{:02x}{:02x}{:02x}", self.profile, self.compatibility, self.level)
    }

    pub(in crate::codec) fn heap_bytes(&self) -> usize {
        nested_bytes(&self.sps) + nested_bytes(&self.pps)
    }
}

/// Reads a sample entry.
pub(in crate::codec) fn parse(visual: &Visual<'_, '_>) -> Result<SampleEntry, MediaError> {
    visual.dolby_vision()?;
    let avcc = visual.need(b"avcC")?;
    let mut fields = FieldReader::of(&avcc);
    let version = fields.u8()?;
    if version != 1 {
        return Err(fields.invalid(format!("configurationVersion {version}"), "1"));
    }
    let (profile, compatibility, level) = (fields.u8()?, fields.u8()?, fields.u8()?);
    fields.skip(6)?;
    let nal_length_size = nal_length_size(&mut fields)?;
    fields.skip(3)?;
    let count = fields.bits(5)?;
    let sps = nal_units(&mut fields, count)?;
    let count = fields.bits(8)?;
    let pps = nal_units(&mut fields, count)?;
    // Further optional fields (chroma format, bit depths, SPS extensions) are in the parameter sets too.
    let (fourcc, color) = (visual.fourcc(), visual.color);
    let config = AvcConfig { fourcc, profile, compatibility, level, nal_length_size, sps, pps, color };
    Ok(visual.entry(Codec::Avc(config)))
}

/// Reads the length of NAL unit lengths; a `lengthSizeMinusOne` of 2 is invalid.
pub(in crate::codec) fn nal_length_size(fields: &mut FieldReader<'_, '_>) -> Result<u8, MediaError> {
    match fields.small(2)? {
        2 => Err(fields.invalid("lengthSizeMinusOne 2", "0, 1 or 3")),
        size => Ok(size + 1),
    }
}

/// Reads `count` NAL units, each after its 16-bit length.
pub(in crate::codec) fn nal_units(fields: &mut FieldReader<'_, '_>, count: u32) -> Result<Vec<Vec<u8>>, MediaError> {
    let mut units = Vec::new();
    for _ in 0..count {
        let len = fields.u16()?;
        if len == 0 {
            return Err(fields.invalid("an empty parameter set", "a NAL unit"));
        }
        units.push(fields.take(usize::from(len))?.to_vec());
    }
    Ok(units)
}
