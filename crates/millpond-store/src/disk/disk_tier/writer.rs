//! The thread that writes slices to the disk.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use tokio::time::Instant;

use super::{DiskTier, Inner, REST, SlotState};
use crate::disk::named::Named;
use crate::disk::slab;
use crate::policy::Item;
use crate::slice::Slice;

/// A slice to write.
pub(super) struct Job {
    pub(super) item: Item,
    pub(super) of: Arc<Named>,
    pub(super) slice: Arc<Slice>,
    /// Whether its object was purged after its bytes were requested.
    pub(super) purged: Box<dyn Fn() -> bool + Send>,
    pub(super) then: Box<dyn FnOnce() + Send>,
}

/// Writes the slices of the queue until the tier or the queue ends.
pub(super) fn write_all(jobs: &Receiver<Job>, tier: &std::sync::Weak<DiskTier>) {
    while let Ok(job) = jobs.recv() {
        let Some(tier) = tier.upgrade() else { return };
        if tier.write(&job) {
            (job.then)();
        }
    }
}

impl DiskTier {
    /// Writes a slice: reserves a slot, fills it, and then makes it visible.
    fn write(&self, job: &Job) -> bool {
        let resting = |inner: &Inner| inner.failure.as_ref().is_some_and(|(at, _)| at.elapsed() < REST);
        let now = self.now();
        let mut gone = Vec::new();
        let mut inner = self.lock();
        if inner.is_left || resting(&inner) || inner.ledger.find(job.item.key).is_some() {
            return false;
        }
        let slot = inner.ledger.insert(job.item, now, &mut gone).ok();
        if let Some(slot) = slot {
            inner.states[slot as usize] = SlotState::Writing;
            inner.ledger.pin(slot);
        }
        drop(inner);
        for (other, item) in gone.into_iter().filter(|(other, _)| Some(*other) != slot) {
            self.free(other, item.key);
        }
        let Some(slot) = slot else { return false };
        if self.slabs.is_cut(slot) {
            self.give_up_slab(slot);
        }
        let Item { key, object, index, of, .. } = job.item;
        let name = job.of.name();
        let slice = slab::NewSlice { key, object, index, of, name: &name };
        let result = self.slabs.write(slot, &slice, job.slice.pieces());
        let mut inner = self.lock();
        // Its name is on the disk: a purge that is not seen here finds the slice.
        let is_kept = result.as_ref().is_ok_and(|file| self.slabs.is_current(slot, file)) && !(job.purged)();
        match &result {
            // The slab was truncated meanwhile, or the object purged, which is no failure of the disk.
            Ok(_) if !is_kept => drop(inner.ledger.remove(job.item.key)),
            Ok(_) => {
                inner.failure = None;
                inner.states[slot as usize] = SlotState::Ready { proven: now, used: now };
                inner.keep(slot);
                self.written.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                self.errors.fetch_add(1, Ordering::Relaxed);
                if inner.failure.is_none() {
                    tracing::error!(%error, "the disk cache is left alone for a while");
                }
                inner.failure = Some((Instant::now(), error.to_string()));
                inner.ledger.remove(job.item.key);
            }
        }
        if let Some(key) = inner.ledger.unpin(slot) {
            drop(inner);
            self.free(slot, key);
        }
        is_kept
    }
}
