//! Errors of origins.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::version::Version;

/// Location of an error: the origin and the object there.
#[derive(Clone, PartialEq, Eq)]
pub struct At {
    /// The origin as [`Origin::describe`](crate::Origin::describe) returns it, without secrets.
    pub origin: Arc<str>,
    /// The path of the object or folder; empty for the root.
    pub path: Arc<str>,
}

impl At {
    /// Names a path at an origin.
    pub fn new(origin: &str, path: &str) -> Self {
        Self { origin: Arc::from(origin), path: Arc::from(path) }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.origin);
        }
        write!(f, "{} in {}", self.path, self.origin)
    }
}

impl fmt::Debug for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The phase of a request in which the time ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The connection, its TLS handshake included.
    Connect,
    /// The head of the reply.
    FirstByte,
    /// More of a body that had begun.
    Stalled,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "no connection",
            Self::FirstByte => "no reply",
            Self::Stalled => "no more bytes",
        })
    }
}

/// A failure of an origin, or of a request to it.
///
/// It is cloned to all readers that waited for the same bytes. Status codes and retries depend on the variant, never on
/// a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// The store has no place of this name.
    #[error("no place is called {place:?}")]
    NoSuchPlace {
        /// The requested name.
        place: String,
    },
    /// There is no such object or folder.
    #[error("{at}: not found")]
    NotFound {
        /// Where.
        at: At,
    },
    /// The path is not a regular file, but a folder, a FIFO or a device.
    #[error("{at}: expected {expected}, found {found}")]
    NotAFile {
        /// Where.
        at: At,
        /// Expected kind of object.
        expected: &'static str,
        /// Kind of object that is there.
        found: &'static str,
    },
    /// A symbolic link leads out of the place.
    #[error("{at}: a symbolic link leads out of the folder")]
    Outside {
        /// Where.
        at: At,
    },
    /// The origin refuses these credentials, or file permissions forbid the access.
    #[error("{at}: forbidden: {detail}")]
    Forbidden {
        /// Where.
        at: At,
        /// The origin's own code and message.
        detail: String,
    },
    /// The origin requires credentials, and got none or unknown ones.
    #[error("{at}: unauthorized: {detail}")]
    Unauthorized {
        /// Where.
        at: At,
        /// The origin's own code and message.
        detail: String,
    },
    /// Millpond found no credentials, or could not fetch them.
    #[error("{at}: no usable credentials: {detail}")]
    Credentials {
        /// Where.
        at: At,
        /// Operation that failed.
        detail: String,
    },
    /// The bucket or container does not exist.
    #[error("{at}: there is no bucket {bucket:?}: {detail}")]
    NoSuchBucket {
        /// Where.
        at: At,
        /// The bucket of the configuration.
        bucket: String,
        /// The origin's own code and message.
        detail: String,
    },
    /// The object is no longer the version that was opened.
    #[error("{at}: changed: expected version {expected}, found {}", found.as_ref().map_or("another", |v| v.as_str()))]
    Changed {
        /// Where.
        at: At,
        /// The version that was opened.
        expected: Version,
        /// The version found, if the origin names it.
        found: Option<Version>,
    },
    /// The server replied to a range request with the whole object.
    #[error("{at}: the server {server} ignores byte ranges: asked from offset {start}, got the whole object")]
    RangeIgnored {
        /// Where.
        at: At,
        /// The server's own name.
        server: String,
        /// The requested offset.
        start: u64,
    },
    /// The requested range lies outside the object.
    #[error("{at}: no bytes at offset {start}{}", len.map(|len| format!(": the object has {len}")).unwrap_or_default())]
    OutOfRange {
        /// Where.
        at: At,
        /// The requested offset.
        start: u64,
        /// The length of the object, where known.
        len: Option<u64>,
    },
    /// The reply of the origin violates HTTP.
    #[error("{at}: expected {expected}, found {found}")]
    BadReply {
        /// Where.
        at: At,
        /// Expected value.
        expected: String,
        /// Received value.
        found: String,
    },
    /// The object can't be made of what the origin has. Viewers may read the reason.
    #[error("{at}: {reason}")]
    Unplayable {
        /// Where.
        at: At,
        /// The reason, without locations.
        reason: String,
    },
    /// The body ended early.
    #[error("{at}: the body ended after {received} of {expected} bytes: {detail}")]
    Truncated {
        /// Where.
        at: At,
        /// Bytes announced.
        expected: u64,
        /// Bytes received.
        received: u64,
        /// Cause of the end.
        detail: String,
    },
    /// A status code that has no variant of its own.
    #[error("{at}: the origin answered {code}: {detail}")]
    Status {
        /// Where.
        at: At,
        /// The HTTP status code.
        code: u16,
        /// The beginning of the origin's message.
        detail: String,
    },
    /// The origin exceeded a time limit.
    #[error("{at}: {phase} within {after:?}")]
    Timeout {
        /// Where.
        at: At,
        /// The phase that exceeded it.
        phase: Phase,
        /// The time limit.
        after: Duration,
    },
    /// The host name has no address.
    #[error("{at}: name lookup failed: {detail}")]
    Dns {
        /// Where.
        at: At,
        /// Error of the resolver.
        detail: String,
    },
    /// The TLS handshake failed.
    #[error("{at}: TLS failed: {detail}")]
    Tls {
        /// Where.
        at: At,
        /// Error of the TLS library.
        detail: String,
    },
    /// The connection could not be made, or broke before a reply.
    #[error("{at}: connection failed: {detail}")]
    Connect {
        /// Where.
        at: At,
        /// Error of the system.
        detail: String,
    },
    /// The origin redirects to a host that the configuration does not allow.
    #[error("{at}: redirected to {to}, which is not allowed")]
    Redirect {
        /// Where.
        at: At,
        /// The target, without credentials and query.
        to: String,
    },
    /// The origin does not support the operation.
    #[error("{at}: {what} is not possible here")]
    Unsupported {
        /// Where.
        at: At,
        /// The operation.
        what: &'static str,
    },
    /// The file system failed.
    #[error("{at}: {detail}")]
    Io {
        /// Where.
        at: At,
        /// The kind, for comparisons.
        kind: std::io::ErrorKind,
        /// Error of the system.
        detail: String,
    },
    /// No store gives a unit of a striped object.
    #[error("{at}: unit {unit}: {last}")]
    Unit {
        /// The striped object.
        at: At,
        /// Number of the unit, from 0 on.
        unit: u64,
        /// Failure of the store that was asked last.
        last: Box<OriginError>,
    },
    /// All attempts failed.
    #[error("{last} (tried {tries} times)")]
    TooManyRetries {
        /// Number of attempts, the first one included.
        tries: u32,
        /// Failure of the last attempt.
        last: Box<OriginError>,
    },
}

/// The kinds of [`OriginError`], for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorKind {
    /// No such object, folder, place or bucket.
    NotFound,
    /// Refused: permissions, credentials, links and redirects that lead out.
    Forbidden,
    /// The object changed under its readers.
    Changed,
    /// The origin broke the rules of HTTP ranges.
    Protocol,
    /// The body ended early.
    Truncated,
    /// An error status of the origin.
    Status,
    /// A time limit was exceeded.
    Timeout,
    /// Name lookup, TLS or connection failed.
    Connect,
    /// The request cannot be fulfilled: unsupported, or out of range.
    Request,
    /// The file system failed.
    Io,
}

impl ErrorKind {
    /// All kinds, in the order of their discriminants.
    pub const ALL: [Self; 10] = [
        Self::NotFound,
        Self::Forbidden,
        Self::Changed,
        Self::Protocol,
        Self::Truncated,
        Self::Status,
        Self::Timeout,
        Self::Connect,
        Self::Request,
        Self::Io,
    ];

    /// Returns whether the origin is at fault: not where a client asks for a name that it does not have, nor where an object
    /// changed.
    pub fn is_failure(self) -> bool {
        !matches!(self, Self::NotFound | Self::Changed)
    }

    /// Returns a short lower-case name for metric labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Forbidden => "forbidden",
            Self::Changed => "changed",
            Self::Protocol => "protocol",
            Self::Truncated => "truncated",
            Self::Status => "status",
            Self::Timeout => "timeout",
            Self::Connect => "connect",
            Self::Request => "request",
            Self::Io => "io",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl OriginError {
    /// Returns the kind, for counting.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoSuchPlace { .. } | Self::NotFound { .. } | Self::NotAFile { .. } | Self::NoSuchBucket { .. } => {
                ErrorKind::NotFound
            }
            Self::Outside { .. }
            | Self::Forbidden { .. }
            | Self::Unauthorized { .. }
            | Self::Credentials { .. }
            | Self::Redirect { .. } => ErrorKind::Forbidden,
            Self::Changed { .. } => ErrorKind::Changed,
            Self::RangeIgnored { .. } | Self::BadReply { .. } | Self::Unplayable { .. } => ErrorKind::Protocol,
            Self::Truncated { .. } => ErrorKind::Truncated,
            Self::Status { .. } => ErrorKind::Status,
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::Dns { .. } | Self::Tls { .. } | Self::Connect { .. } => ErrorKind::Connect,
            Self::OutOfRange { .. } | Self::Unsupported { .. } => ErrorKind::Request,
            Self::Io { .. } => ErrorKind::Io,
            Self::TooManyRetries { last, .. } | Self::Unit { last, .. } => last.kind(),
        }
    }

    /// Returns whether the same request may succeed a moment later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Truncated { .. } | Self::Timeout { .. } | Self::Dns { .. } | Self::Connect { .. } => true,
            // RFC 9110 15.5.9 and 15.6, RFC 6585 4: the request itself was correct.
            Self::Status { code, .. } => matches!(code, 408 | 429 | 500 | 502 | 503 | 504),
            _ => false,
        }
    }

    /// Returns whether the failure may be temporary, with or without a retry.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unit { last, .. } => last.may_pass(),
            _ => self.is_retryable() || matches!(self, Self::TooManyRetries { .. }),
        }
    }

    /// Returns the HTTP status for a client (RFC 9110 15).
    pub fn status(&self) -> u16 {
        match self {
            Self::NoSuchPlace { .. } | Self::NotFound { .. } | Self::NotAFile { .. } | Self::Outside { .. } => 404,
            Self::OutOfRange { .. } => 416,
            Self::Unsupported { .. } => 501,
            Self::Timeout { .. } => 504,
            Self::Io { .. } => 500,
            // The origin's refusal of our credentials says nothing about the client's.
            Self::Forbidden { .. } => 403,
            Self::Status { code: 429 | 503, .. } => 503,
            // The client's own path made the target too long for the origin (RFC 9110 15.5.15).
            Self::Status { code: 414, .. } => 414,
            Self::Changed { .. }
            | Self::Unauthorized { .. }
            | Self::Credentials { .. }
            | Self::NoSuchBucket { .. }
            | Self::RangeIgnored { .. }
            | Self::BadReply { .. }
            | Self::Unplayable { .. }
            | Self::Truncated { .. }
            | Self::Status { .. }
            | Self::Dns { .. }
            | Self::Tls { .. }
            | Self::Connect { .. }
            | Self::Redirect { .. } => 502,
            // The object is there, whatever its store says about the unit.
            Self::Unit { last, .. } => match last.status() {
                status @ (503 | 504) => status,
                _ => 502,
            },
            Self::TooManyRetries { last, .. } => last.status(),
        }
    }

    /// Describes the error for viewers. The text never has the location of the origin, which is for operators.
    pub fn for_viewers(&self) -> String {
        match self {
            Self::Unplayable { reason, .. } => reason.clone(),
            Self::Unsupported { what, .. } => format!("{what} is not possible here"),
            // A symbolic link that leads out of the place has the words of a missing file, so that clients can't tell the two apart.
            error if error.status() == 404 => "no such file".to_owned(),
            error => format!("the storage failed: {}", error.kind()),
        }
    }

    /// Returns whether the object has another version than the one opened.
    pub fn is_changed(&self) -> bool {
        matches!(self, Self::Changed { .. })
    }

    /// Returns whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_numbered_as_listed() {
        for (number, kind) in ErrorKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number, "{kind}");
        }
    }

    #[test]
    fn an_error_says_where_and_what_to_do() {
        let at = At::new("https://media.example/films", "a/b.mp4");
        let busy = OriginError::Status { at: at.clone(), code: 503, detail: "try later".into() };
        assert!(busy.is_retryable());
        assert_eq!(busy.status(), 503);
        let gone = OriginError::NotFound { at };
        assert!(!gone.is_retryable());
        assert_eq!(gone.status(), 404);
        assert_eq!(gone.to_string(), "a/b.mp4 in https://media.example/films: not found");
        let last = OriginError::TooManyRetries { tries: 3, last: Box::new(busy) };
        assert!(!last.is_retryable());
        assert_eq!((last.status(), last.kind()), (503, ErrorKind::Status));
        let gone = OriginError::NotFound { at: At::new("s3://a", "stripe-0/0000000017") };
        let unit = OriginError::Unit { at: At::new("/films", "a.mp4"), unit: 17, last: Box::new(gone) };
        assert_eq!(unit.to_string(), "a.mp4 in /films: unit 17: stripe-0/0000000017 in s3://a: not found");
        assert!(unit.status() == 502 && !unit.is_not_found() && !unit.is_retryable() && !unit.may_pass());
    }

    #[test]
    fn viewers_read_no_location() {
        let at = || At::new("s3://secret/films", "a.mp4");
        let detail = || "secret".to_owned();
        let status = || OriginError::Status { at: at(), code: 500, detail: detail() };
        for (error, expected) in [
            (OriginError::NotFound { at: at() }, "no such file"),
            (OriginError::Outside { at: at() }, "no such file"),
            (OriginError::Connect { at: at(), detail: detail() }, "the storage failed: connect"),
            (status(), "the storage failed: status"),
            (OriginError::TooManyRetries { tries: 3, last: Box::new(status()) }, "the storage failed: status"),
            (OriginError::Unsupported { at: at(), what: "seeking" }, "seeking is not possible here"),
            (OriginError::Unplayable { at: at(), reason: "it changes at 9 s".to_owned() }, "it changes at 9 s"),
        ] {
            assert_eq!(error.for_viewers(), expected, "{error}");
        }
    }
}
