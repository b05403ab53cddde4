//! Errors of the RTSP client as failures of its source.

use crate::{
    reception::RtspSource,
    source_health::{SourceError, SourceErrorKind},
};
use millpond_rtp::client::{ClientError, RequestKind};

impl SourceError {
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
