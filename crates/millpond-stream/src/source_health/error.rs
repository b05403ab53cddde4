//! Failures of upstream sources.

use std::{fmt, time::Instant};

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
    /// It has a stored title under that name, where a live stream was asked for.
    StoredTitle,
    /// It sends more than the memory of a stream allows.
    TooMuch,
    /// It is a phase of a title whose turn comes later.
    NotBegun {
        /// Moment at which it begins.
        begins: Instant,
    },
}

impl SourceErrorKind {
    /// Returns the seconds after which another attempt can succeed, rounded up and at least 1; `None` where they are not known.
    #[must_use]
    pub fn retry_after(self, now: Instant) -> Option<u64> {
        let Self::NotBegun { begins } = self else { return None };
        let left = begins.saturating_duration_since(now);
        Some((left.as_secs() + u64::from(left.subsec_nanos() > 0)).max(1))
    }
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
            SourceErrorKind::Unpublished | SourceErrorKind::NotBegun { .. } => self.words.clone(),
            _ => format!("the source of the stream failed: {}", self.words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn seconds_until_a_beginning_are_rounded_up() {
        let now = Instant::now();
        let wait = |millis| SourceErrorKind::NotBegun { begins: now + Duration::from_millis(millis) }.retry_after(now);
        assert_eq!([0, 200, 1000, 74_001].map(wait), [Some(1), Some(1), Some(1), Some(75)]);
        assert_eq!(SourceErrorKind::TimedOut.retry_after(now), None);
    }

    #[test]
    fn viewers_read_when_a_phase_begins() {
        let kind = SourceErrorKind::NotBegun { begins: Instant::now() };
        let words = "phase 2 of 4 begins in 75 s".to_owned();
        let error = SourceError { kind, address: "channel:films/a.mp4".to_owned(), words };
        assert_eq!(error.for_viewers(), "phase 2 of 4 begins in 75 s");
    }
}
