//! Why a stream is not, or no longer, pushed by WHIP.

use crate::{calling_webrtc::CallError, live::FormatsChanged};
use millpond_webrtc::Ended;

/// Why a stream is not, or no longer, pushed by WHIP. The words contain no secret.
#[derive(Debug, thiserror::Error)]
pub(in crate::modules::push) enum WhipError {
    #[error("WebRTC has no format of the pictures ({0}): let the encoder send H.264, HEVC, AV1, VP9 or VP8")]
    Pictures(String),
    #[error("WebRTC has no format of the tracks ({0}): let the encoder send H.264, and Opus or G.711")]
    Tracks(String),
    #[error(
        "the answer takes none of the formats of the pictures ({0}): let the encoder send what the server takes, such as H.264"
    )]
    Refused(String),
    #[error(
        "the answer takes none of the offered tracks ({0}): let the encoder send what the server takes, such as H.264 and Opus"
    )]
    RefusedAll(String),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Formats(#[from] FormatsChanged),
}

impl From<Ended> for WhipError {
    fn from(ended: Ended) -> Self {
        Self::Call(ended.into())
    }
}
