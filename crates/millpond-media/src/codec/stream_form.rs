//! Forms of frames in elementary streams.

use serde::{Deserialize, Serialize};

/// The form in which an elementary stream of a transport stream (ISO/IEC 13818-1), AVI file or Matroska file holds frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamForm {
    /// H.264 in the byte stream format (H.264 Annex B).
    Avc,
    /// H.265 in the byte stream format (H.265 Annex B).
    Hevc,
    /// AAC with ADTS headers (ISO/IEC 14496-3 1.A.2).
    Adts,
    /// Frames of MPEG audio.
    MpegAudio,
    /// Synchronization frames of AC-3 or E-AC-3.
    Ac3,
    /// Opus packets with control headers.
    Opus,
    /// AAC in elements of LATM with LOAS sync (ISO/IEC 14496-3 1.7). Each element has one frame.
    Latm,
    /// The bytes of frames are those of samples.
    Plain,
}
