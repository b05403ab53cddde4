//! Why a viewer is refused.

use crate::{library::LibraryError, live::CannotFollow};
use millpond_access::{AccessRefusal, Limited, TooManyGuesses};
use millpond_rtmp::Refusal;
use millpond_stream::{CannotOpen, Full, SourceErrorKind, reception::SourceError};
use std::sync::Arc;

/// Why a viewer is refused. The words contain neither a password nor a token.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error("the name is not UTF-8")]
    Encoding,
    #[error("{0}")]
    Name(#[from] LibraryError),
    #[error("stored titles are not sent by RTMP: HTTP and RTSP send them")]
    Stored,
    #[error("{0}")]
    Access(AccessRefusal),
    #[error("this needs a user and a password, or a token, in the query: ?user=NAME&pass=PASSWORD or ?token=TOKEN")]
    Credentials,
    #[error("a password in a query is taken over TLS (rtmps), and from this machine")]
    Exposed,
    #[error("{0}")]
    Guesses(TooManyGuesses),
    #[error("{0}")]
    Limited(Limited),
    #[error("{0}")]
    Full(#[from] Full),
    #[error("{0}")]
    Open(#[from] CannotOpen),
    #[error("{0}")]
    Source(Arc<SourceError>),
    #[error("RTMP can't carry the tracks of this stream")]
    Unfit,
}

impl From<Limited> for Refused {
    fn from(limited: Limited) -> Self {
        Self::Limited(limited)
    }
}

impl From<CannotFollow> for Refused {
    fn from(error: CannotFollow) -> Self {
        match error {
            CannotFollow::Library(error) => Self::Name(error),
            CannotFollow::Stream(error) => Self::Open(error),
            CannotFollow::Source(error) => Self::Source(error),
        }
    }
}

impl Refused {
    /// The refusal that the client is sent.
    pub(super) fn refusal(&self) -> Refusal {
        match self {
            Self::Encoding | Self::Name(_) | Self::Stored => Refusal::Name,
            Self::Source(error) => match error.kind {
                SourceErrorKind::NotFound | SourceErrorKind::Unpublished | SourceErrorKind::StoredTitle => {
                    Refusal::Name
                }
                _ => Refusal::Failed,
            },
            Self::Access(_) | Self::Credentials | Self::Exposed | Self::Guesses(_) | Self::Limited(_) => {
                Refusal::Denied
            }
            Self::Full(_) | Self::Open(_) | Self::Unfit => Refusal::Failed,
        }
    }
}
