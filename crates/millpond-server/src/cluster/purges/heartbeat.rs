//! Pauses of this process, such as by SIGSTOP or a machine that sleeps: what happened meanwhile is not known yet.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Interval between beats.
pub(super) const BEAT: Duration = Duration::from_millis(250);
/// Time without a beat after which the process counts as having paused. It is shorter than the time for which a purge waits for the nodes:
/// a node that paused for less is waited for.
const PAUSE: Duration = Duration::from_millis(1500);

/// The last beat of a task of this process.
#[derive(Debug, Default)]
pub(super) struct Heartbeat(AtomicU64);

impl Heartbeat {
    /// Notes a beat.
    pub(super) fn beat(&self, now: Duration) {
        self.0.store(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Whether the process has paused since its last beat.
    pub(super) fn has_paused(&self, now: Duration) -> bool {
        now.saturating_sub(Duration::from_millis(self.0.load(Ordering::Acquire))) > PAUSE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_beats_has_paused() {
        let (heartbeat, at) = (Heartbeat::default(), Duration::from_millis);
        assert!(!heartbeat.has_paused(at(1500)) && heartbeat.has_paused(at(1501)));
        heartbeat.beat(at(5000));
        assert!(!heartbeat.has_paused(at(6500)) && !heartbeat.has_paused(at(4000)) && heartbeat.has_paused(at(6501)));
    }
}
