//! Comparing the slices of the disk with their checksums in the background: a thread of the lowest priority that reads
//! 4 MiB a second at most, so that 100 GiB take seven hours.

use std::sync::Weak;
use std::thread;
use std::time::Duration;

use super::{DiskTier, Pin, Pinned};
use crate::policy::Slot;
use std::sync::Arc;

/// Bytes read in a second.
const RATE: u64 = 4 << 20;
/// A start has better things to do.
const FIRST: Duration = Duration::from_secs(10);
/// Pause where there is nothing to compare.
const IDLE: Duration = Duration::from_secs(1);
/// Slots looked at in one step.
const STEP: usize = 4096;
/// As little as can be (setpriority(2)), where it may be asked for.
const NICENESS: i32 = 19;

/// Checks the whole disk again and again, while there is a disk.
pub(super) fn scrub(tier: &Weak<DiskTier>) {
    // Of this thread alone, on Linux.
    let _ = rustix::process::setpriority_process(None, NICENESS);
    let mut slot = 0;
    let mut pause = FIRST;
    loop {
        thread::sleep(pause);
        let Some(tier) = tier.upgrade() else { return };
        let read;
        (slot, read) = tier.scrub_step(slot);
        pause = if read == 0 { IDLE } else { Duration::from_secs_f64(read as f64 / RATE as f64) };
    }
}

impl DiskTier {
    /// Compares the next slice from a slot on that was not proven lately. Returns where to go on, and the bytes read.
    pub(crate) fn scrub_step(self: &Arc<Self>, from: Slot) -> (Slot, u64) {
        let now = self.now();
        let mut inner = self.lock();
        if inner.is_left {
            return (from, 0);
        }
        let count = inner.states.len();
        let start = if (from as usize) < count { from as usize } else { 0 };
        let end = (start + STEP).min(count);
        let is_due = |slot: &usize| {
            let state = inner.states[*slot];
            state.is_whole() && !state.is_proven(now) && inner.ledger.item(*slot as Slot).is_some()
        };
        let Some(slot) = (start..end).find(is_due).map(|slot| slot as Slot) else { return (end as Slot, 0) };
        let Some(key) = inner.ledger.item(slot).map(|item| item.key) else { return (end as Slot, 0) };
        inner.ledger.pin(slot);
        drop(inner);
        let pin = Pin(Arc::new(Pinned { tier: self.clone(), slot, key }));
        if !self.prove(slot) {
            pin.drop_damaged();
        }
        (slot + 1, u64::from(self.place))
    }
}
