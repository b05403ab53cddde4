//! Failures of upstream sources.

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
    /// It has a stored title under that name, where a live stream was asked for.
    StoredTitle,
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
}
