//! Times of sources that have their own: other streams, whose times are stream times already, and sources with dates.

use super::Assembly;
use crate::{clock::Wrapped, epoch::EpochReason};
use millpond_package::live::Cue;
use std::time::Duration;

impl Assembly {
    /// Tells whether the times of the next session are stream times of another stream, which need no correction.
    pub(in crate::reception) fn set_steady(&mut self, is_steady: bool) {
        self.is_steady = is_steady;
    }

    /// Tells that the next session begins for this reason. Timestamps have nothing to do with those before.
    pub(in crate::reception) fn restart(&mut self, reason: EpochReason) {
        self.timeline.restart(reason);
    }

    /// Takes the wall time of a track's next frame, as the source states it.
    pub(in crate::reception) fn date(&mut self, track: u16, timestamp: Wrapped, wall: Duration) {
        self.timeline.state_wall(track.into(), timestamp, wall);
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
