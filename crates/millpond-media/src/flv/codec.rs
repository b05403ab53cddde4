//! Codecs of FLV tags.

use crate::NalSyntax;
use std::fmt;

/// A codec that is supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlvCodec {
    /// H.264, configured by an `AVCDecoderConfigurationRecord` (ISO/IEC 14496-15 5.3.3.1).
    Avc,
    /// HEVC, configured by an `HEVCDecoderConfigurationRecord` (ISO/IEC 14496-15 8.3.3.1).
    Hevc,
    /// AV1, configured by an `AV1CodecConfigurationRecord` (AV1 Codec ISO Media File Format Binding 2.3).
    Av1,
    /// AAC, configured by an `AudioSpecificConfig` (ISO/IEC 14496-3 1.6.2.1).
    Aac,
    /// MP3, which needs no configuration.
    Mp3,
}

impl FlvCodec {
    /// Whether it encodes pictures.
    #[must_use]
    pub fn is_video(self) -> bool {
        matches!(self, Self::Avc | Self::Hevc | Self::Av1)
    }

    /// The syntax of its NAL units; `None` for codecs without any.
    #[must_use]
    pub fn syntax(self) -> Option<NalSyntax> {
        match self {
            Self::Avc => Some(NalSyntax::Avc),
            Self::Hevc => Some(NalSyntax::Hevc),
            Self::Av1 | Self::Aac | Self::Mp3 => None,
        }
    }
}

impl fmt::Display for FlvCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Avc => "H.264",
            Self::Hevc => "HEVC",
            Self::Av1 => "AV1",
            Self::Aac => "AAC",
            Self::Mp3 => "MP3",
        })
    }
}
