//! AAC: `mp4a` with `esds` (ISO/IEC 14496-14 6.7.2, ISO/IEC 14496-1 7.2.6).

use super::{Made, entry};
use crate::{
    codec::{
        audio::asc::{AAC_LC, AudioSpecificConfig, SAMPLE_RATES, channels_of, rate_index},
        fields::FieldReader,
    },
    error::MediaError,
};

/// Most bytes of a configuration. A program config element with its comment has fewer.
const MOST_BYTES: usize = 1024;
/// Object type indication of MPEG-4 audio (ISO/IEC 14496-1 table 5).
const MPEG4_AUDIO: u8 = 0x40;
/// Bits of a value before encoding, which decoders ignore.
const VALUE_BITS: u16 = 16;

/// Makes an `mp4a` entry from an `AudioSpecificConfig` (ISO/IEC 14496-3 1.6.2.1).
///
/// # Errors
/// The configuration is invalid or too long, or its object type is not supported.
pub fn aac(audio_specific_config: &[u8]) -> Result<Made, MediaError> {
    if audio_specific_config.len() > MOST_BYTES {
        let found = audio_specific_config.len() as u64;
        return Err(MediaError::too_large("AudioSpecificConfig", 0, found, MOST_BYTES as u64, "bytes"));
    }
    let config = AudioSpecificConfig::parse(&mut FieldReader::new(audio_specific_config, 0, "AudioSpecificConfig"))?;
    let rate = config.extension_sample_rate.unwrap_or(config.sample_rate);
    let esds = [&[0; 4], &*es_descriptor(audio_specific_config)].concat();
    let entry = entry::audio(b"mp4a", config.channels, VALUE_BITS, rate, Some((b"esds", &esds)));
    Made::parsed(entry, b"soun")
}

/// Makes an `mp4a` entry of AAC-LC, for streams that state no configuration.
///
/// # Errors
/// No configuration of two bytes states these channels and this rate.
pub fn aac_lc(channels: u16, sample_rate: u32) -> Result<Made, MediaError> {
    let Some(layout) = (1..=7).find(|layout| channels_of(*layout) == channels) else {
        return Err(MediaError::unsupported("AudioSpecificConfig", 0, format!("AAC with {channels} channels")));
    };
    let index = rate_index(sample_rate);
    if usize::from(index) >= SAMPLE_RATES.len() {
        return Err(MediaError::unsupported("AudioSpecificConfig", 0, format!("AAC at {sample_rate} Hz")));
    }
    // Object type, rate and layout, then no flags of the core coder.
    aac(&(u16::from(AAC_LC) << 11 | u16::from(index) << 7 | u16::from(layout) << 3).to_be_bytes())
}

/// Returns an ES descriptor without optional fields.
fn es_descriptor(config: &[u8]) -> Vec<u8> {
    let specific = descriptor(5, &[config]);
    // Audio (stream type 5), unknown buffer size and bit rates.
    let decoder = [MPEG4_AUDIO, 5 << 2 | 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    // Elementary stream 0, no flags; an SL configuration for MP4 files.
    descriptor(3, &[&[0, 0, 0], &descriptor(4, &[&decoder, &specific]), &descriptor(6, &[&[2]])])
}

/// Returns a descriptor: its tag, its length with seven bits per byte (ISO/IEC 14496-1 8.3.3), and its body.
fn descriptor(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length = parts.iter().map(|part| part.len()).sum::<usize>();
    let mut bytes = vec![tag];
    if length > 0x7f {
        bytes.push(0x80 | (length >> 7 & 0x7f) as u8);
    }
    bytes.push((length & 0x7f) as u8);
    parts.iter().for_each(|part| bytes.extend(*part));
    bytes
}
