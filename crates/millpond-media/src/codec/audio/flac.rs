//! FLAC in `fLaC` sample entries: Encapsulation of FLAC in ISO Base Media File Format 3.3.2, RFC 9639 8.2.

use crate::{
    codec::{Codec, SampleEntry, audio::sound::Sound, fields::FieldReader},
    error::MediaError,
};
use serde::{Deserialize, Serialize};

/// The STREAMINFO of `FLACSpecificBox`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlacConfig {
    /// Samples per channel in the shortest frame, except for the last frame.
    pub min_block: u16,
    /// Samples per channel in the longest frame.
    pub max_block: u16,
    /// Samples per second.
    pub sample_rate: u32,
    /// Channels.
    pub channels: u16,
    /// Bits per sample value.
    pub bit_depth: u8,
}

/// Reads a sample entry.
pub(in crate::codec) fn parse(sound: &Sound<'_, '_>) -> Result<SampleEntry, MediaError> {
    let dfla = sound.need(b"dfLa")?;
    let (_, mut fields) = FieldReader::of_full(&dfla)?;
    let kind = fields.u8()? & 0x7f;
    if kind != 0 {
        return Err(fields.invalid(format!("metadata block of type {kind} first"), "STREAMINFO (0)"));
    }
    fields.skip(24)?;
    let (min_block, max_block) = (fields.u16()?, fields.u16()?);
    fields.skip(48)?;
    let sample_rate = fields.bits(20)?;
    let channels = u16::from(fields.small(3)?) + 1;
    let bit_depth = fields.small(5)? + 1;
    let config = FlacConfig { min_block, max_block, sample_rate, channels, bit_depth };
    Ok(sound.entry(Codec::Flac(config), channels, sample_rate))
}
