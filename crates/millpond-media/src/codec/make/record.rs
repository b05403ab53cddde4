//! Parameter sets of decoder configuration records (ISO/IEC 14496-15 5.3.3.1 and 8.3.3.1).

use super::entry;
use crate::{
    codec::{
        fields::FieldReader,
        nal::NalSyntax,
        video::avc::{nal_length_size, nal_units},
    },
    error::MediaError,
};

/// Paths of errors.
const AVC: &str = "AVCDecoderConfigurationRecord";
const HEVC: &str = "HEVCDecoderConfigurationRecord";

/// Reads the parameter sets of a configuration record. Returns the length in bytes of NAL unit lengths, and the sets as NAL
/// units without lengths.
///
/// # Errors
/// The record is invalid or longer than 64 KiB.
pub fn parameter_sets(syntax: NalSyntax, record: &[u8]) -> Result<(u8, Vec<Vec<u8>>), MediaError> {
    entry::bounded(record.len())?;
    match syntax {
        NalSyntax::Avc => avc(&mut FieldReader::new(record, 0, AVC)),
        NalSyntax::Hevc => hevc(&mut FieldReader::new(record, 0, HEVC)),
    }
}

fn avc(fields: &mut FieldReader<'_, '_>) -> Result<(u8, Vec<Vec<u8>>), MediaError> {
    let version = fields.u8()?;
    if version != 1 {
        return Err(fields.invalid(format!("configurationVersion {version}"), "1"));
    }
    // Profile, compatibility and level.
    fields.skip(3 * 8 + 6)?;
    let length_size = nal_length_size(fields)?;
    fields.skip(3)?;
    let count = fields.bits(5)?;
    let mut sets = nal_units(fields, count)?;
    let count = fields.bits(8)?;
    sets.extend(nal_units(fields, count)?);
    Ok((length_size, sets))
}

fn hevc(fields: &mut FieldReader<'_, '_>) -> Result<(u8, Vec<Vec<u8>>), MediaError> {
    let version = fields.u8()?;
    if version > 1 {
        return Err(fields.invalid(format!("configurationVersion {version}"), "1"));
    }
    // Up to the average frame rate, temporal layers and their nesting.
    fields.skip(20 * 8 + 6)?;
    let length_size = nal_length_size(fields)?;
    let mut sets = Vec::new();
    for _ in 0..fields.bits(8)? {
        fields.skip(8)?;
        let count = fields.bits(16)?;
        sets.extend(nal_units(fields, count)?);
    }
    Ok((length_size, sets))
}
