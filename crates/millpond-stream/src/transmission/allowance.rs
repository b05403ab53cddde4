//! Whether the next frame of a live stream may leave.

use super::{ROUND, TrackSender};
use crate::outlet::Backlog;
use std::time::Instant;

/// Whether the next frame of a track may leave. A frame without allowance waits in its viewer's queue, and can still be dropped
/// there in favour of other frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allowance {
    Now,
    /// It is asked again at this time.
    Later(Instant),
}

impl Allowance {
    /// The allowance of a track's outlet.
    pub(super) fn of(track: &TrackSender, now: Instant) -> Self {
        match track.outlet.backlog() {
            Backlog::Medium | Backlog::High => Self::Later(now + ROUND),
            // It is found out that nothing can be sent.
            Backlog::Low | Backlog::Stuck => Self::Now,
        }
    }
}
