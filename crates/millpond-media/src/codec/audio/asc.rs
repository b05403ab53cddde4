//! `AudioSpecificConfig` (ISO/IEC 14496-3 1.6.2.1).

use crate::{
    codec::{Medium, fields::FieldReader},
    error::MediaError,
};
use std::ops::RangeInclusive;

/// Audio object types (ISO/IEC 14496-3 table 1.17).
pub(in crate::codec) const AAC_LC: u8 = 2;
pub(in crate::codec) const SBR: u8 = 5;
const ER_AAC_LC: u8 = 17;
const ER_AAC_LD: u8 = 23;
pub(in crate::codec) const PS: u8 = 29;
/// Layers I to III of MPEG audio.
pub(in crate::codec) const LAYERS: RangeInclusive<u8> = 32..=34;
const ER_AAC_ELD: u8 = 39;
pub(in crate::codec) const USAC: u8 = 42;

/// Sample rates by index (table 1.18).
pub(crate) const SAMPLE_RATES: [u32; 13] =
    [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350];
/// Index that announces a rate of 24 bits.
const EXPLICIT_RATE: u8 = 15;

/// Properties of an AAC stream, as its configuration states them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::codec) struct AudioSpecificConfig {
    /// Object type of the core coder.
    pub(in crate::codec) object_type: u8,
    /// Object type to announce to players: the extension's, if there is one.
    pub(in crate::codec) signalled: u8,
    /// Index of `sample_rate`, or 15 where the table has no such rate.
    pub(in crate::codec) sample_rate_index: u8,
    /// Samples per second of the core coder.
    pub(in crate::codec) sample_rate: u32,
    /// `channelConfiguration`; 0 where a program config element lists the channels.
    pub(in crate::codec) channel_config: u8,
    /// Output channels; 0 where unknown.
    pub(in crate::codec) channels: u16,
    /// Output samples per second with SBR.
    pub(in crate::codec) extension_sample_rate: Option<u32>,
    /// Samples per channel in a frame of the core coder; 0 where unknown.
    pub(in crate::codec) frame_length: u16,
}

/// Reads only the object type.
pub(in crate::codec) fn object_type(mut fields: FieldReader<'_, '_>) -> Result<u8, MediaError> {
    audio_object_type(&mut fields)
}

/// Returns the index of a listed rate, or else 15.
pub(in crate::codec) fn rate_index(sample_rate: u32) -> u8 {
    SAMPLE_RATES.iter().position(|&rate| rate == sample_rate).map_or(EXPLICIT_RATE, |index| index as u8)
}

/// Returns the channels of a channel configuration (table 1.19); 0 where they are listed elsewhere, and for reserved
/// values.
pub(in crate::codec) fn channels_of(channel_config: u8) -> u16 {
    match channel_config {
        1..=6 => u16::from(channel_config),
        7 | 12 | 14 => 8,
        11 => 7,
        13 => 24,
        _ => 0,
    }
}

impl AudioSpecificConfig {
    /// Reads a configuration with explicit hierarchical, or backward compatible signalling of SBR and PS (1.6.5).
    pub(in crate::codec) fn parse(fields: &mut FieldReader<'_, '_>) -> Result<Self, MediaError> {
        let signalled = audio_object_type(fields)?;
        let sample_rate = sampling_frequency(fields)?;
        let channel_config = fields.small(4)?;
        let mut config = Self {
            object_type: signalled,
            signalled,
            sample_rate_index: rate_index(sample_rate),
            sample_rate,
            channel_config,
            channels: channels_of(channel_config),
            extension_sample_rate: None,
            frame_length: 0,
        };
        let hierarchical = matches!(signalled, SBR | PS);
        if hierarchical {
            config.extension_sample_rate = Some(sampling_frequency(fields)?);
            config.object_type = audio_object_type(fields)?;
        }
        match config.object_type {
            1..=4 | ER_AAC_LC | ER_AAC_LD => config.general_audio(fields)?,
            ER_AAC_ELD => config.frame_length = if fields.flag()? { 480 } else { 512 },
            USAC => config.usac(fields)?,
            other => {
                let name = format!("MPEG-4 audio object type {other}");
                return Err(fields.unsupported(&*name).of_codec(Medium::Audio, name));
            }
        }
        if !hierarchical && matches!(config.object_type, 1..=4 | ER_AAC_LC) {
            // The rest is an optional extension, so errors in it are ignored.
            config.sync_extension(fields).ok();
        }
        if config.signalled == PS && config.channels == 1 {
            config.channels = 2;
        }
        Ok(config)
    }

    /// Reads `GASpecificConfig` (4.4.1) and the fields that error resilient types add.
    fn general_audio(&mut self, fields: &mut FieldReader<'_, '_>) -> Result<(), MediaError> {
        let short = fields.flag()?;
        self.frame_length = match (self.object_type, short) {
            (ER_AAC_LD, false) => 512,
            (ER_AAC_LD, true) => 480,
            (_, false) => 1024,
            (_, true) => 960,
        };
        if fields.flag()? {
            fields.skip(14)?; // coreCoderDelay
        }
        let extension = fields.flag()?;
        if self.channel_config == 0 {
            self.channels = program_config(fields)?;
        }
        let resilient = matches!(self.object_type, ER_AAC_LC | ER_AAC_LD);
        if extension {
            // Resilience flags, extensionFlag3.
            fields.skip(if resilient { 3 + 1 } else { 1 })?;
        }
        if resilient {
            fields.skip(2)?; // epConfig
        }
        Ok(())
    }

    /// Reads `UsacConfig` (ISO/IEC 23003-3 5.2) up to the frame length.
    fn usac(&mut self, fields: &mut FieldReader<'_, '_>) -> Result<(), MediaError> {
        if fields.bits(5)? == 0x1f {
            fields.skip(24)?;
        }
        let lengths = [768, 1024, 2048, 2048, 4096];
        self.frame_length = lengths.get(fields.bits(3)? as usize).copied().unwrap_or(0);
        if self.channels == 0 {
            self.channels = channels_of(fields.small(5)?);
        }
        Ok(())
    }

    /// Reads backward compatible signalling: the sync words 0x2b7 (SBR) and 0x548 (PS).
    fn sync_extension(&mut self, fields: &mut FieldReader<'_, '_>) -> Result<(), MediaError> {
        if fields.left() < 16 || fields.bits(11)? != 0x2b7 || audio_object_type(fields)? != SBR || !fields.flag()? {
            return Ok(());
        }
        self.extension_sample_rate = Some(sampling_frequency(fields)?);
        self.signalled = SBR;
        if fields.left() >= 12 && fields.bits(11)? == 0x548 && fields.flag()? {
            self.signalled = PS;
        }
        Ok(())
    }
}

/// Reads `GetAudioObjectType` (1.6.2.1).
fn audio_object_type(fields: &mut FieldReader<'_, '_>) -> Result<u8, MediaError> {
    match fields.small(5)? {
        31 => Ok(32 + fields.small(6)?),
        object_type => Ok(object_type),
    }
}

fn sampling_frequency(fields: &mut FieldReader<'_, '_>) -> Result<u32, MediaError> {
    let index = fields.small(4)?;
    let rate = match index {
        EXPLICIT_RATE => fields.bits(24)?,
        _ => SAMPLE_RATES.get(usize::from(index)).copied().unwrap_or(0),
    };
    match rate {
        0 => Err(fields.invalid(format!("sampling frequency index {index} without a rate"), "0 to 12, or 15")),
        rate => Ok(rate),
    }
}

/// Reads a `program_config_element` (4.4.1.1), and returns its number of channels.
fn program_config(fields: &mut FieldReader<'_, '_>) -> Result<u16, MediaError> {
    fields.skip(4 + 2 + 4)?; // tag, object type, sampling frequency index
    let speakers = [fields.bits(4)?, fields.bits(4)?, fields.bits(4)?]; // front, side, back
    let (lfe, data, coupling) = (fields.bits(2)?, fields.bits(3)?, fields.bits(4)?);
    for width in [4, 4, 3] {
        // Mono, stereo and matrix mix-down.
        if fields.flag()? {
            fields.skip(width)?;
        }
    }
    let mut channels = lfe;
    for _ in 0..speakers.iter().sum() {
        channels += 1 + u32::from(fields.flag()?);
        fields.skip(4)?;
    }
    fields.skip((lfe * 4 + data * 4 + coupling * 5) as usize)?;
    fields.align();
    let comment = fields.u8()?;
    fields.take(usize::from(comment))?;
    Ok(channels as u16)
}
