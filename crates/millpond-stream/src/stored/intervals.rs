//! Interval caching (Srinilta and Choudhary 3.2): frames that one session has read stay in memory for sessions that
//! follow it closely.
//!
//! An [`IntervalCache`] decides which blocks stay. There is a pool for each asset and choice of tracks. Blocks lie in the memory that
//! all parts of the server share, under its budget; an evicted block is read again by the next session.

use super::{Block, BlockLength, StoredMedia};
use crate::{Counters, Feed};
use millpond_store::{
    Cache,
    intervals::{IntervalCache, Window},
};
use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{sync::OnceCell, time::Instant};

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
    cache: IntervalCache<Subject, Cell>,
    /// The caching window. At 0 nothing is shared.
    window: Duration,
    counters: Arc<Counters>,
    started: Instant,
}

impl Intervals {
    pub(crate) fn new(blocks: Cache<(Subject, u64), Cell>, window: Duration, counters: Arc<Counters>) -> Arc<Self> {
        Arc::new(Self { cache: IntervalCache::new(blocks), window, counters, started: Instant::now() })
    }

    /// Adds a session at the block of a time.
    pub(crate) fn enter(self: &Arc<Self>, subject: Subject, at: Duration) -> PoolReader {
        let block = subject.length.block_of(at);
        let count = |time| subject.length.count(time);
        let length = subject.length.duration();
        let window = Window { blocks: count(self.window), reach: count(self.window + SLACK), length };
        self.cache.enter(&subject, window, block, self.now());
        PoolReader { intervals: self.clone(), subject, next: block }
    }

    /// Whether a session that begins at `at` finds its block in memory, or waits for another session's read of it. Then another
    /// session is at that block, or ahead of it by at most the window.
    pub(crate) fn is_led(&self, subject: &Subject, at: Duration) -> bool {
        !self.window.is_zero() && self.cache.leads(subject, subject.length.block_of(at))
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
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
        let (cache, now) = (&intervals.cache, intervals.now());
        let follows = cache.advance(&self.subject, self.next, block, now);
        self.next = block.saturating_add(1);
        let cell = cache.get(&self.subject, block).unwrap_or_else(|| {
            let cell = Cell::default();
            cache.expect(&self.subject, block, cell.clone(), now);
            cell
        });
        let mut is_hit = true;
        let loaded = cell.get_or_try_init(async || {
            is_hit = false;
            Ok(Arc::new(load().await?))
        });
        let loaded = loaded.await?.clone();
        let read = (!is_hit).then_some((cell, loaded.weight));
        if cache.keep(&self.subject, block, read, intervals.now())
            && let Some(hold) = &loaded.hold
        {
            // The cache counts it now.
            hold.give_back();
        }
        if follows {
            let counters = &intervals.counters;
            let counter = if is_hit { &counters.interval_hits } else { &counters.interval_misses };
            counter.fetch_add(1, Ordering::Relaxed);
        }
        Ok(loaded)
    }
}

impl Drop for PoolReader {
    fn drop(&mut self) {
        self.intervals.cache.leave(&self.subject, self.next, self.intervals.now());
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
            assert!(intervals.cache.blocks().len() <= 2 * WINDOW as usize, "{}", intervals.cache.blocks().len());
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
        assert_eq!(intervals.cache.blocks().len(), 0);
    }

    /// The simulator plays through [`IntervalCache::take`]. In a memory that is too small the engine reads the same blocks.
    #[tokio::test(start_paused = true)]
    async fn the_simulator_reads_the_same_blocks() {
        /// Bytes of a block, and blocks that fit the memory.
        const WEIGHT: u64 = 100;
        const ROOM: u64 = 37;
        let counters = Arc::new(Counters::default());
        let engine = Intervals::new(Cache::new(WEIGHT * ROOM), PERIOD * WINDOW, counters);
        let simulated = IntervalCache::new(Cache::new(WEIGHT * ROOM));
        let (length, window) = (subject().length, PERIOD * WINDOW);
        let window = Window { blocks: length.count(window), reach: length.count(window + SLACK), length: PERIOD };
        let mut rng = fastrand::Rng::with_seed(3);
        let mut sessions: Vec<(u64, PoolReader)> = Vec::new();
        let (mut reads, mut hits) = (0, 0);
        for step in 0..4000_u32 {
            let now = engine.now();
            if sessions.len() < 60 && rng.u8(..4) == 0 {
                let asset = rng.u64(..8);
                simulated.enter(&asset, window, 0, now);
                sessions.push((asset, engine.enter(Subject { asset, ..subject() }, at(0))));
            }
            if rng.u8(..20) == 0 && !sessions.is_empty() {
                let (asset, reader) = sessions.swap_remove(rng.usize(..sessions.len()));
                simulated.leave(&asset, reader.next, now);
            }
            for (asset, reader) in &mut sessions {
                // Few seek. Few stand still for a moment.
                let block = if rng.u16(..500) == 0 { rng.u64(..60) } else { reader.next };
                if rng.u8(..50) == 0 {
                    continue;
                }
                let read = simulated.take(asset, (reader.next, block), WEIGHT, now, || ());
                assert_eq!(!read.1, loads(reader, block).await, "{step}: {asset} at {block}");
                (reads, hits) = (reads + 1, hits + u64::from(read.1));
            }
            assert!(engine.cache.blocks().weight() <= WEIGHT * ROOM);
            tokio::time::advance(PERIOD).await;
        }
        assert!(reads > 50_000 && hits > reads / 20, "{hits} of {reads}");
        let counters = engine.cache.blocks().counters();
        assert!(counters.evictions > 1000 && counters.refused > 100, "{counters:?}");
    }

    #[tokio::test]
    async fn an_open_pool_keeps_the_beginning_for_those_to_come() {
        let (intervals, _) = intervals();
        let mut owner = intervals.enter(subject(), at(0));
        for block in 0..8 {
            loads(&mut owner, block).await;
        }
        assert_eq!(intervals.cache.blocks().len(), 8);
        for block in 8..12 {
            loads(&mut owner, block).await;
        }
        let mut near = intervals.enter(subject(), at(0));
        assert!(!loads(&mut near, 0).await, "at the window's edge");
        drop(near);
        for block in 12..17 {
            loads(&mut owner, block).await;
        }
        assert_eq!(intervals.cache.blocks().len(), 0, "nobody came within the window");
        let mut jumps = intervals.enter(subject(), at(50));
        assert!(loads(&mut jumps, 50).await);
        assert_eq!(intervals.cache.blocks().len(), 0, "nobody is on the way to it");
        assert!(loads(&mut owner, 45).await, "a seek");
        assert!(loads(&mut jumps, 51).await);
        assert_eq!(intervals.cache.blocks().len(), 1, "now somebody is");
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
