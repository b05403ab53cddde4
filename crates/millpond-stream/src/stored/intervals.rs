//! Interval caching (Srinilta and Choudhary 3.2, row C5): frames that one session has read stay in memory for sessions that
//! follow it closely.
//!
//! [`IntervalPools`] decide which blocks stay. There is a pool for each asset and choice of tracks. Blocks lie in the memory that
//! all parts of the server share, under its budget; an evicted block is read again by the next session.

use super::{Block, BlockLength, StoredMedia};
use crate::{Counters, Feed};
use millpond_store::{
    Cache,
    intervals::{IntervalPools, Window},
};
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::Duration,
};
use tokio::sync::OnceCell;

/// Tracks of one version of an asset, by their indexes, and the length of their blocks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Subject {
    pub(crate) asset: u64,
    pub(crate) tracks: Arc<[u16]>,
    length: BlockLength,
}

impl Subject {
    pub(crate) fn of(media: &StoredMedia, tracks: Arc<[u16]>) -> Self {
        let feed: &dyn Feed = media;
        let length = BlockLength::of(feed.rate(tracks.iter().copied()));
        Self { asset: media.id(), tracks, length }
    }
}

type Cell = Arc<OnceCell<Arc<Block>>>;

/// Blocks stay for sessions that are behind by up to this much more than the window: positions at its edge vary.
const SLACK: Duration = Duration::from_secs(1);

/// All pools.
pub(crate) struct Intervals {
    /// A lock: taken for a few steps, for each block that a session reaches.
    pools: Mutex<IntervalPools<Subject>>,
    blocks: Cache<(Subject, u64), Cell>,
    /// The caching window. At 0 nothing is shared.
    window: Duration,
    counters: Arc<Counters>,
}

impl Intervals {
    pub(crate) fn new(blocks: Cache<(Subject, u64), Cell>, window: Duration, counters: Arc<Counters>) -> Arc<Self> {
        Arc::new(Self { pools: Mutex::default(), blocks, window, counters })
    }

    /// Adds a session at the block of a time.
    pub(crate) fn enter(self: &Arc<Self>, subject: Subject, at: Duration) -> PoolReader {
        let block = subject.length.block_of(at);
        let count = |time| subject.length.count(time);
        let window = Window { blocks: count(self.window), reach: count(self.window + SLACK) };
        self.pools().enter(&subject, window, block);
        PoolReader { intervals: self.clone(), subject, next: block }
    }

    /// Whether a session that begins at a time finds its block in memory or waits for another session's read: one is at that
    /// block, or ahead of it by no more than the window.
    pub(crate) fn is_led(&self, subject: &Subject, at: Duration) -> bool {
        !self.window.is_zero() && self.pools().leads(subject, subject.length.block_of(at))
    }

    fn pools(&self) -> MutexGuard<'_, IntervalPools<Subject>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn drop_unwanted(&self, subject: &Subject, blocks: Vec<u64>) {
        for block in blocks {
            self.blocks.remove(&(subject.clone(), block));
        }
    }
}

impl fmt::Debug for Intervals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intervals").field("window", &self.window).finish_non_exhaustive()
    }
}

/// A session's position in its pool. The session leaves the pool when this is dropped.
pub(crate) struct PoolReader {
    intervals: Arc<Intervals>,
    subject: Subject,
    next: u64,
}

impl PoolReader {
    /// The length of the pool's blocks.
    pub(crate) fn length(&self) -> BlockLength {
        self.subject.length
    }

    /// Moves to a block and returns it: from memory, or by `load`, which runs once for all sessions that wait for the block.
    ///
    /// # Errors
    /// Those of `load`.
    pub(crate) async fn take<E>(
        &mut self,
        block: u64,
        load: impl AsyncFnOnce() -> Result<Block, E>,
    ) -> Result<Arc<Block>, E> {
        let intervals = self.intervals.clone();
        if intervals.window.is_zero() {
            return Ok(Arc::new(load().await?));
        }
        let follows = self.advance(block);
        let key = (self.subject.clone(), block);
        let cell = intervals.blocks.get(&key).unwrap_or_else(|| {
            let cell = Cell::default();
            intervals.blocks.insert(key.clone(), cell.clone(), 0);
            cell
        });
        let mut is_hit = true;
        let loaded = cell.get_or_try_init(async || {
            is_hit = false;
            Ok(Arc::new(load().await?))
        });
        let loaded = loaded.await?.clone();
        let wants = intervals.pools().wants(&self.subject, block);
        if !wants {
            intervals.blocks.remove(&key);
        } else if !is_hit {
            if intervals.blocks.insert(key.clone(), cell, loaded.weight)
                && let Some(hold) = &loaded.hold
            {
                // The cache counts it now.
                hold.give_back();
            }
            // Marks it as used: entries that no session is known to want are to be evicted first.
            drop(intervals.blocks.get(&key));
        }
        if follows {
            let counters = &intervals.counters;
            let counter = if is_hit { &counters.interval_hits } else { &counters.interval_misses };
            counter.fetch_add(1, Ordering::Relaxed);
        }
        Ok(loaded)
    }

    /// Moves behind a block. Returns whether another session is ahead there.
    fn advance(&mut self, block: u64) -> bool {
        let mut pools = self.intervals.pools();
        let advance = pools.advance(&self.subject, self.next, block);
        self.intervals.drop_unwanted(&self.subject, advance.unwanted);
        self.next = block.saturating_add(1);
        advance.follows
    }
}

impl Drop for PoolReader {
    fn drop(&mut self) {
        let mut pools = self.intervals.pools();
        let unwanted = pools.leave(&self.subject, self.next);
        self.intervals.drop_unwanted(&self.subject, unwanted);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::block_length::PERIOD, *};
    use std::convert::Infallible;

    /// Blocks.
    const WINDOW: u32 = 10;

    fn intervals() -> (Arc<Intervals>, Arc<Counters>) {
        let counters = Arc::new(Counters::default());
        (Intervals::new(Cache::new(1 << 20), PERIOD * WINDOW, counters.clone()), counters)
    }

    fn subject() -> Subject {
        Subject { asset: 7, tracks: [0, 1].into(), length: BlockLength::of(u64::MAX) }
    }

    /// When a block begins.
    fn at(block: u32) -> Duration {
        PERIOD * block
    }

    /// Whether a block had to be loaded.
    async fn loads(reader: &mut PoolReader, block: u64) -> bool {
        let mut loads = false;
        let taken = reader.take(block, async || {
            loads = true;
            Ok::<_, Infallible>(Block {
                frames: Vec::new().into(),
                next: Vec::new(),
                following: Some(block + 1),
                weight: 100,
                hold: None,
            })
        });
        assert_eq!(taken.await.unwrap().following, Some(block + 1));
        loads
    }

    fn hits(counters: &Counters) -> (u64, u64) {
        (counters.interval_hits.load(Ordering::Relaxed), counters.interval_misses.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn who_follows_within_the_window_reads_memory() {
        let (intervals, counters) = intervals();
        let mut owner = intervals.enter(subject(), at(0));
        let mut follower = None;
        let mut late = None;
        for block in 0..100 {
            assert!(loads(&mut owner, block).await, "{block}");
            if block == 5 {
                assert!(intervals.is_led(&subject(), at(0)));
                follower = Some(intervals.enter(subject(), at(0)));
            }
            if block == 30 {
                assert!(!intervals.is_led(&subject(), at(0)) && intervals.is_led(&subject(), at(28)));
                assert!(intervals.is_led(&subject(), at(31)) && !intervals.is_led(&subject(), at(32)));
                late = Some(intervals.enter(subject(), at(0)));
            }
            if let Some(follower) = &mut follower {
                assert!(!loads(follower, block - 5).await, "{block}: the follower");
            }
            if let Some(late) = &mut late {
                assert!(loads(late, block - 30).await, "{block}: behind the window");
            }
            assert!(intervals.blocks.len() <= 2 * WINDOW as usize, "{}", intervals.blocks.len());
        }
        assert_eq!(hits(&counters), (95, 0));
        // The first leaves: the second reads on, and there is nobody to keep blocks for.
        drop(owner);
        let mut follower = follower.unwrap();
        for block in 95..99 {
            assert!(!loads(&mut follower, block).await, "{block}");
        }
        assert!(loads(&mut follower, 100).await);
        drop((follower, late));
        assert_eq!(intervals.blocks.len(), 0);
    }

    #[tokio::test]
    async fn an_open_pool_keeps_the_beginning_for_those_to_come() {
        let (intervals, _) = intervals();
        let mut owner = intervals.enter(subject(), at(0));
        for block in 0..8 {
            loads(&mut owner, block).await;
        }
        assert_eq!(intervals.blocks.len(), 8);
        for block in 8..12 {
            loads(&mut owner, block).await;
        }
        let mut near = intervals.enter(subject(), at(0));
        assert!(!loads(&mut near, 0).await, "at the window's edge");
        drop(near);
        for block in 12..17 {
            loads(&mut owner, block).await;
        }
        assert_eq!(intervals.blocks.len(), 0, "nobody came within the window");
        let mut jumps = intervals.enter(subject(), at(50));
        assert!(loads(&mut jumps, 50).await);
        assert_eq!(intervals.blocks.len(), 0, "nobody is on the way to it");
        assert!(loads(&mut owner, 45).await, "a seek");
        assert!(loads(&mut jumps, 51).await);
        assert_eq!(intervals.blocks.len(), 1, "now somebody is");
    }

    #[tokio::test]
    async fn who_comes_at_once_waits_for_one_read() {
        let (intervals, counters) = intervals();
        let mut readers: Vec<PoolReader> = (0..20).map(|_| intervals.enter(subject(), at(0))).collect();
        let reads = std::cell::Cell::new(0);
        let all = readers.iter_mut().map(|reader| {
            reader.take(0, async || {
                reads.set(reads.get() + 1);
                tokio::task::yield_now().await;
                Ok::<_, Infallible>(Block {
                    frames: Vec::new().into(),
                    next: Vec::new(),
                    following: None,
                    weight: 1,
                    hold: None,
                })
            })
        });
        futures_util::future::join_all(all).await;
        assert_eq!(reads.get(), 1);
        assert_eq!(hits(&counters), (19, 0));
    }

    #[tokio::test]
    async fn without_a_window_nobody_leads() {
        let alone = Intervals::new(Cache::new(1 << 20), Duration::ZERO, Arc::default());
        let mut reader = alone.enter(subject(), at(0));
        assert!(!alone.is_led(&subject(), at(0)));
        assert!(loads(&mut reader, 0).await && loads(&mut alone.enter(subject(), at(0)), 0).await);
    }

    #[tokio::test]
    async fn a_failed_read_is_nobodys_and_is_tried_again() {
        let (intervals, _) = intervals();
        let mut reader = intervals.enter(subject(), at(0));
        assert_eq!(reader.take(0, async || Err::<Block, _>("gone")).await.unwrap_err(), "gone");
        assert!(loads(&mut reader, 0).await);
    }
}
