//! AAC in `mp4a` sample entries (ISO/IEC 14496-3, ISO/IEC 13818-7).

use crate::{
    boxes::Node,
    codec::{
        Codec, SampleEntry,
        audio::{
            asc::{self, AudioSpecificConfig},
            esds::DecoderConfig,
            sound::Sound,
        },
    },
    error::MediaError,
};
use serde::{Deserialize, Serialize};

/// Samples of a frame whose configuration states no number.
pub(crate) const AAC_SAMPLES: u32 = 1024;
/// Object type indication of MPEG-4 audio.
const MPEG4_AUDIO: u8 = 0x40;
/// Object type indication of MPEG-2 AAC Main; those of LC and SSR follow it.
const MPEG2_AAC_MAIN: u8 = 0x66;

/// AAC, from LC to xHE-AAC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AacConfig {
    /// `objectTypeIndication`: 0x40 for MPEG-4, 0x66 to 0x68 for MPEG-2.
    pub object_type_indication: u8,
    /// Audio object type of the core coder: 2 for LC and for HE-AAC.
    pub object_type: u8,
    /// Audio object type with its extension: 2 LC, 5 HE-AAC, 29 HE-AAC v2, 42 xHE-AAC.
    pub signalled_object_type: u8,
    /// Index of the core's sample rate (ISO/IEC 14496-3 table 1.18); 15 where the table has no such rate.
    pub sample_rate_index: u8,
    /// Samples per second of the core coder.
    pub sample_rate: u32,
    /// `channelConfiguration`; 0 where a program config element lists the channels.
    pub channel_config: u8,
    /// Output channels of the decoder.
    pub channels: u16,
    /// Output samples per second where SBR is signalled.
    pub extension_sample_rate: Option<u32>,
    /// Samples per channel in a frame of the core coder; 0 where unknown.
    pub frame_length: u16,
    /// `AudioSpecificConfig` as in the file.
    pub audio_specific_config: Vec<u8>,
    /// Bits per second as stated by the file; 0 where unknown.
    pub average_bitrate: u32,
}

impl AacConfig {
    /// Length of an ADTS header without CRC, in bytes.
    pub const ADTS_HEADER: usize = 7;

    /// Output samples per second of the decoder.
    #[must_use]
    pub fn output_sample_rate(&self) -> u32 {
        self.extension_sample_rate.unwrap_or(self.sample_rate)
    }

    /// Output samples per channel of one frame, at [`Self::output_sample_rate`]; `None` where unknown.
    #[must_use]
    pub fn samples_per_frame(&self) -> Option<u32> {
        let core = u64::from(self.frame_length);
        let rate = u64::from(self.sample_rate.max(1));
        // Without an extension rate (LC, and xHE-AAC) the frame length is already that of the output.
        let scaled = match self.extension_sample_rate {
            Some(output) => core * u64::from(output) / rate,
            None => core,
        };
        u32::try_from(scaled).ok().filter(|&samples| samples > 0)
    }

    /// Whether ADTS, and with it an MPEG-2 transport stream, can carry the track: LC and HE-AAC with a listed sample
    /// rate and a channel configuration of 1 to 7, in frames of 1024 samples.
    #[must_use]
    pub fn fits_adts(&self) -> bool {
        self.object_type == asc::AAC_LC
            && self.sample_rate_index < 13
            && (1..=7).contains(&self.channel_config)
            && self.frame_length == 1024
    }

    /// Returns the header of an ADTS frame (ISO/IEC 13818-7 6.2) with `frame_len` bytes of AAC: no CRC, one raw data
    /// block, buffer fullness "variable rate". `None` where [`Self::fits_adts`] is false, or the frame exceeds the 13
    /// bits of `aac_frame_length`.
    #[must_use]
    pub fn adts_header(&self, frame_len: usize) -> Option<[u8; Self::ADTS_HEADER]> {
        let len = frame_len.checked_add(Self::ADTS_HEADER).filter(|&len| len < 1 << 13)?;
        if !self.fits_adts() {
            return None;
        }
        let mpeg2 = self.object_type_indication != MPEG4_AUDIO;
        let (profile, channels) = (self.object_type - 1, self.channel_config);
        Some([
            0xff,
            0xf1 | u8::from(mpeg2) << 3,
            profile << 6 | self.sample_rate_index << 2 | channels >> 2,
            (channels & 3) << 6 | (len >> 11) as u8,
            (len >> 3) as u8,
            (len << 5) as u8 | 0x1f,
            0xfc,
        ])
    }

    /// Returns the element of a `codecs` parameter: `mp4a.40.2`, `mp4a.67` (RFC 6381 3.3).
    pub(in crate::codec) fn parameter(&self) -> String {
        match self.object_type_indication {
            MPEG4_AUDIO => format!("mp4a.40.{}", self.signalled_object_type),
            other => format!("mp4a.{other:02x}"),
        }
    }

    pub(in crate::codec) fn name(&self) -> &'static str {
        match self.signalled_object_type {
            asc::SBR => "HE-AAC",
            asc::PS => "HE-AAC v2",
            asc::USAC => "xHE-AAC",
            _ => "AAC",
        }
    }
}

/// Returns the sample entry with this decoder configuration.
pub(in crate::codec) fn entry(
    sound: &Sound<'_, '_>,
    decoder: &DecoderConfig<'_, '_>,
    esds: &Node<'_>,
) -> Result<SampleEntry, MediaError> {
    let config = match &decoder.specific {
        Some(specific) => AudioSpecificConfig::parse(&mut specific.clone())?,
        // MPEG-2 AAC needs no configuration: the object type names the profile, and the sample entry has the rest.
        None if decoder.object_type != MPEG4_AUDIO => of_fields(decoder.object_type, sound),
        None => return Err(esds.invalid("no AudioSpecificConfig", "one")),
    };
    let channels = if config.channels == 0 { sound.channels } else { config.channels };
    let codec = AacConfig {
        object_type_indication: decoder.object_type,
        object_type: config.object_type,
        signalled_object_type: config.signalled,
        sample_rate_index: config.sample_rate_index,
        sample_rate: config.sample_rate,
        channel_config: config.channel_config,
        channels,
        extension_sample_rate: config.extension_sample_rate,
        frame_length: config.frame_length,
        audio_specific_config: decoder.specific.as_ref().map(|specific| specific.rest().to_vec()).unwrap_or_default(),
        average_bitrate: decoder.average_bitrate,
    };
    let output = codec.output_sample_rate();
    Ok(sound.entry(Codec::Aac(codec), channels, output))
}

fn of_fields(object_type_indication: u8, sound: &Sound<'_, '_>) -> AudioSpecificConfig {
    let object_type = object_type_indication.saturating_sub(MPEG2_AAC_MAIN).saturating_add(1);
    AudioSpecificConfig {
        object_type,
        signalled: object_type,
        sample_rate_index: asc::rate_index(sound.sample_rate),
        sample_rate: sound.sample_rate,
        channel_config: (1..=7).find(|&config| asc::channels_of(config) == sound.channels).unwrap_or(0),
        channels: sound.channels,
        extension_sample_rate: None,
        frame_length: 1024,
    }
}
