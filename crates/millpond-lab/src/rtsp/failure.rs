//! Causes of failed sessions.

use millpond_rtp::client::{ClientError, RequestKind};
use std::fmt;

/// Cause of a failed session, as reports count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FailureKind {
    /// The server could not be connected to.
    Connect,
    /// The reply, or the connection, took too long.
    Timeout(RequestKind),
    /// The connection ended or broke, or the server ended the session.
    Closed,
    /// The server refused a request with this status.
    Status(RequestKind, u16),
    /// The reply lacks what it must have.
    Reply(RequestKind),
    /// The description can't be played.
    Description,
    /// This machine has no free port or descriptor.
    Ports,
    /// No packet followed PLAY.
    NoMedia,
    /// Packets stopped long before the end of the title.
    Stopped,
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect => f.write_str("connect"),
            Self::Timeout(request) => write!(f, "{request} timeout"),
            Self::Closed => f.write_str("connection closed"),
            Self::Status(request, code) => write!(f, "{request} status {code}"),
            Self::Reply(request) => write!(f, "{request} reply"),
            Self::Description => f.write_str("description not playable"),
            Self::Ports => f.write_str("no ports"),
            Self::NoMedia => f.write_str("no media"),
            Self::Stopped => f.write_str("media stopped"),
        }
    }
}

/// One failed session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    /// URL of the session, and the event.
    pub(crate) detail: String,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, url: &str, why: &str) -> Self {
        Self { kind, detail: format!("{url}: {why}") }
    }

    /// Creates the failure of a session with this URL, whose client failed.
    pub(crate) fn of_client(url: &str, error: &ClientError) -> Self {
        use ClientError as E;
        let (kind, why) = match error {
            E::Url { .. } => (FailureKind::Connect, error.to_string()),
            E::Timeout { request, after, .. } => {
                (FailureKind::Timeout(*request), format!("no reply in {} s", after.as_secs_f64()))
            }
            E::Disconnected { request, why, .. } => (FailureKind::Closed, format!("{request}: {why}")),
            E::Framing { request, error, .. } => (FailureKind::Closed, format!("{request}: {error}")),
            E::Status { request, status, reason, .. } => {
                (FailureKind::Status(*request, *status), format!("{request} gives {status} {reason}"))
            }
            E::Redirect { request, status: Some(status), location, .. } => {
                (FailureKind::Status(*request, *status), format!("{request} gives {status} to {location}"))
            }
            E::Redirect { status: None, location, .. } => {
                (FailureKind::Closed, format!("the server redirects to {location}"))
            }
            E::Reply { request, header, found, expected, .. } => {
                (FailureKind::Reply(*request), format!("{request}: {header} is {found:?}, expected {expected}"))
            }
            E::Description { error, .. } => (FailureKind::Description, error.to_string()),
            E::Ended { .. } => (FailureKind::Closed, "the server sent TEARDOWN".to_owned()),
        };
        Self::new(kind, url, &why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_rtp::framing::FramingError;
    use std::time::Duration;

    const URL: &str = "rtsp://h/a";

    #[test]
    fn errors_of_clients_are_named_and_told() {
        use ClientError as E;
        let (request, url) = (RequestKind::Describe, URL.to_owned());
        let text = |text: &str| text.to_owned();
        let (status, location, why) = (Some(302), text("rtsp://h/b"), "not followed");
        let header = "Session";
        for (error, kind, detail) in [
            (
                E::Timeout { request, url: url.clone(), after: Duration::from_millis(1500) },
                "DESCRIBE timeout",
                "no reply in 1.5 s",
            ),
            (E::Disconnected { request, url: url.clone(), why: text("reset") }, "connection closed", "DESCRIBE: reset"),
            (
                E::Framing { request, url: url.clone(), error: FramingError::Malformed },
                "connection closed",
                "DESCRIBE: bytes that are no RTSP message",
            ),
            (
                E::Status { request, url: url.clone(), status: 404, reason: text("Not Found") },
                "DESCRIBE status 404",
                "DESCRIBE gives 404 Not Found",
            ),
            (
                E::Redirect { request, url: url.clone(), status, location: location.clone(), why },
                "DESCRIBE status 302",
                "DESCRIBE gives 302 to rtsp://h/b",
            ),
            (
                E::Redirect { request, url: url.clone(), status: None, location, why },
                "connection closed",
                "the server redirects to rtsp://h/b",
            ),
            (
                E::Reply { request, url: url.clone(), header, found: text(""), expected: "an identifier" },
                "DESCRIBE reply",
                "DESCRIBE: Session is \"\", expected an identifier",
            ),
            (E::Ended { url }, "connection closed", "the server sent TEARDOWN"),
        ] {
            let failure = Failure::of_client(URL, &error);
            assert_eq!((failure.kind.to_string().as_str(), failure.detail), (kind, format!("{URL}: {detail}")));
        }
    }
}
