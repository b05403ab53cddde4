//! The beginning that a viewer missed, and how it catches up with a phase.

use super::Broadcast;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Distance to a phase at which a viewer has joined it: the phase's frames are in memory.
pub const JOINED: Duration = Duration::from_secs(2);

/// The part of a title that is sent to one viewer alone, faster than it plays, until the viewer has joined a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Patch {
    /// Time of the title by which the phase is ahead at first.
    pub lead: Duration,
    /// Speed of sending, as a multiple of the pace of playing.
    pub speed: f64,
}

impl Patch {
    /// Returns the time until the viewer has joined the phase; `None` where it never does.
    #[must_use]
    pub fn time(self) -> Option<Duration> {
        let missing = self.lead.saturating_sub(JOINED);
        if missing.is_zero() {
            return Some(Duration::ZERO);
        }
        (self.speed > 1.0).then(|| missing.div_f64(self.speed - 1.0))
    }

    /// Returns the duration of the title's part that is sent meanwhile; `None` where it has no end.
    #[must_use]
    pub fn length(self) -> Option<Duration> {
        Some(self.time()?.mul_f64(self.speed))
    }
}

/// A viewer that catches up with a phase.
#[derive(Clone, Debug)]
pub(crate) struct CatchUp {
    pub(super) broadcast: Arc<Broadcast>,
    pub(super) phase: u16,
}

impl CatchUp {
    /// Returns whether a viewer that has reached a time of the title has joined the phase. The phase is also left where it stopped
    /// or began again.
    pub(crate) fn is_over(&self, reached: Duration, now: Instant) -> bool {
        let phase = self.broadcast.position(self.phase, now);
        phase.is_none_or(|phase| phase <= reached + JOINED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_is_longer_than_what_was_missed_because_the_phase_goes_on() {
        let patch = |lead, speed| Patch { lead: Duration::from_secs(lead), speed };
        assert_eq!(patch(62, 2.0).time(), Some(Duration::from_secs(60)));
        assert_eq!(patch(62, 2.0).length(), Some(Duration::from_secs(120)));
        assert_eq!(patch(62, 4.0).length(), Some(Duration::from_secs(80)));
        assert_eq!(patch(2, 1.0).length(), Some(Duration::ZERO));
        assert_eq!(patch(62, 1.0).length(), None);
    }
}
