//! Slices: the fixed-size byte ranges that objects are cached in.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::cache::Cache;

/// The name of a slice: which object, and which slice of it counted from 0.
///
/// An object's number belongs to one version of it, so slices of two versions can't be mixed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SliceId {
    pub(crate) object: u64,
    pub(crate) index: u64,
}

/// The bytes of a slice from its start on, in the pieces they were published in: parts of one allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slice {
    /// Each piece with the offset of its end.
    pieces: Vec<(usize, Bytes)>,
}

impl Slice {
    /// Adds what follows.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        self.pieces.push((self.filled() + bytes.len(), bytes));
    }

    /// How many bytes are there.
    pub(crate) fn filled(&self) -> usize {
        self.pieces.last().map_or(0, |(end, _)| *end)
    }

    /// The bytes from `offset` to the end of the piece that holds it; none behind what is filled.
    pub(crate) fn at(&self, offset: usize) -> Option<Bytes> {
        let index = self.pieces.partition_point(|(end, _)| *end <= offset);
        let (end, bytes) = self.pieces.get(index)?;
        let begin = end - bytes.len();
        Some(bytes.slice(offset - begin..))
    }
}

/// All complete slices of a store, and the room for those that are being filled.
#[derive(Debug)]
pub(crate) struct SliceCache {
    pub(crate) cache: Cache<SliceId, Arc<Slice>>,
    /// Rung when room may have become free.
    room: Notify,
    slice: u64,
    run: u64,
    budget: u64,
    flights: AtomicU64,
}

impl SliceCache {
    /// `budget` is raised to four slices: with less, nothing could be both read and fetched.
    pub(crate) fn new(budget: u64, slice: u32, run: u64) -> Self {
        let slice = u64::from(slice).max(1);
        let budget = budget.max(slice * 4);
        Self {
            cache: Cache::new(budget),
            room: Notify::new(),
            slice,
            run: run.max(slice),
            budget,
            flights: AtomicU64::new(0),
        }
    }

    /// The size of a slice in bytes.
    pub(crate) fn slice(&self) -> u64 {
        self.slice
    }

    /// The bytes of slice `index` of an object of `len` bytes.
    pub(crate) fn range(&self, index: u64, len: u64) -> Range<u64> {
        let start = index.saturating_mul(self.slice).min(len);
        start..start.saturating_add(self.slice).min(len)
    }

    /// The slices that hold any byte of a range.
    pub(crate) fn indexes(&self, range: &Range<u64>) -> Range<u64> {
        if range.is_empty() {
            return 0..0;
        }
        range.start / self.slice..(range.end - 1) / self.slice + 1
    }

    /// How many slices one origin request may cover now. Many requests at a time share a quarter of the memory, so
    /// that what they bring is still there when its reader comes to it.
    pub(crate) fn run_slices(&self) -> u64 {
        let flights = self.flights.load(Ordering::Relaxed) + 1;
        let share = self.budget / 4 / flights;
        (self.run.min(share) / self.slice).max(1)
    }

    /// The longest origin request in bytes.
    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    /// Waits for room for a slice of `len` bytes.
    ///
    /// Room comes: whoever has some fills it and so makes it evictable, or gives it back.
    pub(crate) async fn reserve(self: &Arc<Self>, len: u64) -> Seat {
        loop {
            let mut room = std::pin::pin!(self.room.notified());
            room.as_mut().enable();
            if self.cache.reserve(len) {
                let slices = self.clone();
                return Seat { slices, len };
            }
            room.await;
        }
    }

    /// Counts a request to an origin as long as the result lives.
    pub(crate) fn flight(self: &Arc<Self>) -> InFlight {
        self.flights.fetch_add(1, Ordering::Relaxed);
        InFlight(self.clone())
    }
}

/// Room for one slice that is being filled.
pub(crate) struct Seat {
    slices: Arc<SliceCache>,
    len: u64,
}

impl Seat {
    /// Makes the room a cached slice.
    pub(crate) fn fill(mut self, id: SliceId, slice: Arc<Slice>) {
        let len = std::mem::take(&mut self.len);
        self.slices.cache.insert_reserved(id, slice, len, len);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.slices.cache.release(self.len);
        self.slices.room.notify_waiters();
    }
}

/// A request to an origin under way.
pub(crate) struct InFlight(Arc<SliceCache>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.flights.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn bytes_of_a_slice_by_offset() {
        let mut slice = Slice::default();
        assert!(slice.at(0).is_none());
        slice.push(Bytes::from_static(b"abc"));
        slice.push(Bytes::from_static(b"de"));
        assert_eq!(slice.filled(), 5);
        assert_eq!(slice.at(0).unwrap(), "abc");
        assert_eq!(slice.at(2).unwrap(), "c");
        assert_eq!(slice.at(3).unwrap(), "de");
        assert!(slice.at(5).is_none());
    }

    #[test]
    fn ranges_and_indexes() {
        let slices = SliceCache::new(1000, 100, 300);
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
        let slices = Arc::new(SliceCache::new(0, 100, 100));
        let mut seats = Vec::new();
        for _ in 0..4 {
            seats.push(slices.reserve(100).await);
        }
        let waiting = tokio::spawn({
            let slices = slices.clone();
            async move { drop(slices.reserve(100).await) }
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!waiting.is_finished());
        let id = SliceId { object: 1, index: 0 };
        // A filled seat can be evicted, so it makes room as well as one given back.
        seats.pop().unwrap().fill(id, Arc::default());
        waiting.await.unwrap();
        assert!(!slices.cache.contains(&id));
    }
}
