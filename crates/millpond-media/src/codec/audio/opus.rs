//! Opus in `Opus` sample entries: Encapsulation of Opus in ISO Base Media File Format 4.3.

use crate::{
    codec::{Codec, SampleEntry, audio::sound::Sound, fields::FieldReader},
    error::MediaError,
};
use serde::{Deserialize, Serialize};

/// Output rate of every Opus decoder.
const SAMPLE_RATE: u32 = 48_000;

/// `OpusSpecificBox`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpusConfig {
    /// `OutputChannelCount`.
    pub channels: u16,
    /// `PreSkip`: number of samples at 48 kHz that players drop at the start.
    pub pre_skip: u16,
    /// `InputSampleRate`: sampling rate before encoding, for information only; decoders output 48 kHz.
    pub input_sample_rate: u32,
    /// `OutputGain` in 1/256 dB.
    pub output_gain: i16,
    /// `ChannelMappingFamily`: 0 is mono or stereo.
    pub mapping_family: u8,
    /// `StreamCount`, `CoupledCount` and `ChannelMapping`; empty for family 0.
    pub mapping: Vec<u8>,
}

/// Most samples of a packet: 120 ms (RFC 6716 3.2.5).
const MOST_SAMPLES: u32 = 5760;

/// Returns the samples of a packet at 48 kHz (RFC 6716 3.1). Its first two bytes tell them.
pub(crate) fn samples(packet: &[u8]) -> Option<u32> {
    let toc = *packet.first()?;
    let frame = match toc >> 3 {
        mode @ 0..=11 => [480, 960, 1920, 2880][usize::from(mode & 3)],
        mode @ 12..=15 => [480, 960][usize::from(mode & 1)],
        mode => [120, 240, 480, 960][usize::from(mode & 3)],
    };
    let count = match toc & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u32::from(packet.get(1)? & 0x3f),
    };
    Some(frame * count).filter(|samples| (1..=MOST_SAMPLES).contains(samples))
}

/// Reads a sample entry.
pub(in crate::codec) fn parse(sound: &Sound<'_, '_>) -> Result<SampleEntry, MediaError> {
    let dops = sound.need(b"dOps")?;
    let mut fields = FieldReader::of(&dops);
    let version = fields.u8()?;
    if version != 0 {
        return Err(fields.invalid(format!("version {version}"), "0"));
    }
    let channels = fields.u8()?;
    if channels == 0 {
        return Err(fields.invalid("no channels", "at least one"));
    }
    let (pre_skip, input_sample_rate) = (fields.u16()?, fields.bits(32)?);
    let output_gain = fields.u16()?.cast_signed();
    let mapping_family = fields.u8()?;
    let mapping = match mapping_family {
        0 => Vec::new(),
        _ => fields.take(2 + usize::from(channels))?.to_vec(),
    };
    let channels = u16::from(channels);
    let config = OpusConfig { channels, pre_skip, input_sample_rate, output_gain, mapping_family, mapping };
    Ok(sound.entry(Codec::Opus(config), channels, SAMPLE_RATE))
}
