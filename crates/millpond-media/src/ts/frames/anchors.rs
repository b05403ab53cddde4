//! Timestamps of PES packets, and the bytes that they apply to.

use super::super::event::PesUnit;
use std::collections::VecDeque;

/// Times of the first frame that begins at a position or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    /// Position in the stream's bytes.
    at: u64,
    pub(super) pts: u64,
    pub(super) dts: u64,
}

/// Timestamps that were not used yet.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    anchors: VecDeque<Anchor>,
}

impl Anchors {
    /// Takes the times of a unit whose first byte is at `at`.
    pub(super) fn push(&mut self, at: u64, unit: &PesUnit) {
        let Some(pts) = unit.pts else { return };
        // Empty units would grow the queue.
        self.anchors.pop_back_if(|last| last.at == at);
        self.anchors.push_back(Anchor { at, pts, dts: unit.dts.unwrap_or(pts) });
    }

    /// Returns the times of a frame that begins at `at`. These are its unit's times, unless another frame of the unit has taken
    /// them.
    pub(super) fn take(&mut self, at: u64) -> Option<Anchor> {
        let mut found = None;
        while let Some(anchor) = self.anchors.pop_front_if(|first| first.at <= at) {
            found = Some(anchor);
        }
        found
    }

    /// Forgets all times.
    pub(super) fn clear(&mut self) {
        self.anchors.clear();
    }
}
