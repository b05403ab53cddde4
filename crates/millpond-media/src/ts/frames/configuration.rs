//! Configurations of codecs, as streams state them.

/// Configuration of a stream's codec, from which a sample entry is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TsConfiguration {
    /// Parameter sets of H.264: NAL units without start code, in the order of their ids.
    Avc {
        /// Sequence parameter sets, at least one.
        sps: Vec<Vec<u8>>,
        /// Picture parameter sets, at least one.
        pps: Vec<Vec<u8>>,
    },
    /// Parameter sets of HEVC, likewise.
    Hevc {
        /// Video parameter sets.
        vps: Vec<Vec<u8>>,
        /// Sequence parameter sets.
        sps: Vec<Vec<u8>>,
        /// Picture parameter sets.
        pps: Vec<Vec<u8>>,
    },
    /// AAC.
    Aac {
        /// `AudioSpecificConfig` (ISO/IEC 14496-3 1.6.2.1).
        audio_specific_config: Vec<u8>,
    },
    /// MPEG audio.
    MpegAudio {
        /// Layer, from 1 to 3.
        layer: u8,
        /// Channels: 1 or 2.
        channels: u16,
        /// Samples per second.
        sample_rate: u32,
    },
    /// AC-3.
    Ac3 {
        /// Channels, including the low frequency channel.
        channels: u16,
        /// Samples per second.
        sample_rate: u32,
    },
    /// E-AC-3.
    Eac3 {
        /// Channels of the first independent substream, including the low frequency channel.
        channels: u16,
        /// Samples per second.
        sample_rate: u32,
    },
    /// Opus, always with a clock of 48 kHz.
    Opus {
        /// Output channels.
        channels: u8,
        /// Channel mapping family (RFC 7845 5.1.1): 0 for up to two channels, 1 for the usual layouts.
        mapping_family: u8,
    },
}
