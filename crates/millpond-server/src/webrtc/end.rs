//! Why sessions end.

use super::{metrics::Reason, sessions::EndedBy};
use millpond_stream::{CannotOpen, PublicationEnd, PublishRefused};
use millpond_webrtc::Ended;
use std::time::Duration;

/// Why a session ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    #[error("its client ended it")]
    Deleted,
    #[error("an operator ended it")]
    Kicked,
    #[error("{0}")]
    Connection(#[from] Ended),
    #[error("the stream can't be played: {0}")]
    Stream(#[from] CannotOpen),
    #[error("the stream ended")]
    Over,
    #[error("the stream can't be published: {0}")]
    Refused(#[from] PublishRefused),
    #[error("{0}")]
    Publication(#[from] PublicationEnd),
    #[error("no media arrived for {} s", .0.as_secs())]
    Mute(Duration),
    #[error("its token expired, or its client was sent away")]
    Rights,
    #[error("shutdown")]
    Stop,
}

impl From<EndedBy> for End {
    fn from(by: EndedBy) -> Self {
        match by {
            EndedBy::Client => Self::Deleted,
            EndedBy::Operator => Self::Kicked,
        }
    }
}

impl End {
    /// The reason in metrics.
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::Deleted | Self::Connection(Ended::Closed) => Reason::Client,
            Self::Kicked => Reason::Operator,
            Self::Connection(Ended::Silent(_) | Ended::Unanswered(_)) | Self::Mute(_) => Reason::Silent,
            Self::Connection(Ended::Unconnected | Ended::Certificate | Ended::Suite | Ended::Dtls(_)) => Reason::Failed,
            Self::Stream(_) | Self::Over | Self::Refused(_) | Self::Publication(_) => Reason::Stream,
            Self::Rights => Reason::Rights,
            Self::Stop => Reason::Shutdown,
        }
    }
}
