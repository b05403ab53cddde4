//! Failures of stored titles of RTSP servers.

use crate::source_health::{SourceError, SourceErrorKind};
use millpond_store::{At, OriginError, Phase};
use std::{sync::Arc, time::Duration};

/// Why a segment can't be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RemoteError {
    /// The title ends before it.
    #[error("the title ends before this segment")]
    BehindEnd,
    /// The server has another title under the name now.
    #[error("the title has changed")]
    Changed,
    /// The server plays from the beginning only, and the segment lies too far ahead.
    #[error("the server can't seek, and the segment lies {} s ahead of what it plays", .0.as_secs())]
    NotSeekable(Duration),
    /// No session brought the segment in time.
    #[error("no session of the server brought the segment within {} s", .0.as_secs())]
    Late(Duration),
    /// The segment is larger than may be held.
    #[error("the segment has more bytes than may be held")]
    TooLarge,
    /// The server failed.
    #[error(transparent)]
    Source(Arc<SourceError>),
}

impl From<SourceError> for RemoteError {
    fn from(error: SourceError) -> Self {
        Self::Source(Arc::new(error))
    }
}

impl RemoteError {
    /// Returns whether another session may bring the segment.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Source(error) => matches!(
                error.kind,
                SourceErrorKind::Unreachable | SourceErrorKind::TimedOut | SourceErrorKind::Protocol
            ),
            _ => false,
        }
    }

    /// Returns the error of an origin.
    pub(super) fn of_origin(&self, at: At) -> OriginError {
        let detail = || self.to_string();
        match self {
            Self::BehindEnd | Self::Changed => OriginError::NotFound { at },
            Self::NotSeekable(_) => OriginError::Unsupported { at, what: "seeking on this RTSP server" },
            Self::Late(after) => OriginError::Timeout { at, phase: Phase::FirstByte, after: *after },
            Self::TooLarge => OriginError::Unplayable { at, reason: detail() },
            Self::Source(error) => match error.kind {
                SourceErrorKind::NotFound => OriginError::NotFound { at },
                SourceErrorKind::Unauthorized => OriginError::Unauthorized { at, detail: detail() },
                SourceErrorKind::Unreachable => OriginError::Connect { at, detail: detail() },
                SourceErrorKind::NoMedia => OriginError::Unplayable { at, reason: error.words.clone() },
                SourceErrorKind::Refused(code) => OriginError::Status { at, code, detail: detail() },
                SourceErrorKind::TimedOut => {
                    OriginError::Timeout { at, phase: Phase::Stalled, after: Duration::from_secs(5) }
                }
                _ => OriginError::BadReply { at, expected: "the title".to_owned(), found: detail() },
            },
        }
    }
}
