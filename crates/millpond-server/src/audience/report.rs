//! Viewers as operators see them.

use super::{ViewerKey, blocks::About};
use std::{fmt, time::Duration};

/// A viewer of HTTP, or a long response.
#[derive(Clone, Debug)]
pub(crate) struct ViewerReport {
    /// Sorts reports: viewers first, then long responses.
    pub(super) key: (u8, u64),
    /// Id, which clients of the API use.
    pub(crate) id: String,
    /// Whether it is a long response.
    pub(crate) is_long: bool,
    /// Client, program and asset.
    pub(crate) about: About,
    /// Its state.
    pub(crate) state: ViewerState,
    /// Time of its first request, in seconds since the Unix epoch.
    pub(crate) started: f64,
    /// Time of its last activity, in seconds since the Unix epoch.
    pub(crate) last: f64,
    /// Number of its requests; `None` for a long response.
    pub(crate) requests: Option<u64>,
    /// Bytes that it was sent.
    pub(crate) bytes: u64,
    /// Bits a second.
    pub(crate) bps: u64,
}

/// State of a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViewerState {
    /// It made a request within the last 10 s.
    Active,
    /// It made none.
    Idle,
    /// It receives a long response.
    Sending,
}

/// A viewer whose responses were ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kicked {
    /// Its id.
    pub(crate) id: String,
    /// End of the time for which its requests are refused, since the Unix epoch.
    pub(crate) until: Duration,
}

impl ViewerState {
    /// Returns its name in the API.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Idle => "idle",
            Self::Sending => "sending",
        }
    }
}

impl fmt::Display for ViewerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "h-{:016x}", self.0)
    }
}
