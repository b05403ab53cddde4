//! Counts of the pool's jobs, made of atomics: counting takes no lock.

use crate::durations::{DurationCounts, Durations};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Jobs of a [`WorkPool`](super::WorkPool), up to now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Jobs that run.
    pub running: u64,
    /// Jobs that wait for a thread.
    pub waiting: u64,
    /// Jobs refused because the queue was full or memory was short.
    pub refused: u64,
    /// Jobs cancelled because nobody waited for their results.
    pub cancelled: u64,
    /// Time that jobs ran.
    pub run_time: DurationCounts,
}

/// Counts the jobs of a pool.
#[derive(Debug, Default)]
pub(super) struct PoolCounters {
    running: AtomicU64,
    waiting: AtomicU64,
    refused: AtomicU64,
    cancelled: AtomicU64,
    run_time: Durations,
}

impl PoolCounters {
    /// Counts a job as running until the guard is dropped.
    pub(super) fn running(&self) -> Running<'_> {
        self.running.fetch_add(1, Ordering::Relaxed);
        Running(self)
    }

    /// Counts a job that waits from now on.
    pub(super) fn joined_queue(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a job that waits no longer.
    pub(super) fn left_queue(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a job that was not accepted.
    pub(super) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a job that nobody waits for any more.
    pub(super) fn cancelled(&self) {
        self.cancelled.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a job that ended after running for `took`.
    pub(super) fn ran(&self, took: Duration) {
        self.run_time.add(took);
    }

    pub(super) fn snapshot(&self) -> PoolStats {
        PoolStats {
            running: self.running.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            cancelled: self.cancelled.load(Ordering::Relaxed),
            run_time: self.run_time.snapshot(),
        }
    }
}

/// A job that counts as running.
pub(super) struct Running<'a>(&'a PoolCounters);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}
