//! The reason for which a request head is refused.

use http::StatusCode;

/// An invalid or unsupported request head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct HeadError {
    /// Status of the reply.
    pub status: StatusCode,
    /// Explanation for the client.
    pub reason: &'static str,
}

impl HeadError {
    /// Creates an error with its status.
    pub(crate) fn new(status: StatusCode, reason: &'static str) -> Self {
        Self { status, reason }
    }

    /// Creates an error with status 400.
    pub(crate) fn bad_request(reason: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason)
    }
}
