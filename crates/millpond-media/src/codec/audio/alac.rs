//! Apple Lossless in `alac` sample entries: the "magic cookie" of Apple's ALAC description.

use crate::{
    codec::{Codec, SampleEntry, audio::sound::Sound, fields::FieldReader},
    error::MediaError,
};
use serde::{Deserialize, Serialize};

/// `ALACSpecificConfig`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlacConfig {
    /// `frameLength`: samples per channel in a frame.
    pub frame_length: u32,
    /// Bits per sample value.
    pub bit_depth: u8,
    /// Channels.
    pub channels: u16,
    /// `avgBitRate` in bits per second; 0 where unknown.
    pub average_bitrate: u32,
    /// Samples per second.
    pub sample_rate: u32,
}

/// Reads a sample entry.
pub(in crate::codec) fn parse(sound: &Sound<'_, '_>) -> Result<SampleEntry, MediaError> {
    let cookie = sound.need(b"alac")?;
    let (_, mut fields) = FieldReader::of_full(&cookie)?;
    let frame_length = fields.bits(32)?;
    let version = fields.u8()?;
    if version != 0 {
        return Err(fields.invalid(format!("compatibleVersion {version}"), "0"));
    }
    let bit_depth = fields.u8()?;
    fields.skip(24)?; // Rice parameters
    let channels = u16::from(fields.u8()?);
    fields.skip(16 + 32)?; // maxRun, maxFrameBytes
    let (average_bitrate, sample_rate) = (fields.bits(32)?, fields.bits(32)?);
    let config = AlacConfig { frame_length, bit_depth, channels, average_bitrate, sample_rate };
    Ok(sound.entry(Codec::Alac(config), channels, sample_rate))
}
