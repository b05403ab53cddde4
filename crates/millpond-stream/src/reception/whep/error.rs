//! Why a WHEP endpoint gives no frames.

use crate::{
    calling_webrtc::CallError,
    source_health::{SourceError, SourceErrorKind},
};
use millpond_webrtc::{Ended, sdp::AnswerError};
use std::time::Duration;

/// Why a server was not connected to. The words contain no secret.
#[derive(Debug, thiserror::Error)]
pub(super) enum WhepError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(
        "the answer sends {0}, expected H264, H265, AV1, VP9 or VP8, and opus, PCMU or PCMA, in one of the formats of the offer"
    )]
    NoMedia(String),
}

/// The loss of a source.
#[derive(Debug)]
pub(super) struct Loss {
    pub(super) kind: SourceErrorKind,
    pub(super) words: String,
    /// Time for which the server asks to be left alone.
    pub(super) retry_after: Option<Duration>,
}

impl Loss {
    pub(super) fn new(kind: SourceErrorKind, words: impl Into<String>) -> Self {
        Self { kind, words: words.into(), retry_after: None }
    }
}

impl From<SourceError> for Loss {
    fn from(SourceError { kind, words, .. }: SourceError) -> Self {
        Self::new(kind, words)
    }
}

impl From<WhepError> for Loss {
    fn from(error: WhepError) -> Self {
        let words = error.to_string();
        match error {
            WhepError::NoMedia(_) => Self::new(SourceErrorKind::NoMedia, words),
            WhepError::Call(error) => {
                let retry_after = match &error {
                    CallError::Refused(refusal) => refusal.retry_after,
                    _ => None,
                };
                Self { kind: kind(&error), words, retry_after }
            }
        }
    }
}

impl From<Ended> for Loss {
    fn from(ended: Ended) -> Self {
        WhepError::Call(ended.into()).into()
    }
}

fn kind(error: &CallError) -> SourceErrorKind {
    match error {
        CallError::Refused(refusal) => match refusal.status {
            401 | 403 => SourceErrorKind::Unauthorized,
            404 | 410 => SourceErrorKind::NotFound,
            // There was a reply, but none of WHEP.
            200..=399 => SourceErrorKind::Protocol,
            status => SourceErrorKind::Refused(status),
        },
        CallError::Answer(AnswerError::NoMedia) => SourceErrorKind::NoMedia,
        CallError::Late(..) => SourceErrorKind::TimedOut,
        CallError::Answer(_)
        | CallError::Redirect { .. }
        | CallError::Redirects(_)
        | CallError::Body(_)
        | CallError::Certificate
        | CallError::Dtls(_) => SourceErrorKind::Protocol,
        CallError::Identity(_)
        | CallError::Random(_)
        | CallError::Request(_)
        | CallError::Socket(_)
        | CallError::Unreachable(_)
        | CallError::Handshake(_)
        | CallError::Peer(_) => SourceErrorKind::Unreachable,
    }
}
