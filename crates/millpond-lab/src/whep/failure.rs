//! Causes of failed viewers.

use std::fmt;

/// Cause of a failed viewer, as reports count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FailureKind {
    /// The offer got no reply.
    Request,
    /// The server refused the offer with this status.
    Status(u16),
    /// The answer lacks what it must have.
    Answer,
    /// This machine has no free port or descriptor.
    Ports,
    /// No check of ICE was answered.
    Checks,
    /// DTLS failed.
    Handshake,
    /// No packet followed the handshake.
    NoMedia,
    /// Packets stopped.
    Stopped,
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request => f.write_str("request"),
            Self::Status(code) => write!(f, "status {code}"),
            Self::Answer => f.write_str("answer"),
            Self::Ports => f.write_str("no ports"),
            Self::Checks => f.write_str("no answer to checks of ICE"),
            Self::Handshake => f.write_str("handshake of DTLS"),
            Self::NoMedia => f.write_str("no media"),
            Self::Stopped => f.write_str("media stopped"),
        }
    }
}

/// One failed viewer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) detail: String,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, why: impl fmt::Display) -> Self {
        Self { kind, detail: why.to_string() }
    }
}
