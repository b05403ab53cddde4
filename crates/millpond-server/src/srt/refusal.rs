//! Why a connection is refused, and the code that its caller is told.

use crate::{library::LibraryError, live::CannotFollow};
use millpond_access::{AccessRefusal, Limited, OpenRefusal, TooManyGuesses};
use millpond_srt::{Rejection, StreamIdError};
use millpond_stream::{CannotOpen, Full, PublishRefused, SourceErrorKind, reception::SourceError};
use std::sync::Arc;

/// Why a connection is refused. The words never contain a password.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error("{0}")]
    Busy(&'static str),
    #[error("{0}")]
    Limited(Limited),
    #[error("{0}")]
    Handshake(Rejection),
    #[error("{0}")]
    StreamId(#[from] StreamIdError),
    #[error("{0}")]
    Name(#[from] LibraryError),
    #[error("no publisher can push streams to this place: only to those of publish:")]
    NotPublished,
    #[error("stored titles are not sent by SRT: HTTP and RTSP send them")]
    Stored,
    #[error("{0}")]
    Publisher(OpenRefusal),
    #[error("{0}")]
    Access(AccessRefusal),
    #[error("this needs a user and a password, or a token, in the stream id")]
    Credentials,
    #[error("a password in a stream id is taken from this machine, and where srt-passphrase is set")]
    Exposed,
    #[error("{0}")]
    Guesses(TooManyGuesses),
    #[error("{0}")]
    Taken(#[from] PublishRefused),
    #[error("{0}")]
    Full(#[from] Full),
    #[error("{0}")]
    Open(#[from] CannotOpen),
    #[error("{0}")]
    Source(Arc<SourceError>),
    #[error("a transport stream can't carry the tracks of this stream")]
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

impl From<OpenRefusal> for Refused {
    fn from(refusal: OpenRefusal) -> Self {
        match refusal {
            OpenRefusal::Exposed => Self::Exposed,
            OpenRefusal::Unknown => Self::Credentials,
            OpenRefusal::Guesses(many) => Self::Guesses(many),
            OpenRefusal::Forbidden => Self::Publisher(refusal),
        }
    }
}

impl Refused {
    /// The code that the caller is told.
    pub(super) fn code(&self) -> Rejection {
        match self {
            Self::Handshake(code) => *code,
            Self::StreamId(_) => Rejection::BAD_REQUEST,
            Self::Credentials | Self::Access(AccessRefusal::Credentials(_) | AccessRefusal::Malformed(_)) => {
                Rejection::UNAUTHORIZED
            }
            Self::Access(AccessRefusal::Token(error)) if !error.is_of_another() => Rejection::UNAUTHORIZED,
            Self::Access(AccessRefusal::NoKeys | AccessRefusal::NoAnswer) => Rejection::UNAVAILABLE,
            Self::Publisher(_) | Self::Access(_) | Self::Exposed => Rejection::FORBIDDEN,
            Self::Busy(_) | Self::Limited(_) | Self::Guesses(_) | Self::Full(_) => Rejection::OVERLOAD,
            Self::Name(_) => Rejection::NOT_FOUND,
            Self::NotPublished => Rejection::BAD_MODE,
            Self::Stored => Rejection::UNACCEPTABLE,
            Self::Taken(PublishRefused::Taken) => Rejection::CONFLICT,
            Self::Taken(PublishRefused::NotPublished) => Rejection::BAD_MODE,
            Self::Taken(_) | Self::Open(_) => Rejection::UNAVAILABLE,
            Self::Source(error) => match error.kind {
                SourceErrorKind::NoMedia => Rejection::UNSUPPORTED_MEDIA,
                SourceErrorKind::StoredTitle => Rejection::UNACCEPTABLE,
                _ => Rejection::GATEWAY,
            },
            Self::Unfit => Rejection::UNSUPPORTED_MEDIA,
        }
    }
}
