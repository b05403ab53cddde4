//! Slices on the disk: their ledger, the pins of their readers, and the thread that writes them.
//!
//! A slice is compared with its checksum before its first use after a start, and before its next use after an hour without
//! readers. The whole disk is also checked in the background, again and again (see `scrub`). A slice that differs is dropped,
//! counted and fetched again.

mod kept;
mod pin;
mod scrub;
mod slot_state;
mod writer;

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::{
    disk::{
        named::Named,
        slab::{HeldObject, ObjectName, SlabError, Slabs, StoredSlice},
    },
    policy::{Item, Ledger, LedgerCounters, PolicyName, Slot, Time},
    slice::Slice,
    tags::ObjectTags,
};

use kept::KeptSlices;
pub(crate) use pin::DiskSlice;
pub use pin::Pin;
use pin::Pinned;
use slot_state::SlotState;
use writer::{Job, write_all};

/// Time for which the disk is not used after a failure.
const REST: Duration = Duration::from_secs(10);

/// Counters of the disk tier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskStats {
    /// Counters of the ledger. Each slice counts as a whole slot.
    pub ledger: LedgerCounters,
    /// Capacity for slices, in bytes.
    pub capacity: u64,
    /// The eviction policy.
    pub policy: PolicyName,
    /// Slices written.
    pub written: u64,
    /// Slices that were not written because too many were waiting.
    pub passed_over: u64,
    /// Failed writes and reads. The cache continued without the disk.
    pub errors: u64,
    /// Slices whose bytes differed from those written, or were missing.
    pub damaged: u64,
    /// Slices compared with their checksum.
    pub verified: u64,
    /// Objects whose tags were not written, because too many objects have tags.
    pub untagged: u64,
    /// The last failure, while the disk is not used because of it.
    pub failure: Option<String>,
}

/// Slices in slab files, under a ledger.
pub(crate) struct DiskTier {
    slabs: Slabs,
    place: u32,
    inner: Mutex<Inner>,
    queue: SyncSender<Job>,
    started: Instant,
    written: AtomicU64,
    passed_over: AtomicU64,
    errors: AtomicU64,
    damaged: AtomicU64,
    verified: AtomicU64,
}

struct Inner {
    ledger: Ledger,
    policy: PolicyName,
    states: Vec<SlotState>,
    /// Slices that an operator has pinned.
    kept: KeptSlices,
    /// Time and text of the last failure.
    failure: Option<(Instant, String)>,
    /// Whether the folder is being given up: nothing is read and written any more.
    is_left: bool,
}

impl DiskTier {
    /// Opens or creates slab files in a folder, of at most `quota` bytes in all. At most `waiting` complete slices wait
    /// to be written. On a slow disk further ones are not written.
    pub(crate) fn open(
        folder: &Path,
        quota: u64,
        slice: u32,
        policy: PolicyName,
        waiting: usize,
    ) -> Result<Arc<Self>, SlabError> {
        let (slabs, found) = Slabs::open(folder, quota, slice)?;
        let mut ledger = Ledger::new(u64::from(slabs.slots()) * u64::from(slice), policy);
        let mut states = vec![SlotState::Writing; slabs.slots() as usize];
        let item = |found: &StoredSlice| Item {
            key: found.key,
            object: found.object,
            index: found.index,
            of: found.of,
            size: slice,
        };
        ledger.restore(found.iter().map(|found| (found.slot, item(found))));
        for found in &found {
            states[found.slot as usize] = SlotState::Found;
        }
        let (queue, jobs) = sync_channel(waiting);
        let tier = Arc::new(Self {
            slabs,
            place: slice,
            inner: Mutex::new(Inner {
                ledger,
                policy,
                states,
                kept: KeptSlices::default(),
                failure: None,
                is_left: false,
            }),
            queue,
            started: Instant::now(),
            written: AtomicU64::new(0),
            passed_over: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            damaged: AtomicU64::new(0),
            verified: AtomicU64::new(0),
        });
        let start = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let thread = std::thread::Builder::new().name(name.into());
            thread.spawn(work).map_err(SlabError::of(folder, "starting a thread", 0))
        };
        let writer = Arc::downgrade(&tier);
        start("slab-writer", Box::new(move || write_all(&jobs, &writer)))?;
        let scrubber = Arc::downgrade(&tier);
        start("slab-scrub", Box::new(move || scrub::scrub(&scrubber)))?;
        Ok(tier)
    }
}

impl DiskTier {
    /// Returns a complete slice, and counts a use of it.
    pub(crate) fn get(self: &Arc<Self>, item: &Item, len: u64) -> Option<DiskSlice> {
        let now = self.now();
        let mut inner = self.lock();
        if inner.is_left {
            return None;
        }
        if let Some(slot) = inner.ledger.find(item.key)
            && !inner.states[slot as usize].is_whole()
        {
            return None;
        }
        let slot = inner.ledger.ask(&Item { size: self.place, ..*item }, now)?;
        inner.ledger.pin(slot);
        let state = &mut inner.states[slot as usize];
        let proven = state.is_usable(now);
        if let SlotState::Ready { used, .. } = state
            && proven
        {
            *used = now;
        }
        // Under the lock: a new file, without these bytes, appears only after the slot was marked as lost.
        let location = self.slabs.location(slot);
        drop(inner);
        let pin = Pin(Arc::new(Pinned { tier: self.clone(), slot, key: item.key }));
        let (file, start) = location.ok()?;
        Some(DiskSlice { pin, file, range: start..start + len, proven })
    }

    /// Counts a viewer that begins to read a slice, whether it is on the disk or not. `enters` says whether it begins
    /// with the first byte.
    pub(crate) fn read(&self, item: &Item, enters: bool) {
        let now = self.now();
        self.lock().ledger.read(item, enters, now);
    }

    /// Returns whether a slice can be read.
    pub(crate) fn contains(&self, key: u64) -> bool {
        let inner = self.lock();
        !inner.is_left && inner.ledger.find(key).is_some_and(|slot| inner.states[slot as usize].is_whole())
    }

    /// Queues a slice for writing. It is not kept where it is `purged` when its bytes have been written. Calls `then` once it can be read
    /// from the disk.
    pub(crate) fn store(
        &self,
        item: Item,
        (of, slice): (Arc<Named>, Arc<Slice>),
        purged: Box<dyn Fn() -> bool + Send>,
        then: Box<dyn FnOnce() + Send>,
    ) {
        if !of.lasting {
            return;
        }
        let item = Item { size: self.place, ..item };
        match self.queue.try_send(Job { item, of, slice, purged, then }) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.passed_over.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Stops reading and writing, and unlocks the folder when no read or write is in progress. Returns whether it is unlocked.
    pub(crate) fn leave(&self) -> bool {
        let mut inner = self.lock();
        inner.is_left = true;
        // Those of the operator are no readers.
        for slot in std::mem::take(&mut inner.kept).slots() {
            inner.ledger.unpin(slot);
        }
        let is_unused = inner.ledger.counters().pinned == 0;
        drop(inner);
        is_unused && self.slabs.unlock()
    }

    /// Removes a slice.
    pub(crate) fn remove(&self, key: u64) -> bool {
        let mut inner = self.lock();
        if inner.is_left {
            return false;
        }
        let Some((slot, mut is_free)) = inner.ledger.remove(key) else { return false };
        if inner.kept.forget(slot) {
            is_free |= inner.ledger.unpin(slot).is_some();
        }
        drop(inner);
        if is_free {
            self.free(slot, key);
        }
        true
    }

    /// Removes all slices that are unwanted. Returns their number.
    pub(crate) fn purge(&self, unwanted: impl Fn(&Item) -> bool) -> usize {
        let items = self.lock().ledger.items().map(|(_, item)| *item).collect::<Vec<_>>();
        items.iter().filter(|item| unwanted(item)).filter(|item| self.remove(item.key)).count()
    }

    /// Removes all slices of unwanted objects. Returns their number.
    pub(crate) fn purge_objects(&self, unwanted: impl Fn(&ObjectName) -> bool) -> usize {
        let held = self.objects().into_iter().filter(|held| unwanted(&held.name));
        let hashes: HashSet<u64> = held.map(|held| held.hash).collect();
        if hashes.is_empty() { 0 } else { self.purge(|item| hashes.contains(&item.object)) }
    }

    /// Writes the tags of an object that has slices here, if it was written with others. May block on the disk.
    pub(crate) fn tag(&self, object: u64, tags: &ObjectTags) {
        if self.lock().is_left {
            return;
        }
        if let Err(error) = self.slabs.tag(object, tags) {
            self.errors.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(%error, "the tags of an object are not written");
        }
    }

    /// Returns whether an object has slices here, and was written with other tags.
    pub(crate) fn has_other_tags(&self, object: u64, tags: &ObjectTags) -> bool {
        self.slabs.has_other_tags(object, tags)
    }

    /// Returns all objects with slices on the disk.
    pub(crate) fn objects(&self) -> Vec<HeldObject> {
        self.slabs.objects()
    }

    /// Returns whether the disk has a slice of any version of an object.
    pub(crate) fn knows(&self, place: &str, path: &str) -> bool {
        self.slabs.knows(place, path)
    }

    /// Returns the name of an object, all of whose slices are there.
    pub(crate) fn whole(&self, place: &str, path: &str) -> Option<ObjectName> {
        self.slabs.whole(place, path)
    }

    /// Drops a slice whose bytes are damaged or missing. Where the file was truncated, drops all slices of its slab.
    /// The caller holds a pin, so that the slot still belongs to the slice.
    fn drop_damaged(&self, slot: Slot, key: u64) {
        if self.lock().ledger.find(key) != Some(slot) {
            // Another reader has handled it already.
            return;
        }
        self.damaged.fetch_add(1, Ordering::Relaxed);
        let (file, offset) = self.slabs.place(slot);
        tracing::error!(file = %file.display(), offset, "a slice of the disk cache is damaged: it is fetched again");
        if self.slabs.is_cut(slot) {
            self.give_up_slab(slot);
        }
        self.remove(key);
    }

    /// Drops all slices of a truncated slab, then replaces its file. In the other order a reader would find the slices
    /// in the ledger and zeros in the file.
    fn give_up_slab(&self, slot: Slot) {
        let mut inner = self.lock();
        if !self.slabs.is_cut(slot) {
            // Another thread has replaced it already.
            return;
        }
        let mut keys = Vec::new();
        for slot in self.slabs.neighbours(slot) {
            if inner.states[slot as usize].is_whole() {
                inner.states[slot as usize] = SlotState::Lost;
                keys.extend(inner.ledger.item(slot).map(|item| item.key));
            }
        }
        // Also under the lock: a slice that is being written notices afterwards that its file was replaced.
        let renewed = self.slabs.renew(slot);
        drop(inner);
        if let Err(error) = renewed {
            self.errors.fetch_add(1, Ordering::Relaxed);
            tracing::error!(%error, "a slab of the disk cache was truncated and can't be recreated");
        }
        let lost = keys.iter().filter(|key| self.remove(**key)).count();
        let (file, _) = self.slabs.place(slot);
        tracing::error!(file = %file.display(), lost, "a slab of the disk cache was truncated: it is recreated, empty");
    }

    /// Returns whether a slot's bytes match their checksum. The caller holds a pin on it. May block on the disk.
    fn prove(&self, slot: Slot) -> bool {
        let sound = self.slabs.verify(slot);
        self.verified.fetch_add(1, Ordering::Relaxed);
        if sound {
            let now = self.now();
            let state = &mut self.lock().states[slot as usize];
            if state.is_whole() {
                *state = SlotState::Ready { proven: now, used: now };
            }
        }
        sound
    }

    /// Changes the policy. Slices stay.
    pub(crate) fn set_policy(&self, policy: PolicyName) {
        let now = self.now();
        let mut inner = self.lock();
        inner.policy = policy;
        inner.ledger.set_policy(policy, now);
    }

    /// Changes the used part of the files, in bytes, up to the quota that they were opened with.
    pub(crate) fn set_capacity(&self, bytes: u64) {
        let most = u64::from(self.slabs.slots()) * u64::from(self.place);
        let mut gone = Vec::new();
        let now = self.now();
        let mut inner = self.lock();
        if !inner.is_left {
            inner.ledger.resize(bytes.min(most), now, &mut gone);
        }
        drop(inner);
        for (slot, item) in gone {
            self.free(slot, item.key);
        }
    }

    pub(crate) fn stats(&self) -> DiskStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let inner = self.lock();
        DiskStats {
            ledger: inner.ledger.counters(),
            capacity: inner.ledger.capacity(),
            policy: inner.policy,
            written: read(&self.written),
            passed_over: read(&self.passed_over),
            errors: read(&self.errors),
            damaged: read(&self.damaged),
            verified: read(&self.verified),
            untagged: self.slabs.untagged(),
            failure: inner.failure.as_ref().map(|(_, why)| why.clone()),
        }
    }

    fn free(&self, slot: Slot, key: u64) {
        if self.slabs.free(slot, key).is_err() {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn unpin(&self, slot: Slot) {
        let freed = self.lock().ledger.unpin(slot);
        if let Some(key) = freed {
            self.free(slot, key);
        }
    }

    fn now(&self) -> Time {
        self.started.elapsed().as_millis() as Time
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for DiskTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskTier").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
