//! Frames and cues of another stream: their times are stream times already.

use super::Assembly;
use crate::{clock::Wrapped, epoch::EpochReason};
use millpond_package::live::Cue;

impl Assembly {
    /// Tells whether the times of the next session are stream times of another stream, which need no correction.
    pub(in crate::reception) fn set_steady(&mut self, is_steady: bool) {
        self.is_steady = is_steady;
    }

    /// Begins an epoch with the next frame. Its times go on.
    pub(in crate::reception) fn split(&mut self, reason: EpochReason) {
        self.timeline.split(reason);
    }

    /// Tells a cue of another stream. `at` is its time on the clock of the leading track.
    pub(in crate::reception) fn pass_cue(&self, cue: &Cue, at: Wrapped) {
        if let Some(at) = self.timeline.locate(Some(at)) {
            self.reporter.cue(Cue { at, ..cue.clone() });
        }
    }
}
