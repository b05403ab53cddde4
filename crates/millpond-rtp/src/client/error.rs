//! The reasons why a client ends.

use super::request::RequestKind;
use crate::{framing::FramingError, sdp_reader::SessionDescriptionError};
use std::time::Duration;

/// The reason why a session can't begin or continue. URLs in it have no credentials.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The URL can't be requested.
    #[error("{url:?} is no rtsp or rtsps URL with a host")]
    Url {
        /// URL found.
        url: String,
    },
    /// The server did not reply in time.
    #[error("{request} {url}: no reply in {} s", after.as_secs_f64())]
    Timeout {
        /// Request.
        request: RequestKind,
        /// URL of the request.
        url: String,
        /// Time limit.
        after: Duration,
    },
    /// The connection ended or failed.
    #[error("{request} {url}: {why}")]
    Disconnected {
        /// The last request.
        request: RequestKind,
        /// Its URL.
        url: String,
        /// Text of the caller.
        why: String,
    },
    /// The server sent bytes that are no RTSP.
    #[error("after {request} {url}: {error}")]
    Framing {
        /// The last request.
        request: RequestKind,
        /// Its URL.
        url: String,
        /// Reason.
        error: FramingError,
    },
    /// The server refused a request.
    #[error("{request} {url}: {status} {reason}")]
    Status {
        /// Request.
        request: RequestKind,
        /// URL of the request.
        url: String,
        /// Status code.
        status: u16,
        /// Reason of the server, and what else is known.
        reason: String,
    },
    /// A header of a reply is missing or unusable.
    #[error("{request} {url}: {header} is {found:?}, expected {expected}")]
    Reply {
        /// Request.
        request: RequestKind,
        /// URL of the request.
        url: String,
        /// Name of the header.
        header: &'static str,
        /// Value found; empty where the header is missing.
        found: String,
        /// Value expected.
        expected: &'static str,
    },
    /// The description can't be read.
    #[error("DESCRIBE {url}: {error}")]
    Description {
        /// URL of the request.
        url: String,
        /// Reason.
        error: SessionDescriptionError,
    },
    /// A redirect that may not be followed.
    #[error("{request} {url}: redirected to {location:?}, which is {why}")]
    Redirect {
        /// The last request.
        request: RequestKind,
        /// Its URL.
        url: String,
        /// Status code of the reply; `None` if the server sent REDIRECT.
        status: Option<u16>,
        /// URL that the server names.
        location: String,
        /// Rule that forbids it.
        why: &'static str,
    },
    /// The server ended the session.
    #[error("{url}: the server sent TEARDOWN")]
    Ended {
        /// URL of the session.
        url: String,
    },
}
