//! Slices: the fixed-size byte ranges in which objects are cached.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::disk::disk_tier::{DiskSlice, DiskTier};
use crate::disk::named::Named;
use crate::lookups::{Found, LookupTimes, Lookups};
use crate::memory::cache::Cache;
use crate::memory::hold::{Hold, Holds};
use crate::memory::{CacheCounters, Memory};
use crate::policy::Item;
use crate::purge_log::{PurgeLog, PurgeMark};
use crate::slice::{Slice, SliceId};

/// Bytes of memory that a part of a slice takes besides its bytes.
const PART: u64 = 256;

/// Derived objects are made in the memory divided by this, all together: slices of their sources need the rest.
const MAKING_SHARE: u64 = 4;

/// A range of a derived object is made alone in the memory divided by this, at most.
const MAKING_SHARE_ALONE: u64 = 2;

/// Interval between attempts to hold memory. Others give memory back without a signal.
const MAKING_RETRY: Duration = Duration::from_millis(100);

/// All complete slices of a store, and the memory reserved for slices that are being filled.
///
/// A complete slice is in memory until it is on the disk, and longer without a disk. The kernel's page cache keeps
/// slices of the disk in memory.
#[derive(Debug)]
pub(crate) struct SliceCache {
    memory: Arc<Memory>,
    cache: Cache<SliceId, InMemory>,
    /// Slices of which only the beginning was fetched.
    parts: Cache<SliceId, InMemory>,
    /// Set at the start, or later when the first remote place is added.
    disk: OnceLock<Arc<DiskTier>>,
    /// Memory in which derived objects are made.
    making: Holds,
    /// Signalled when space may have become free.
    room: Notify,
    slice: u64,
    run: u64,
    flights: AtomicU64,
    lookups: Lookups,
    purges: Arc<PurgeLog>,
}

/// A complete slice in memory, with the name of its object.
#[derive(Clone, Debug)]
struct InMemory {
    slice: Arc<Slice>,
    of: Arc<Named>,
}

/// A complete slice, in memory or on the disk.
#[derive(Clone, Debug)]
pub(crate) enum Stored {
    Memory(Arc<Slice>),
    Disk(DiskSlice),
}

impl SliceCache {
    pub(crate) fn new(memory: Arc<Memory>, disk: Option<Arc<DiskTier>>, slice: u32, run: u64) -> Self {
        let slice = u64::from(slice).max(1);
        Self {
            cache: Cache::of(&memory, "slices"),
            parts: Cache::of(&memory, "parts"),
            making: Holds::of(&memory, "derived"),
            memory,
            disk: disk.map_or_else(OnceLock::new, OnceLock::from),
            room: Notify::new(),
            slice,
            run: run.max(slice),
            flights: AtomicU64::new(0),
            lookups: Lookups::default(),
            purges: Arc::default(),
        }
    }

    /// The last purges.
    pub(crate) fn purges(&self) -> &PurgeLog {
        &self.purges
    }

    /// Returns whether an object's bytes that were requested at `since` have been purged.
    pub(crate) fn is_purged(&self, since: PurgeMark, of: &Named) -> bool {
        self.purges.has_removed(since, of.into())
    }

    /// Returns a complete slice, and counts a use of it.
    pub(crate) fn get(&self, id: SliceId, of: &Named) -> Option<Stored> {
        let found = |stored: &Option<Stored>| match stored {
            Some(Stored::Memory(_)) => Found::Memory,
            Some(Stored::Disk(_)) => Found::Disk,
            None => Found::Absent,
        };
        self.lookups.time(|| self.look_up(id, of), found)
    }

    fn look_up(&self, id: SliceId, of: &Named) -> Option<Stored> {
        let item = self.item(id, of);
        if let Some(held) = self.cache.get_item(&id, &item) {
            return Some(Stored::Memory(held.slice));
        }
        self.disk()?.get(&item, u64::from(item.size)).map(Stored::Disk)
    }

    /// Counts a viewer that begins to read a slice, cached or not. `enters` says whether it begins with the first byte.
    /// The lasting tier learns from it.
    pub(crate) fn read(&self, id: SliceId, of: &Named, enters: bool) {
        let item = self.item(id, of);
        match self.disk() {
            Some(disk) => disk.read(&item, enters),
            None => self.memory.read(&item, enters),
        }
    }

    /// Returns whether there is a complete slice.
    pub(crate) fn contains(&self, id: SliceId) -> bool {
        self.cache.contains(&id) || self.disk().is_some_and(|disk| disk.contains(id.key()))
    }

    /// Returns the beginning of a slice, where it was fetched.
    pub(crate) fn part(&self, id: SliceId) -> Option<Arc<Slice>> {
        self.parts.get(&id).map(|held| held.slice)
    }

    /// Returns whether a slice is complete up to `offset`.
    pub(crate) fn reaches(&self, id: SliceId, offset: u64) -> bool {
        self.contains(id) || self.part(id).is_some_and(|part| part.filled() as u64 >= offset)
    }

    /// Keeps the beginning of a slice, so that the rest can be fetched alone.
    fn keep_part(&self, id: SliceId, of: &Arc<Named>, part: Arc<Slice>, since: PurgeMark) {
        let weight = part.filled() as u64 + PART;
        self.parts.insert(id, InMemory { slice: part, of: of.clone() }, weight);
        if self.is_purged(since, of) {
            drop(self.parts.remove(&id));
        }
    }

    /// Returns whether a complete slice is in memory.
    pub(crate) fn memory_contains(&self, id: SliceId) -> bool {
        self.cache.contains(&id)
    }

    /// Calls `each` with the object of every slice in memory.
    pub(crate) fn each_in_memory(&self, mut each: impl FnMut(u64, &Named)) {
        self.cache.each(|id, held| each(id.object, &held.of));
    }

    /// Removes the slices of unwanted objects from memory, and of those with a hash of `removed`, to which the others are added. Returns
    /// their number.
    pub(crate) fn purge_memory(&self, unwanted: impl Fn(&Named) -> bool, removed: &mut HashSet<u64>) -> usize {
        let mut objects = HashMap::new();
        let mut note = |of: &Arc<Named>| {
            objects.entry(Arc::as_ptr(of)).or_insert_with(|| of.clone());
        };
        self.parts.each(|_, held| note(&held.of));
        self.cache.each(|_, held| note(&held.of));
        // Names are compared once for each object, and without the lock, which viewers wait for.
        removed.extend(objects.values().filter(|of| unwanted(of)).map(|of| of.hash));
        self.parts.purge(|_, held| removed.contains(&held.of.hash));
        self.cache.purge(|_, held| removed.contains(&held.of.hash))
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    pub(crate) fn disk(&self) -> Option<&Arc<DiskTier>> {
        self.disk.get()
    }

    /// Adds a disk, unless there is one.
    pub(crate) fn set_disk(&self, disk: Arc<DiskTier>) {
        let _ = self.disk.set(disk);
    }

    pub(crate) fn lookup_times(&self) -> LookupTimes {
        self.lookups.snapshot()
    }

    pub(crate) fn counters(&self) -> CacheCounters {
        self.cache.counters()
    }

    fn item(&self, id: SliceId, of: &Named) -> Item {
        let size = self.range(id.index, of.len);
        let count = of.len.div_ceil(self.slice);
        Item {
            key: id.key(),
            object: id.object,
            index: u32::try_from(id.index).unwrap_or(u32::MAX),
            of: u32::try_from(count).unwrap_or(u32::MAX),
            size: (size.end - size.start) as u32,
        }
    }

    /// Returns the size of a slice in bytes.
    pub(crate) fn slice(&self) -> u64 {
        self.slice
    }

    /// Returns the byte range of slice `index` of an object of `len` bytes.
    pub(crate) fn range(&self, index: u64, len: u64) -> Range<u64> {
        let start = index.saturating_mul(self.slice).min(len);
        start..start.saturating_add(self.slice).min(len)
    }

    /// Returns the slices that contain a byte of a range.
    pub(crate) fn indexes(&self, range: &Range<u64>) -> Range<u64> {
        if range.is_empty() {
            return 0..0;
        }
        range.start / self.slice..(range.end - 1) / self.slice + 1
    }

    /// Returns by how many slices an origin request may be ahead of its readers now. Concurrent requests share a
    /// quarter of the memory, so that their slices are still there when a reader reaches them.
    pub(crate) fn run_slices(&self) -> u64 {
        let flights = self.flights.load(Ordering::Relaxed) + 1;
        let share = self.memory.budget() / 4 / flights;
        (self.run.min(share) / self.slice).max(1)
    }

    /// Returns by how many bytes an origin request may be ahead of its readers.
    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    /// Waits until memory for a slice of `len` bytes is reserved.
    ///
    /// The wait ends: each reservation is either filled, and its slice can be evicted, or released.
    pub(crate) async fn reserve(self: &Arc<Self>, len: u64) -> SliceReservation {
        loop {
            let mut room = std::pin::pin!(self.room.notified());
            room.as_mut().enable();
            if self.memory.reserve(len) {
                let slices = self.clone();
                return SliceReservation { slices, len };
            }
            room.await;
        }
    }

    /// Waits until `bytes` of memory are held, in which a range of a derived object is made.
    ///
    /// The wait ends: a flight reserves memory when its bytes are there, so no reservation waits for something that is being made.
    ///
    /// # Errors
    ///
    /// The most bytes that may be held, if these are more.
    pub(crate) async fn hold_for_making(self: &Arc<Self>, bytes: u64) -> Result<MakingRoom, u64> {
        loop {
            let budget = self.memory.budget();
            let most = budget / MAKING_SHARE_ALONE;
            if bytes > most {
                return Err(most);
            }
            let mut room = std::pin::pin!(self.room.notified());
            room.as_mut().enable();
            if let Some(hold) = self.making.try_take(bytes, bytes.max(budget / MAKING_SHARE)) {
                return Ok(MakingRoom { hold, slices: self.clone() });
            }
            let _ = timeout(MAKING_RETRY, room).await;
        }
    }

    /// Counts a request to an origin while the returned value lives.
    pub(crate) fn flight(self: &Arc<Self>) -> InFlight {
        self.flights.fetch_add(1, Ordering::Relaxed);
        InFlight(self.clone())
    }
}

/// Memory reserved for one slice that is being filled.
pub(crate) struct SliceReservation {
    slices: Arc<SliceCache>,
    len: u64,
}

impl SliceReservation {
    /// Releases the reservation, and keeps the beginning of the slice, unless it was purged after the request of `since`.
    pub(crate) fn keep_part(self, id: SliceId, of: &Arc<Named>, part: Arc<Slice>, since: PurgeMark) {
        let slices = self.slices.clone();
        drop(self);
        slices.keep_part(id, of, part, since);
    }

    /// Turns the reservation into a cached slice, which is also written to the disk if it is `storable`. It is not kept if it was purged
    /// after the request of `since`.
    pub(crate) fn fill(
        mut self,
        id: SliceId,
        of: &Arc<Named>,
        slice: Arc<Slice>,
        (storable, since): (bool, PurgeMark),
    ) {
        let len = std::mem::take(&mut self.len);
        let item = self.slices.item(id, of);
        drop(self.slices.parts.remove(&id));
        self.slices.cache.insert_item(id, InMemory { slice: slice.clone(), of: of.clone() }, item, len);
        if self.slices.is_purged(since, of) {
            drop(self.slices.cache.remove(&id));
            return;
        }
        if let Some(disk) = self.slices.disk().filter(|_| storable) {
            let (cache, purges, named) = (self.slices.cache.clone(), self.slices.purges.clone(), of.clone());
            let purged = Box::new(move || purges.has_removed(since, (&*named).into()));
            disk.store(item, (of.clone(), slice), purged, Box::new(move || drop(cache.remove(&id))));
        }
    }
}

impl Drop for SliceReservation {
    fn drop(&mut self) {
        self.slices.memory.release(self.len);
        self.slices.room.notify_waiters();
    }
}

/// Memory in which a range of a derived object is made.
#[derive(Debug)]
pub(crate) struct MakingRoom {
    hold: Hold,
    slices: Arc<SliceCache>,
}

impl Drop for MakingRoom {
    fn drop(&mut self) {
        self.hold.give_back();
        self.slices.room.notify_waiters();
    }
}

/// An origin request in progress.
pub(crate) struct InFlight(Arc<SliceCache>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.flights.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::ObjectMeta;
    use crate::path::ObjectPath;
    use crate::policy::PolicyName;
    use crate::version::Version;

    fn slices(budget: u64, slice: u32, run: u64) -> SliceCache {
        SliceCache::new(Memory::new(budget, PolicyName::Sieve), None, slice, run)
    }

    #[test]
    fn ranges_and_indexes() {
        let slices = slices(1000, 100, 300);
        assert_eq!(slices.range(2, 250), 200..250);
        assert_eq!(slices.range(3, 250), 250..250);
        assert_eq!(slices.range(u64::MAX, u64::MAX), u64::MAX..u64::MAX);
        assert_eq!(slices.indexes(&(0..100)), 0..1);
        assert_eq!(slices.indexes(&(99..101)), 0..2);
        assert_eq!(slices.indexes(&(5..5)), 0..0);
        assert_eq!(slices.run_slices(), 2, "a quarter of the memory");
    }

    #[tokio::test]
    async fn room_is_waited_for() {
        let slices = Arc::new(slices(400, 100, 100));
        let mut reservations = Vec::new();
        for _ in 0..4 {
            reservations.push(slices.reserve(100).await);
        }
        let waiting = tokio::spawn({
            let slices = slices.clone();
            async move { drop(slices.reserve(100).await) }
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!waiting.is_finished());
        let id = SliceId { object: 1, index: 0 };
        // A filled reservation can be evicted, so it frees space as well as a released one.
        let meta = ObjectMeta {
            len: 100,
            version: Version::new("1"),
            etag: None,
            modified: None,
            content_type: None,
            content_disposition: None,
            content_language: None,
            content_encoding: None,
            freshness: Default::default(),
            tags: Default::default(),
        };
        let of = Arc::new(Named::new(&Arc::from("p"), &ObjectPath::root(), &meta));
        reservations.pop().unwrap().fill(id, &of, Arc::default(), (true, PurgeMark::default()));
        waiting.await.unwrap();
        assert!(!slices.cache.contains(&id));
    }

    #[tokio::test]
    async fn derived_objects_are_made_in_a_share_of_the_memory() {
        let slices = Arc::new(slices(400, 100, 100));
        assert_eq!(slices.hold_for_making(201).await.unwrap_err(), 200, "half of the memory");
        let alone = slices.hold_for_making(200).await.unwrap();
        let waiting = tokio::spawn({
            let slices = slices.clone();
            async move { slices.hold_for_making(60).await.unwrap() }
        });
        let first = slices.reserve(100).await;
        drop(slices.reserve(100).await);
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!waiting.is_finished(), "slices find room beside it, and other makings wait");
        drop(alone);
        let next = waiting.await.unwrap();
        assert_eq!(slices.memory.used(), 160);
        drop((first, next));
        assert_eq!(slices.memory.used(), 0);
    }
}
