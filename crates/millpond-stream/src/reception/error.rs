//! Failures of upstream sources.

use super::RtspSource;
use millpond_rtp::client::{ClientError, RequestKind};
use std::fmt;

/// The kind of an upstream's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceErrorKind {
    /// It has nothing under that name.
    NotFound,
    /// Nobody pushes the stream.
    Unpublished,
    /// It refused with this status of its protocol.
    Refused(u16),
    /// It demands another user or password.
    Unauthorized,
    /// No connection was possible, or it ended.
    Unreachable,
    /// It did not reply, or sent no media, for too long.
    TimedOut,
    /// It violated its protocol.
    Protocol,
    /// It has no track that can be received.
    NoMedia,
    /// It sends more than the memory of a stream allows.
    TooMuch,
}

/// Why a live source gives no frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError {
    /// What the upstream did.
    pub kind: SourceErrorKind,
    /// Address of the upstream, without credentials and query.
    pub address: String,
    /// Description for people. It contains no URL, because the query of one may contain a password.
    pub words: String,
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.address, self.words)
    }
}

impl std::error::Error for SourceError {}

impl SourceError {
    /// Describes the error for viewers, without the address.
    pub fn for_viewers(&self) -> String {
        match self.kind {
            SourceErrorKind::Unpublished => self.words.clone(),
            _ => format!("the source of the stream failed: {}", self.words),
        }
    }

    /// Returns the error of a client for a source.
    pub(super) fn of(error: &ClientError, source: &RtspSource) -> Self {
        let (kind, words) = classified(error);
        Self { kind, address: source.to_string(), words }
    }
}

fn classified(error: &ClientError) -> (SourceErrorKind, String) {
    use SourceErrorKind::{NotFound, Protocol, Refused, TimedOut, Unauthorized, Unreachable};
    match error {
        ClientError::Url { .. } => (Protocol, "no rtsp or rtsps URL with a host".to_owned()),
        ClientError::Timeout { request, after, .. } => {
            (TimedOut, format!("{}: nothing in {} s", name(*request), after.as_secs_f64()))
        }
        ClientError::Disconnected { request, why, .. } => (Unreachable, format!("{}: {why}", name(*request))),
        ClientError::Framing { request, error, .. } => (Protocol, format!("after {}: {error}", name(*request))),
        ClientError::Status { request, status, reason, .. } => {
            let kind = match status {
                401 => Unauthorized,
                404 => NotFound,
                other => Refused(*other),
            };
            (kind, format!("{}: {status} {reason}", name(*request)))
        }
        ClientError::Reply { request, header, found, expected, .. } => {
            (Protocol, format!("{}: {header} is {found:?}, expected {expected}", name(*request)))
        }
        ClientError::Description { error, .. } => (Protocol, format!("DESCRIBE: {error}")),
        ClientError::Redirect { request, why, .. } => {
            (Protocol, format!("{}: redirected to a URL that is {why}", name(*request)))
        }
        ClientError::Ended { .. } => (Unreachable, "the server sent TEARDOWN".to_owned()),
    }
}

fn name(request: RequestKind) -> String {
    match request {
        RequestKind::Connect => "connection".to_owned(),
        other => other.to_string(),
    }
}
