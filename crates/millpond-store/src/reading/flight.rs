//! One origin request for a run of slices, and the readers that wait for its bytes.
//!
//! It stays at most a window ahead of its furthest reader: then the connection waits, and is closed when the wait is long.
//! Without readers it stops at once, or after the slice that it is filling where enough of that is there (see
//! [`Ending`]). [`fetching`](crate::reading::fetching) runs it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};

use crate::{due::Due, error::OriginError, purge_log::PurgeMark, slice::Slice, slices::SliceCache};

/// Longest time for which a reply is not read: servers close such connections.
const PATIENCE: Duration = Duration::from_secs(5);

/// A run of slices on its way from the origin.
#[derive(Debug)]
pub(crate) struct Flight {
    /// The slices that it fetches.
    pub(crate) indexes: Range<u64>,
    /// Bytes of a slice.
    slice: u64,
    /// Offset in the object at which it ends, if that is within its last slice.
    pub(crate) stop: u64,
    pub(crate) progress: watch::Sender<FlightProgress>,
    /// Number of tickets. Changed only under the lock of the object's list of flights.
    wanted: AtomicUsize,
    /// The slice before which it ends: lowered when no reader wants more than the current one.
    until: AtomicU64,
    pub(crate) given_up: Notify,
    /// The furthest slice that a reader has reached.
    reached: AtomicU64,
    moved: Notify,
    /// The time at which its first slice is needed.
    pub(crate) due: Due,
    /// The moment before its request.
    pub(crate) since: PurgeMark,
}

#[derive(Debug)]
pub(crate) struct FlightProgress {
    /// The slice being filled.
    pub(crate) index: u64,
    /// The bytes of that slice that have arrived.
    filling: Arc<Slice>,
    /// The slice before: a reader gets it even if the cache has evicted it already.
    previous: Arc<Slice>,
    pub(crate) end: Option<Result<(), OriginError>>,
}

/// The bytes of a flight at a position.
#[derive(Debug)]
pub(crate) enum FlightBytes {
    /// Bytes from the position on.
    Bytes(Bytes),
    /// The bytes have not arrived.
    Wait,
    /// The bytes were handed on, and are cached or evicted.
    Passed,
    /// The bytes will not arrive.
    Failed(OriginError),
}

impl Flight {
    /// Creates a flight for slices of `slice` bytes, which are requested after `since`. The first slice is needed at `due`.
    pub(crate) fn new(indexes: Range<u64>, slice: u64, due: Instant, since: PurgeMark) -> Self {
        let progress =
            FlightProgress { index: indexes.start, filling: Arc::default(), previous: Arc::default(), end: None };
        Self {
            progress: watch::Sender::new(progress),
            wanted: AtomicUsize::new(0),
            until: AtomicU64::new(indexes.end),
            given_up: Notify::new(),
            reached: AtomicU64::new(indexes.start),
            moved: Notify::new(),
            due: Due::new(due),
            since,
            slice,
            stop: u64::MAX,
            indexes,
        }
    }

    /// Sets the part of the first slice that is there, and the offset in the object at which the flight ends.
    pub(crate) fn between(self, part: Arc<Slice>, stop: u64) -> Self {
        self.progress.send_modify(|progress| progress.filling = part);
        Self { stop, ..self }
    }

    /// Returns the bytes of the slice being filled that are there.
    pub(crate) fn filling(&self) -> Slice {
        (*self.progress.borrow().filling).clone()
    }

    /// Returns whether it will still fetch this slice.
    pub(crate) fn will_bring(&self, index: u64) -> bool {
        self.indexes.contains(&index)
            && index < self.until.load(Ordering::Relaxed)
            && self.progress.borrow().index <= index
    }

    /// Ends it before a slice, which another flight is to fetch. The caller holds the lock of the object's list of
    /// flights.
    pub(crate) fn end_before(&self, index: u64) {
        self.until.fetch_min(index, Ordering::Relaxed);
    }

    /// Returns the number of bytes of a slice that have arrived, from its start on. 0 if the flight does not fetch the slice now.
    pub(crate) fn arrived(&self, index: u64) -> u64 {
        let progress = self.progress.borrow();
        if progress.index == index { progress.filling.filled() as u64 } else { 0 }
    }

    /// Returns whether it will fetch this slice without waiting for its readers.
    pub(crate) fn will_bring_soon(&self, index: u64, slices: &SliceCache) -> bool {
        self.will_bring(index) && index.saturating_sub(self.progress.borrow().index) <= slices.run_slices()
    }

    /// Waits until a slice is within the window ahead of the furthest reader. Returns `false` after [`PATIENCE`].
    pub(crate) async fn comes_near(&self, index: u64, slices: &SliceCache) -> bool {
        let near = || index <= self.reached.load(Ordering::Relaxed).saturating_add(slices.run_slices());
        let wait = async {
            while !near() {
                self.moved.notified().await;
            }
        };
        near() || timeout(PATIENCE, wait).await.is_ok()
    }

    pub(crate) fn look(&self, index: u64, offset: usize) -> FlightBytes {
        if self.reached.fetch_max(index, Ordering::Relaxed) < index {
            self.moved.notify_one();
        }
        let progress = self.progress.borrow();
        let slice = if index == progress.index {
            Some(&progress.filling)
        } else if index.checked_add(1) == Some(progress.index) {
            Some(&progress.previous)
        } else {
            None
        };
        if let Some(bytes) = slice.and_then(|slice| slice.at(offset)) {
            return FlightBytes::Bytes(bytes);
        }
        match &progress.end {
            _ if index < progress.index => FlightBytes::Passed,
            Some(Err(error)) => FlightBytes::Failed(error.clone()),
            Some(Ok(())) => FlightBytes::Passed,
            None => FlightBytes::Wait,
        }
    }

    /// Returns the slice before which it ends.
    pub(crate) fn end(&self) -> u64 {
        self.until.load(Ordering::Relaxed)
    }

    /// Adds a share. The caller holds the lock of the object's list of flights.
    pub(crate) fn join(&self) -> watch::Receiver<FlightProgress> {
        self.wanted.fetch_add(1, Ordering::Relaxed);
        self.progress.subscribe()
    }

    /// Takes a share away. Returns whether the last one left, and the current slice is not worth completing by `ending`. The
    /// caller holds the lock of the object's list of flights.
    pub(crate) fn leave(&self, ending: Ending) -> bool {
        if self.wanted.fetch_sub(1, Ordering::Relaxed) != 1 {
            return false;
        }
        let progress = self.progress.borrow();
        let filled = progress.filling.filled() as u64;
        let is_completed = progress.end.is_none() && filled >= ending.least(self.slice);
        if is_completed {
            self.until.store(progress.index + 1, Ordering::Relaxed);
        }
        !is_completed
    }

    /// Hands on the bytes of the current slice.
    pub(crate) fn publish(&self, slice: &Slice) {
        self.progress.send_modify(|progress| progress.filling = Arc::new(slice.clone()));
    }

    /// Continues with the next slice.
    pub(crate) fn advance(&self, complete: Arc<Slice>) {
        self.progress.send_modify(|progress| {
            progress.index += 1;
            progress.previous = complete;
            progress.filling = Arc::default();
        });
    }
}

/// The part of the current slice that must have arrived for it to be completed without readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Any part: its reader has read all it wanted, and the next one probably continues there.
    Served,
    /// Half: a reader left before its end.
    Left,
    /// Nearly all: it was fetched ahead of a viewer that has left.
    Ahead,
}

impl Ending {
    /// Returns the bytes of a slice of `slice` bytes that must have arrived.
    fn least(self, slice: u64) -> u64 {
        match self {
            Self::Served => 1,
            Self::Left => slice.div_ceil(2),
            Self::Ahead => slice - slice / 8,
        }
    }
}
