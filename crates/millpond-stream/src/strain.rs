//! How hard it is for a reader to take frames.

use std::time::Duration;

/// How hard it is to send frames to a viewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Strain {
    /// Time of the frames that wait.
    pub(crate) waits: Duration,
    /// Frames that were dropped so far.
    pub(crate) dropped: u64,
    /// Number of reports so far in which a UDP receiver missed many packets.
    pub(crate) losses: u64,
}
