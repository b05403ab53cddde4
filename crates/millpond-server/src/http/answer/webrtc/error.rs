//! Why a request of WHEP or WHIP is refused, and what its client is told.

use super::super::{Context, Reply, client, publish::PublishError, reply::failure, reply::problem};
use crate::{http::AnswerError, problem::Problem, webrtc::CannotBegin};
use http::{HeaderValue, StatusCode, header};
use millpond_access::{AccessRefusal, Limited};
use millpond_http::wire::UploadError;
use millpond_logging::RequestId;
use millpond_webrtc::sdp::OfferError;
use std::time::Duration;

/// Why a request of WHEP or WHIP is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum SignallingError {
    #[error("WebRTC is off: the setting webrtc = \":8189\" turns it on")]
    Off,
    #[error("no such method here")]
    Method,
    #[error("no such session: it has ended, or never was")]
    NoSession,
    #[error("ICE is not restarted here: begin another session by POST")]
    NoRestart,
    #[error("If-Match: expected {0}, the ETag of the session")]
    OtherTag(String),
    #[error("Content-Type: expected {expected}, found {found:?}")]
    MediaType { found: String, expected: &'static str },
    #[error("the body has more than {0} bytes")]
    Length(usize),
    #[error("the body did not arrive within {} s", .0.as_secs())]
    Slow(Duration),
    #[error("{0}")]
    Upload(#[from] UploadError),
    #[error("{0}")]
    Offer(#[from] OfferError),
    #[error("{0}")]
    Begin(#[from] CannotBegin),
    #[error("{0}")]
    Access(AccessRefusal),
    #[error("{0}")]
    Limited(Limited),
    #[error("{0}")]
    Answer(#[from] AnswerError),
    #[error("{0}")]
    Publish(#[from] PublishError),
}

impl From<AccessRefusal> for SignallingError {
    fn from(refused: AccessRefusal) -> Self {
        Self::Access(refused)
    }
}

impl From<Limited> for SignallingError {
    fn from(limited: Limited) -> Self {
        Self::Limited(limited)
    }
}

impl SignallingError {
    fn status(&self) -> StatusCode {
        match self {
            Self::Off | Self::NoSession => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            // RFC 9725 4.3.3.
            Self::NoRestart => StatusCode::UNPROCESSABLE_ENTITY,
            // RFC 9725 4.3.1.
            Self::OtherTag(_) => StatusCode::PRECONDITION_FAILED,
            Self::MediaType { .. } => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Length(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Upload(_) | Self::Offer(_) => StatusCode::BAD_REQUEST,
            Self::Begin(CannotBegin::NoAnswer(_) | CannotBegin::NoReception(_)) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Begin(CannotBegin::Full(_) | CannotBegin::Random(_)) => StatusCode::SERVICE_UNAVAILABLE,
            // These have replies of their own.
            Self::Access(_) | Self::Limited(_) | Self::Answer(_) | Self::Publish(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }

    /// Returns the reply to a request.
    pub(super) fn reply(self, context: &Context<'_>, id: RequestId) -> Reply {
        let target = context.target;
        let path = target.path();
        let error = match self {
            Self::Access(refused) => return client::turned_away(context, id, &refused),
            Self::Limited(limited) => return client::limited(id, limited),
            Self::Answer(error) => return failure(id, path, &error),
            Self::Publish(error) => return error.refusal(id, path),
            error => error,
        };
        let status = error.status();
        tracing::info!(%id, path, status = status.as_u16(), %error, "WebRTC request refused");
        let document = Problem::new(status).detail(error.to_string()).asset(path.trim_start_matches('/'));
        let mut reply = problem(id, document);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            reply.headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        if let (StatusCode::METHOD_NOT_ALLOWED, Some(methods)) = (status, super::methods(target)) {
            reply.headers.insert(header::ALLOW, methods);
        }
        reply
    }
}
