//! Why a publication is refused, or ended, and what its publisher is told.

use super::super::{Reply, reply::problem};
use crate::{
    library::LibraryError,
    problem::{self, Problem},
};
use http::{HeaderValue, StatusCode, header};
use millpond_access::{AccessRefusal, HttpRefusal, TooManyGuesses};
use millpond_http::wire::UploadError;
use millpond_logging::RequestId;
use millpond_stream::{PublicationEnd, PublishRefused, reception::SourceErrorKind};
use std::time::Duration;

/// Why a publication is refused, or ended.
#[derive(Debug, thiserror::Error)]
pub(in crate::http::answer) enum PublishError {
    #[error("{0}")]
    Name(LibraryError),
    #[error("no publisher can push streams to this place: only to those of publish:")]
    NotPublished,
    #[error("a user and a password are needed to publish")]
    Challenge(Vec<String>),
    #[error("without publish-users only clients of this machine may publish")]
    Forbidden,
    #[error("Origin: web pages may not publish by PUT and POST: they do by WebRTC, at /whip")]
    Page,
    #[error(
        "Origin: the page is of {origin:?}, and this server is {host:?}: serve the page from the server (a proxy passes Host with its \
         port), or send Authorization: Bearer NAME:PASSWORD of publish-users"
    )]
    ForeignPage { origin: String, host: String },
    #[error(
        "a proxy forwards this request, and is not one of trusted-proxies: all of its clients would count as this machine. Set \
         trusted-proxies, or publish-users"
    )]
    Forwarded,
    #[error("auth-url does not admit this publisher")]
    Denied,
    #[error("auth-url does not answer")]
    NoAnswer,
    #[error("Authorization: {0}")]
    Credentials(String),
    #[error("{0}")]
    Guesses(TooManyGuesses),
    #[error("Content-Encoding: the body must not be compressed")]
    Coding,
    #[error("{0}")]
    Refused(#[from] PublishRefused),
    #[error("the track {0:?} of the stream has another publisher")]
    TrackTaken(String),
    #[error("more than {0} tracks")]
    TooManyTracks(usize),
    #[error(
        "expected MPEG-TS (two bytes 0x47 that are 188 bytes apart) or fragmented MP4 (ftyp, styp, moov); found {0}"
    )]
    Format(String),
    #[error("tracks on their own are fragmented MP4; found MPEG-TS")]
    SplitTransport,
    #[error("{0}")]
    Ended(#[from] PublicationEnd),
    #[error("nothing arrived for {} s", .0.as_secs_f64())]
    Stalled(Duration),
    #[error("{0}")]
    Upload(#[from] UploadError),
    #[error("the server stops")]
    Stopped,
}

impl From<HttpRefusal> for PublishError {
    fn from(refusal: HttpRefusal) -> Self {
        match refusal {
            HttpRefusal::Forbidden => Self::Forbidden,
            HttpRefusal::Malformed(why) => Self::Credentials(why),
            HttpRefusal::Challenge(challenges) => Self::Challenge(challenges),
            HttpRefusal::Guesses(many) => Self::Guesses(many),
        }
    }
}

impl From<AccessRefusal> for PublishError {
    /// The refusal of `auth-url`.
    fn from(refusal: AccessRefusal) -> Self {
        match refusal {
            AccessRefusal::Credentials(challenges) => Self::Challenge(challenges),
            AccessRefusal::NoAnswer => Self::NoAnswer,
            _ => Self::Denied,
        }
    }
}

impl PublishError {
    fn status(&self) -> StatusCode {
        match self {
            Self::Name(error) => problem::status(error),
            Self::NotPublished | Self::Refused(PublishRefused::NotPublished) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Challenge(_) => StatusCode::UNAUTHORIZED,
            Self::Guesses(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Forbidden | Self::Page | Self::ForeignPage { .. } | Self::Forwarded | Self::Denied => {
                StatusCode::FORBIDDEN
            }
            Self::Credentials(_) | Self::Upload(_) => StatusCode::BAD_REQUEST,
            Self::Refused(PublishRefused::Taken) | Self::TrackTaken(_) | Self::Ended(PublicationEnd::Replaced) => {
                StatusCode::CONFLICT
            }
            Self::Coding | Self::Format(_) | Self::SplitTransport | Self::TooManyTracks(_) => {
                StatusCode::UNSUPPORTED_MEDIA_TYPE
            }
            Self::Ended(PublicationEnd::Failed(error)) => match error.kind {
                SourceErrorKind::NoMedia => StatusCode::UNSUPPORTED_MEDIA_TYPE,
                _ => StatusCode::BAD_REQUEST,
            },
            Self::Stalled(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Refused(PublishRefused::Streams(_) | PublishRefused::Source(_) | PublishRefused::HandedOver)
            | Self::Ended(PublicationEnd::Closed | PublicationEnd::HandedOver)
            | Self::NoAnswer
            | Self::Stopped => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns the reply to a publisher of a path, and logs it.
    pub(super) fn reply(&self, id: RequestId, path: &str) -> Reply {
        tracing::info!(%id, path, status = self.status().as_u16(), error = %self, "publication ends");
        self.document(id, path)
    }

    /// Returns the reply to a client whose publication has not begun, and logs it.
    pub(in crate::http::answer) fn refusal(&self, id: RequestId, path: &str) -> Reply {
        tracing::info!(%id, path, status = self.status().as_u16(), error = %self, "WebRTC request refused");
        self.document(id, path)
    }

    fn document(&self, id: RequestId, path: &str) -> Reply {
        let status = self.status();
        let document = Problem::new(status).detail(self.to_string()).asset(path.trim_start_matches('/'));
        let mut reply = problem(id, document);
        if let Self::Challenge(challenges) = self {
            for challenge in challenges.iter().filter_map(|text| HeaderValue::from_str(text).ok()) {
                reply.headers.append(header::WWW_AUTHENTICATE, challenge);
            }
        }
        if let Self::Guesses(many) = self {
            reply.headers.insert(header::RETRY_AFTER, many.retry_after().into());
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            reply.headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        reply.is_last =
            matches!(self, Self::Refused(PublishRefused::HandedOver) | Self::Ended(PublicationEnd::HandedOver));
        if status == StatusCode::METHOD_NOT_ALLOWED {
            reply.headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
        }
        reply
    }
}
