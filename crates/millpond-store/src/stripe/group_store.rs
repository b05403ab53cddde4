//! A store of a striping group: its origins, its failures and its counters.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::sink::Sink;
use super::turns::Turns;
use crate::origin::{Origin, StripeStoreStats};

/// First pause of a store that failed, where its units have other copies. It doubles with each failure in a row, up to
/// [`LONGEST_REST`].
const REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(30);
/// Most damaged objects that are remembered of a store.
const MOST_DAMAGED: usize = 1024;

/// A store with its state.
#[derive(Debug)]
pub(super) struct GroupStore {
    pub(super) name: String,
    /// The store without retries: another copy is read instead.
    pub(super) plain: Arc<dyn Origin>,
    /// The store with retries: the only copy that is left.
    pub(super) patient: Arc<dyn Origin>,
    /// The store as a place for repaired units; `None` where the operator does not allow it, and for web servers.
    pub(super) sink: Option<Sink>,
    pub(super) turns: Arc<Turns>,
    /// A lock, held briefly.
    rest: Mutex<Rest>,
    /// Paths of damaged objects: their other copies are read first. A lock, held briefly.
    damaged: Mutex<HashSet<String>>,
    pub(super) counters: StoreCounters,
}

/// Counters of a store.
#[derive(Debug, Default)]
pub(super) struct StoreCounters {
    pub(super) requests: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) damaged: AtomicU64,
    pub(super) repaired: AtomicU64,
    in_flight: AtomicUsize,
}

/// Failures of a store in a row, and the end of its pause.
#[derive(Debug, Default)]
struct Rest {
    failures: u32,
    until: Option<Instant>,
    /// Whether the pause ended, and a request shows whether it is back.
    is_tried: bool,
}

impl GroupStore {
    pub(super) fn new(name: String, plain: Arc<dyn Origin>, patient: Arc<dyn Origin>, sink: Option<Sink>) -> Self {
        Self {
            name,
            plain,
            patient,
            sink,
            turns: Turns::new(),
            rest: Mutex::default(),
            damaged: Mutex::default(),
            counters: StoreCounters::default(),
        }
    }

    fn rest(&self) -> MutexGuard<'_, Rest> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn damaged(&self) -> MutexGuard<'_, HashSet<String>> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether it is left alone.
    pub(super) fn is_resting(&self) -> bool {
        self.rest().until.is_some_and(|until| Instant::now() < until)
    }

    /// Returns whether its pause is over, and it is to be tried. It is left alone until the outcome is known, at most for
    /// `patience`.
    pub(super) fn begins_trial(&self, patience: Duration) -> bool {
        let mut rest = self.rest();
        let is_over = rest.until.is_some_and(|until| Instant::now() >= until);
        if is_over {
            (rest.until, rest.is_tried) = (Some(Instant::now() + patience), true);
        }
        is_over
    }

    pub(super) fn failed(&self) {
        let mut rest = self.rest();
        // Requests that were under way together fail together, and count once.
        if !rest.is_tried && rest.until.is_some_and(|until| Instant::now() < until) {
            return;
        }
        let pause = REST.saturating_mul(1 << rest.failures.min(10)).min(LONGEST_REST);
        let failures = rest.failures.saturating_add(1);
        *rest = Rest { failures, until: Some(Instant::now() + pause), is_tried: false };
    }

    pub(super) fn answered(&self) {
        *self.rest() = Rest::default();
    }

    /// Counts a read of an object that is damaged here. Returns whether the damage is new.
    pub(super) fn found_damaged(&self, path: &str) -> bool {
        self.counters.damaged.fetch_add(1, Ordering::Relaxed);
        let mut damaged = self.damaged();
        // The set of damaged objects is bounded. Where one is forgotten, the next read of it finds the damage again.
        if damaged.len() >= MOST_DAMAGED {
            damaged.clear();
        }
        damaged.insert(path.to_owned())
    }

    /// Returns whether an object was damaged here when it was read last.
    pub(super) fn is_damaged(&self, path: &str) -> bool {
        self.damaged().contains(path)
    }

    /// Forgets that an object was damaged here.
    pub(super) fn forget_damage(&self, path: &str) {
        self.damaged().remove(path);
    }

    /// Returns the number of requests under way.
    pub(super) fn in_flight(&self) -> usize {
        self.counters.in_flight.load(Ordering::Relaxed)
    }

    pub(super) fn stats(&self) -> StripeStoreStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StripeStoreStats {
            store: self.name.clone(),
            requests: read(&self.counters.requests),
            bytes: read(&self.counters.bytes),
            failures: read(&self.counters.failures),
            damaged_reads: read(&self.counters.damaged),
            repaired_units: read(&self.counters.repaired),
            in_flight: self.in_flight() as u64,
            is_resting: self.is_resting(),
        }
    }
}

/// A request under way at a store.
pub(super) struct UnderWay<'a>(&'a GroupStore);

impl<'a> UnderWay<'a> {
    pub(super) fn new(store: &'a GroupStore) -> Self {
        store.counters.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(store)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.counters.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
