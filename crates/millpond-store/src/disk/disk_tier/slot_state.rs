//! The state of a slot: whether its bytes are there, and when they were last compared.

use crate::policy::Time;

/// Time without readers after which a slice is compared with its checksum before its next use, in milliseconds.
const UNREAD: Time = 3600 * 1000;

/// State of the bytes of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SlotState {
    #[default]
    Writing,
    /// In a truncated slab, to be removed.
    Lost,
    /// Written by an earlier run, not compared yet.
    Found,
    /// Compared with its checksum, or written, and used since.
    Ready { proven: Time, used: Time },
}

impl SlotState {
    /// Returns whether all bytes are there.
    pub(super) fn is_whole(self) -> bool {
        !matches!(self, Self::Writing | Self::Lost)
    }

    /// Returns whether the bytes can be used without a comparison: they were compared recently, or are read
    /// continuously, and the background pass compares them.
    pub(super) fn is_usable(self, now: Time) -> bool {
        matches!(self, Self::Ready { used, .. } if now.saturating_sub(used) < UNREAD)
    }

    /// Returns whether the bytes were compared recently.
    pub(super) fn is_proven(self, now: Time) -> bool {
        matches!(self, Self::Ready { proven, .. } if now.saturating_sub(proven) < UNREAD)
    }
}
