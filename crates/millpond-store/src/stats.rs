//! Counters of the store, and their snapshot.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::disk::disk_tier::DiskStats;
use crate::error::{ErrorKind, OriginError};
use crate::lookups::LookupTimes;
use crate::memory::CacheCounters;
use crate::origin::{NeighbourStats, OriginCounts, StripeStoreStats};
use crate::waits::{WaitCounts, Waits};

/// A snapshot of the store's counters, from its creation on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Slices in memory: weight, budget and counters, in bytes and slices.
    pub cache: CacheCounters,
    /// Bytes of memory used by all kinds of entries and by reservations.
    pub memory_used: u64,
    /// Counters of each kind of entries in memory.
    pub memory: Vec<(&'static str, CacheCounters)>,
    /// Counters of the slices on the disk, if there is a disk cache.
    pub disk: Option<DiskStats>,
    /// Times of look-ups of slices.
    pub lookups: LookupTimes,
    /// Counters of each place, by name.
    pub places: Vec<PlaceStats>,
}

/// Counters of one place, since it was added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaceStats {
    /// The name of the place.
    pub name: String,
    /// Requests to the origin, repeated ones included. Those that a sibling answered don't count.
    pub origin_requests: u64,
    /// Bytes of bodies that the origin sent. What siblings sent is in [`neighbours`](Self::neighbours).
    pub origin_bytes: u64,
    /// Slices a reader found complete, in memory or on the disk.
    pub slice_hits: u64,
    /// Slices a reader had to wait for.
    pub slice_misses: u64,
    /// Bytes of slices that readers found complete in memory.
    pub memory_hit_bytes: u64,
    /// Bytes of slices that readers found complete on the disk.
    pub disk_hit_bytes: u64,
    /// Bytes that readers got as they arrived from the origin.
    pub miss_bytes: u64,
    /// Bytes that readers got as ranges of open files.
    pub file_bytes: u64,
    /// Bytes of slices fetched ahead of their viewers.
    pub prefetched_bytes: u64,
    /// Bytes of those slices that no viewer has read yet.
    pub prefetched_unused_bytes: u64,
    /// Tracks of viewers whose positions are known now.
    pub watched: u64,
    /// Measured bandwidth of the link to the origin, in bytes a second; 0 before the first measurement.
    pub link_bandwidth: u64,
    /// Opens and reads that joined a request of another caller.
    pub collapsed: u64,
    /// Opens that returned an object as last seen, because the origin failed.
    pub stale: u64,
    /// Tags of objects that exceed the bounds: purges by these tags do not find the objects.
    pub cut_tags: u64,
    /// Repeated requests after failures.
    pub retries: u64,
    /// Failures of the origin by kind. Kinds that did not occur are left out.
    pub errors: Vec<(ErrorKind, u64)>,
    /// Origin requests for slices in progress.
    pub in_flight: u64,
    /// Times for which readers waited for the first bytes of a missing slice.
    pub misses: WaitCounts,
    /// Counters of its sibling caches, if there are any.
    pub neighbours: Option<NeighbourStats>,
    /// Counters of the stores of its striping group.
    pub stripes: Vec<StripeStoreStats>,
}

/// The live counters of a place.
#[derive(Debug, Default)]
pub(crate) struct PlaceCounters {
    /// Requests for objects. Siblings may answer some of them.
    pub(crate) requests: AtomicU64,
    /// Bytes of bodies, from the origin or its siblings.
    pub(crate) received_bytes: AtomicU64,
    pub(crate) slice_hits: AtomicU64,
    pub(crate) slice_misses: AtomicU64,
    pub(crate) memory_hit_bytes: AtomicU64,
    pub(crate) disk_hit_bytes: AtomicU64,
    pub(crate) miss_bytes: AtomicU64,
    pub(crate) file_bytes: AtomicU64,
    pub(crate) collapsed: AtomicU64,
    pub(crate) stale: AtomicU64,
    pub(crate) cut_tags: AtomicU64,
    pub(crate) in_flight: AtomicU64,
    pub(crate) misses: Waits,
    errors: [AtomicU64; ErrorKind::ALL.len()],
}

/// Counters of the reads of one object, while the store knows it.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    pub(crate) hit_bytes: AtomicU64,
    pub(crate) miss_bytes: AtomicU64,
}

/// Bytes that the readers of one response read, by where they were found. See [`Reader::counted`](crate::Reader::counted).
#[derive(Debug, Default)]
pub struct ReadCounts {
    hit: AtomicU64,
    miss: AtomicU64,
}

impl ReadCounts {
    /// Counts bytes that were cached.
    pub fn hit(&self, bytes: u64) {
        add(&self.hit, bytes);
    }

    /// Counts bytes that came from the origin.
    pub(crate) fn miss(&self, bytes: u64) {
        add(&self.miss, bytes);
    }

    /// Returns the bytes that were cached.
    pub fn hit_bytes(&self) -> u64 {
        self.hit.load(Ordering::Relaxed)
    }

    /// Returns the bytes that came from the origin.
    pub fn miss_bytes(&self) -> u64 {
        self.miss.load(Ordering::Relaxed)
    }
}

/// Adds to a counter. Counters order nothing, so relaxed is enough.
pub(crate) fn add(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Ordering::Relaxed);
}

impl PlaceCounters {
    /// Counts a failure, and returns it.
    pub(crate) fn failed(&self, error: OriginError) -> OriginError {
        add(&self.errors[error.kind() as usize], 1);
        error
    }

    pub(crate) fn snapshot(&self, name: &str, counts: OriginCounts) -> PlaceStats {
        let OriginCounts { retries, neighbours, stripes, unchecked_maps: _ } = counts;
        let siblings = neighbours.unwrap_or_default();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let errors =
            ErrorKind::ALL.into_iter().zip(self.errors.iter().map(read)).filter(|(_, count)| *count > 0).collect();
        PlaceStats {
            name: name.to_owned(),
            origin_requests: (read(&self.requests) + siblings.further + retries).saturating_sub(siblings.hits),
            origin_bytes: read(&self.received_bytes).saturating_sub(siblings.bytes),
            neighbours,
            stripes,
            slice_hits: read(&self.slice_hits),
            slice_misses: read(&self.slice_misses),
            memory_hit_bytes: read(&self.memory_hit_bytes),
            disk_hit_bytes: read(&self.disk_hit_bytes),
            misses: self.misses.snapshot(),
            miss_bytes: read(&self.miss_bytes),
            file_bytes: read(&self.file_bytes),
            collapsed: read(&self.collapsed),
            stale: read(&self.stale),
            cut_tags: read(&self.cut_tags),
            retries,
            errors,
            in_flight: read(&self.in_flight),
            ..PlaceStats::default()
        }
    }
}
