//! Counts of the library, made of atomics: counting takes no lock.

use crate::{
    durations::{DurationCounts, Durations},
    work::PoolStats,
};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Counts of a [`Library`](crate::Library), up to now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LibraryStats {
    /// Assets that were in memory when they were opened.
    pub asset_hits: u64,
    /// Assets that had to be made.
    pub asset_misses: u64,
    /// Indexes built from media files.
    pub indexes_built: u64,
    /// Indexes that could not be built.
    pub indexes_failed: u64,
    /// Bytes of media files read for indexes that were built.
    pub index_bytes: u64,
    /// Time to build an index, storage included.
    pub index_time: DurationCounts,
    /// Jobs of the pool for heavy work.
    pub work: PoolStats,
}

/// Counts what the library does.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    asset_hits: AtomicU64,
    asset_misses: AtomicU64,
    indexes_built: AtomicU64,
    indexes_failed: AtomicU64,
    index_bytes: AtomicU64,
    index_time: Durations,
}

impl Counters {
    pub(crate) fn asset_hit(&self) {
        self.asset_hits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn asset_miss(&self) {
        self.asset_misses.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an index built from `bytes` bytes of an object.
    pub(crate) fn index_built(&self, took: Duration, bytes: u64) {
        self.indexes_built.fetch_add(1, Ordering::Relaxed);
        self.index_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.index_time.add(took);
    }

    pub(crate) fn index_failed(&self) {
        self.indexes_failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self, work: PoolStats) -> LibraryStats {
        LibraryStats {
            asset_hits: self.asset_hits.load(Ordering::Relaxed),
            asset_misses: self.asset_misses.load(Ordering::Relaxed),
            indexes_built: self.indexes_built.load(Ordering::Relaxed),
            indexes_failed: self.indexes_failed.load(Ordering::Relaxed),
            index_bytes: self.index_bytes.load(Ordering::Relaxed),
            index_time: self.index_time.snapshot(),
            work,
        }
    }
}
