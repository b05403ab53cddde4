//! Access units as samples of floating point.

use millpond_media::codec::{AacConfig, Codec, PcmCoding, PcmConfig};
use millpond_package::pcm;
use symphonia_codec_aac::AacDecoder;
use symphonia_core::{
    codecs::audio::{AudioCodecParameters, AudioDecoder as _, AudioDecoderOptions, well_known::CODEC_ID_AAC},
    packet::Packet,
    units::{Duration, Timestamp},
};

/// Object type of AAC LC (ISO/IEC 14496-3 table 1.17), which all decoders of this field have.
const AAC_LC: u8 = 2;
/// Samples per channel of a frame of AAC. Frames of 960 are not decoded.
const AAC_SAMPLES: u16 = 1024;
/// Longest access unit in samples per channel: a second of the highest rate.
const MOST: usize = 192_000;

/// A decoder before its first unit.
fn begun(parameters: &AudioCodecParameters) -> Option<AacDecoder> {
    AacDecoder::try_new(parameters, &AudioDecoderOptions::default()).ok()
}

/// Decodes the access units of one track.
pub(crate) enum Decoder {
    Aac { decoder: Box<AacDecoder>, parameters: Box<AudioCodecParameters>, channels: usize, rate: u32 },
    Pcm { coding: PcmCoding, scale: f32, channels: usize, rate: u32, values: Vec<i32> },
}

impl Decoder {
    /// Makes that of a codec; `None` for codecs that are not decoded, and for more than two channels.
    pub(crate) fn of(codec: &Codec) -> Option<Self> {
        match codec {
            Codec::Aac(config) => Self::aac(config),
            Codec::Pcm(config) => Self::pcm(config),
            _ => None,
        }
    }

    /// The core of HE-AAC is decoded, which has the lower half of its frequencies (ISO/IEC 14496-3 4.6.18).
    fn aac(config: &AacConfig) -> Option<Self> {
        let is_core = config.object_type == AAC_LC && config.frame_length == AAC_SAMPLES;
        let is_listed = config.sample_rate_index < 13 && matches!(config.channel_config, 1 | 2);
        if !is_core || !is_listed {
            return None;
        }
        // AudioSpecificConfig without extensions: object type, rate, channels, and a GASpecificConfig of zeros (1.6.2.1).
        let bits =
            u16::from(AAC_LC) << 11 | u16::from(config.sample_rate_index) << 7 | u16::from(config.channel_config) << 3;
        let mut parameters = AudioCodecParameters::new();
        parameters.for_codec(CODEC_ID_AAC).with_extra_data(Box::new(bits.to_be_bytes()));
        let decoder = Box::new(begun(&parameters)?);
        let (channels, rate) = (config.channel_config.into(), config.sample_rate);
        Some(Self::Aac { decoder, parameters: Box::new(parameters), channels, rate })
    }

    fn pcm(config: &PcmConfig) -> Option<Self> {
        let channels = usize::from(config.channels);
        let scale = f32::from(i16::MAX) + 1.0;
        let scale = scale * (f32::from(pcm::bits(config.coding)) - 16.0).exp2();
        let (coding, rate) = (config.coding, config.sample_rate);
        matches!(channels, 1 | 2).then(|| Self::Pcm { coding, scale, channels, rate, values: Vec::new() })
    }

    /// Channels of what is decoded.
    pub(crate) fn channels(&self) -> usize {
        match self {
            Self::Aac { channels, .. } | Self::Pcm { channels, .. } => *channels,
        }
    }

    /// Samples a second of what is decoded.
    pub(crate) fn rate(&self) -> u32 {
        match self {
            Self::Aac { rate, .. } | Self::Pcm { rate, .. } => *rate,
        }
    }

    /// Appends the samples of an access unit, whose channels take turns. A unit of AAC that can't be decoded is silence of its length; the
    /// values of PCM without a whole frame are left out. Returns whether the unit was whole.
    pub(crate) fn decode(&mut self, unit: &[u8], out: &mut Vec<f32>) -> bool {
        match self {
            Self::Aac { decoder, parameters, channels, .. } => {
                let packet = Packet::new(0, Timestamp::new(0), Duration::from(u64::from(AAC_SAMPLES)), unit);
                let mut samples = Vec::new();
                let is_whole = match decoder.decode(&packet) {
                    Ok(buffer) if buffer.num_planes() == *channels => {
                        buffer.copy_to_vec_interleaved(&mut samples);
                        true
                    }
                    _ => {
                        samples.resize(usize::from(AAC_SAMPLES) * *channels, 0.0);
                        false
                    }
                };
                // `reset` keeps the elements of a unit that failed, and all later ones would fail too.
                if !is_whole && let Some(new) = begun(parameters) {
                    **decoder = new;
                }
                out.append(&mut samples);
                is_whole
            }
            Self::Pcm { coding, scale, channels, values, .. } => {
                values.clear();
                pcm::values(*coding, unit, values);
                values.truncate((values.len() / *channels).min(MOST) * *channels);
                out.extend(values.iter().map(|value| *value as f32 / *scale));
                true
            }
        }
    }

    /// Forgets what later units depend on: units are missing before the next one.
    pub(crate) fn reset(&mut self) {
        if let Self::Aac { decoder, .. } = self {
            decoder.reset();
        }
    }
}
