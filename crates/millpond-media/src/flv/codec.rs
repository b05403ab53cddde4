//! Codecs of FLV tags.

use crate::{
    NalSyntax,
    codec::{
        Ac3Frame,
        audio::opus,
        make::{self, Made},
    },
    error::MediaError,
};
use std::fmt;

/// Bytes of an `AV1CodecConfigurationRecord` before its OBUs (AV1 Codec ISO Media File Format Binding 2.3).
const AV1_HEAD: usize = 4;

/// A codec that is supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlvCodec {
    /// H.264, configured by an `AVCDecoderConfigurationRecord` (ISO/IEC 14496-15 5.3.3.1).
    Avc,
    /// HEVC, configured by an `HEVCDecoderConfigurationRecord` (ISO/IEC 14496-15 8.3.3.1).
    Hevc,
    /// AV1, configured by an `AV1CodecConfigurationRecord` (AV1 Codec ISO Media File Format Binding 2.3).
    Av1,
    /// VP9, whose key frames tell the configuration.
    Vp9,
    /// VP8, whose key frames tell the configuration.
    Vp8,
    /// AAC, configured by an `AudioSpecificConfig` (ISO/IEC 14496-3 1.6.2.1).
    Aac,
    /// MP3, which needs no configuration.
    Mp3,
    /// Opus, configured by an identification header (RFC 7845 5.1).
    Opus,
    /// FLAC, configured by the beginning of a FLAC stream (RFC 9639 8).
    Flac,
    /// AC-3, which needs no configuration.
    Ac3,
    /// E-AC-3, which needs no configuration.
    Eac3,
}

impl FlvCodec {
    /// Whether it encodes pictures.
    #[must_use]
    pub fn is_video(self) -> bool {
        matches!(self, Self::Avc | Self::Hevc | Self::Av1 | Self::Vp9 | Self::Vp8)
    }

    /// The syntax of its NAL units; `None` for codecs without any.
    #[must_use]
    pub fn syntax(self) -> Option<NalSyntax> {
        match self {
            Self::Avc => Some(NalSyntax::Avc),
            Self::Hevc => Some(NalSyntax::Hevc),
            _ => None,
        }
    }

    /// Makes the sample entry of a configuration. `None` for codecs with NAL units, whose parameter sets are read by
    /// [`make::parameter_sets`], and where a frame tells it.
    #[must_use]
    pub fn configured(self, record: &[u8]) -> Option<Result<Made, MediaError>> {
        match self {
            Self::Aac => Some(make::aac(record)),
            // A record without sequence header is followed by a key frame with one.
            Self::Av1 => make::av1(record.get(AV1_HEAD..).unwrap_or_default()).ok().map(Ok),
            Self::Opus if record.is_empty() => Some(make::opus(2)),
            Self::Opus => Some(make::opus_head(record)),
            Self::Flac => Some(make::flac_head(record)),
            Self::Avc | Self::Hevc | Self::Vp9 | Self::Vp8 | Self::Mp3 | Self::Ac3 | Self::Eac3 => None,
        }
    }

    /// Makes the sample entry of a frame; `None` where it tells none.
    #[must_use]
    pub fn described(self, frame: &[u8], is_key: bool) -> Option<Made> {
        match self {
            Self::Av1 if is_key => make::av1(frame).ok(),
            Self::Vp9 if is_key => make::vp9(frame).ok(),
            Self::Vp8 if is_key => make::vp8(frame).ok(),
            Self::Mp3 => make::mpeg_audio(frame).ok(),
            Self::Ac3 => make::ac3(frame).ok(),
            Self::Eac3 => make::eac3(frame).ok(),
            _ => None,
        }
    }

    /// Samples per channel of a frame, where the frame tells them.
    #[must_use]
    pub fn samples(self, frame: &[u8]) -> Option<u32> {
        match self {
            Self::Opus => opus::samples(frame),
            Self::Ac3 | Self::Eac3 => {
                let (mut rest, mut blocks) = (frame, 0);
                while let Some(found) = Ac3Frame::read(rest) {
                    blocks += if found.leads { found.blocks } else { 0 };
                    rest = rest.get(found.length..).unwrap_or_default();
                }
                Some(blocks * Ac3Frame::SAMPLES).filter(|samples| *samples > 0)
            }
            _ => None,
        }
    }
}

impl fmt::Display for FlvCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Avc => "H.264",
            Self::Hevc => "HEVC",
            Self::Av1 => "AV1",
            Self::Vp9 => "VP9",
            Self::Vp8 => "VP8",
            Self::Aac => "AAC",
            Self::Mp3 => "MP3",
            Self::Opus => "Opus",
            Self::Flac => "FLAC",
            Self::Ac3 => "AC-3",
            Self::Eac3 => "E-AC-3",
        })
    }
}
