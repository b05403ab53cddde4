//! The contents of a store's cache, for operators: listing, explaining, removing and pinning.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::disk::slab::{HeldObject, ObjectName};
use crate::path::ObjectPath;
use crate::reading::object::Object;
use crate::schedule::LinkState;
use crate::selection::{Purge, Selections};
use crate::slices::SliceCache;
use crate::store::Store;

/// Slices of one version of an object that are cached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedObject {
    /// The place; empty where it has no name.
    pub place: String,
    /// The path inside the place.
    pub path: String,
    /// Its version.
    pub version: String,
    /// The object's length in bytes.
    pub len: u64,
    /// Its slices in memory.
    pub in_memory: u64,
    /// Its slices on the disk.
    pub on_disk: u64,
    /// Whether an operator has pinned it.
    pub pinned: bool,
    /// Bytes that readers got of complete slices, since the store first opened the object.
    pub hit_bytes: u64,
    /// Bytes that readers got as they arrived.
    pub miss_bytes: u64,
}

/// The source from which bytes of a range would be read now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    /// A local file, which is not cached.
    File,
    /// A complete slice in memory.
    Memory,
    /// A complete slice on the disk.
    Disk,
    /// On its way from the origin.
    Coming,
    /// Neither cached nor on its way: the origin is asked.
    Origin,
}

impl Whence {
    /// Returns its name in replies.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Coming => "coming",
            Self::Origin => "origin",
        }
    }
}

/// Measured cost of a request to an object's origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OriginLink {
    /// Bytes a second.
    pub bandwidth: f64,
    /// Time from a request to its first byte.
    pub delay: Duration,
    /// Time for which earlier requests keep the link busy.
    pub busy: Duration,
    /// Whether sibling caches are asked before the origin.
    pub siblings: bool,
}

impl Store {
    /// Returns the state of the link to an object's origin.
    pub fn origin_link(&self, object: &Object) -> OriginLink {
        let LinkState { estimate, busy, .. } = object.source().link();
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let siblings = object.source().origin.facts().has_neighbours;
        OriginLink { bandwidth: estimate.bandwidth, delay: seconds(estimate.delay), busy: seconds(busy), siblings }
    }

    /// Returns all objects of which a slice is cached, by place and path.
    pub fn cached(&self) -> Vec<CachedObject> {
        let slices = self.slices();
        let mut objects: BTreeMap<u64, CachedObject> = BTreeMap::new();
        let fresh = |object: u64, name: ObjectName| CachedObject {
            place: name.place.to_string(),
            path: name.path.to_string(),
            version: name.version.to_string(),
            len: name.len,
            in_memory: 0,
            on_disk: 0,
            pinned: slices.disk().is_some_and(|disk| disk.is_kept(object)),
            hit_bytes: 0,
            miss_bytes: 0,
        };
        slices.each_in_memory(|object, name| {
            objects.entry(object).or_insert_with(|| fresh(object, name.name())).in_memory += 1;
        });
        for HeldObject { hash, name, slices } in slices.disk().map(|disk| disk.objects()).unwrap_or_default() {
            objects.entry(hash).or_insert_with(|| fresh(hash, name)).on_disk += slices;
        }
        for (hash, cached) in &mut objects {
            let Ok(path) = ObjectPath::parse(&cached.path) else { continue };
            if let Some(object) = self.peek(&cached.place, &path).filter(|object| object.named().hash == *hash) {
                cached.hit_bytes = object.usage.hit_bytes.load(Ordering::Relaxed);
                cached.miss_bytes = object.usage.miss_bytes.load(Ordering::Relaxed);
            }
        }
        let mut all: Vec<_> = objects.into_values().collect();
        all.sort_by(|a, b| (&a.place, &a.path).cmp(&(&b.place, &b.path)));
        all
    }

    /// Removes all slices of objects, those on the disk once no reader streams them, and has their versions checked when they are opened
    /// next. A soft purge leaves the slices. Requests that began before do not bring slices back. Returns the number of removed slices.
    pub fn purge(&self, purges: &[Purge]) -> u64 {
        let slices = self.slices();
        // Before anything is removed: a slice that is inserted later is compared with the log.
        slices.purges().add(purges);
        let of = |is_soft: bool| {
            let chosen = purges.iter().filter(|purge| purge.is_soft == is_soft);
            Selections::new(chosen.map(|purge| &purge.selection))
        };
        let (removes, doubts) = (of(false), of(true));
        // An object is known by its last tags in one of three tables: whichever finds it, all of its slices are removed.
        let mut removed: HashSet<u64> = HashSet::new();
        self.forget(|object| removes.covers(object), |object| doubts.covers(object), &mut removed);
        if let Some(disk) = slices.disk() {
            let unwanted = disk.objects().into_iter().filter(|held| removes.covers((&held.name).into()));
            removed.extend(unwanted.map(|held| held.hash));
        }
        let memory = slices.purge_memory(|named| removes.covers(named.into()), &mut removed);
        let disk = slices.disk().filter(|_| !removed.is_empty());
        let disk = disk.map_or(0, |disk| disk.purge(|item| removed.contains(&item.object)));
        (memory + disk) as u64
    }

    /// Pins the slices of an object on the disk that hold a byte of `ranges`, present and future slices, besides the slices that
    /// are pinned already. At most half of the disk can be pinned in this way. Pins are lost at a restart. Returns the number of
    /// pinned bytes of all objects.
    pub fn keep(&self, object: &Arc<Object>, ranges: &[Range<u64>]) -> u64 {
        let slices = self.slices();
        let indexes = ranges.iter().map(|range| slices.indexes(range));
        slices.disk().map_or(0, |disk| disk.keep(object.named().hash, indexes))
    }

    /// Unpins the slices of an object. Returns the number of pinned bytes of all objects.
    pub fn release(&self, object: &Arc<Object>) -> u64 {
        self.slices().disk().map_or(0, |disk| disk.release(object.named().hash))
    }

    /// Returns the source of each part of a range. Adjacent parts with one source are joined.
    pub fn whence(&self, object: &Arc<Object>, range: Range<u64>) -> Vec<(Range<u64>, Whence)> {
        let end = range.end.min(object.meta().len);
        if object.file().is_some() {
            return vec![(range.start..end, Whence::File)];
        }
        let slices = self.slices();
        let mut parts: Vec<(Range<u64>, Whence)> = Vec::new();
        for index in slices.indexes(&(range.start..end)) {
            let slice = slices.range(index, object.meta().len);
            let part = slice.start.max(range.start)..slice.end.min(end);
            let whence = slices.whence(object, index);
            match parts.last_mut() {
                Some((last, same)) if *same == whence => last.end = part.end,
                _ => parts.push((part, whence)),
            }
        }
        parts
    }
}

impl SliceCache {
    fn whence(&self, object: &Object, index: u64) -> Whence {
        let id = object.slice_id(index);
        if self.memory_contains(id) {
            return Whence::Memory;
        }
        if self.disk().is_some_and(|disk| disk.contains(id.key())) {
            return Whence::Disk;
        }
        if object.flights().iter().any(|flight| flight.will_bring(index)) { Whence::Coming } else { Whence::Origin }
    }
}
