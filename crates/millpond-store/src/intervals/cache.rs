//! Blocks in memory, for sessions that follow others.

use super::{Change, IntervalPools, Window};
use crate::memory::cache::Cache;
use std::{
    fmt,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Time after which a block that was needed is not waited for: its session stands still.
const LATE: Duration = Duration::from_secs(15);

/// The blocks of all pools, by what is played and their number.
///
/// A session [enters](Self::enter) a pool. For each of its blocks it calls [`advance`](Self::advance), then [`get`](Self::get),
/// and then [`keep`](Self::keep) with the block. It ends with [`leave`](Self::leave). `now` is a time since any moment.
///
/// Blocks count in the memory that all parts of the server share. Where that is full and its policy chooses a block, the block that is
/// needed last is evicted.
pub struct IntervalCache<K, V> {
    /// A lock: taken for a few steps, for each block that a session reaches.
    pools: Mutex<IntervalPools<K>>,
    blocks: Cache<(K, u64), V>,
}

impl<K, V> IntervalCache<K, V>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// A cache without sessions, whose blocks lie in `blocks`. Other entries with needs in the same memory must count by the same clock.
    pub fn new(blocks: Cache<(K, u64), V>) -> Self {
        Self { pools: Mutex::default(), blocks }
    }

    /// Adds a session that reads `block` next. The first session of a pool chooses its window.
    pub fn enter(&self, key: &K, window: Window, block: u64, now: Duration) {
        let mut pools = self.pools();
        let changes = pools.enter(key, window, block, now);
        self.apply(key, changes);
    }

    /// Whether a session is at `block`, or ahead of it by no more than the window.
    pub fn leads(&self, key: &K, block: u64) -> bool {
        self.pools().leads(key, block)
    }

    /// Moves a session, whose next block was `next`, behind `block`. Returns whether another session is ahead there, by no more than the
    /// window.
    pub fn advance(&self, key: &K, next: u64, block: u64, now: Duration) -> bool {
        let mut pools = self.pools();
        let advance = pools.advance(key, next, block, now);
        self.apply(key, advance.changes);
        advance.follows
    }

    /// A block that is in memory.
    pub fn get(&self, key: &K, block: u64) -> Option<V> {
        self.blocks.get(&(key.clone(), block))
    }

    /// Puts the place of a block in memory that is being read. It weighs nothing yet.
    pub fn expect(&self, key: &K, block: u64, place: V, now: Duration) {
        self.blocks.insert_needed((key.clone(), block), place, 0, crate::policy::Need::At(now));
    }

    /// Keeps a block that a session got by [`get`](Self::get) while other sessions want it. `read` is the block and its weight in bytes
    /// where the session has read it instead. Returns whether that is in memory now.
    pub fn keep(&self, key: &K, block: u64, read: Option<(V, u64)>, now: Duration) -> bool {
        let need = self.pools().need(key, block, now);
        let name = (key.clone(), block);
        match (need, read) {
            (None, _) => {
                self.blocks.remove(&name);
                false
            }
            (Some(need), None) => {
                self.blocks.set_need(&name, need);
                false
            }
            (Some(need), Some((value, weight))) => {
                self.blocks.give_up_needs(now.saturating_sub(LATE));
                let is_in = self.blocks.insert_needed(name.clone(), value, weight, need);
                if is_in {
                    // Marks it as used: policies evict entries first that nobody is known to want.
                    self.blocks.get(&name);
                }
                is_in
            }
        }
    }

    /// Takes a block of `weight` bytes at once: from memory, or by `read`. Returns it, and whether it was in memory.
    pub fn take(
        &self,
        key: &K,
        (next, block): (u64, u64),
        weight: u64,
        now: Duration,
        read: impl FnOnce() -> V,
    ) -> (V, bool) {
        self.advance(key, next, block, now);
        let found = self.get(key, block);
        let is_hit = found.is_some();
        let value = found.unwrap_or_else(read);
        self.keep(key, block, (!is_hit).then(|| (value.clone(), weight)), now);
        (value, is_hit)
    }

    /// Removes a session whose next block was `next`.
    pub fn leave(&self, key: &K, next: u64, now: Duration) {
        let mut pools = self.pools();
        let changes = pools.leave(key, next, now);
        self.apply(key, changes);
    }

    /// The blocks.
    pub fn blocks(&self) -> &Cache<(K, u64), V> {
        &self.blocks
    }

    fn pools(&self) -> MutexGuard<'_, IntervalPools<K>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply(&self, key: &K, changes: Vec<Change>) {
        for Change { block, need } in changes {
            let name = (key.clone(), block);
            match need {
                Some(need) => self.blocks.set_need(&name, need),
                None => drop(self.blocks.remove(&name)),
            }
        }
    }
}

impl<K, V> fmt::Debug for IntervalCache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntervalCache").field("blocks", &self.blocks).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { blocks: 10, reach: 11, length: Duration::from_secs(1) };

    /// Pairs of sessions with intervals of 2, 4, 6 and 8 blocks, in memory for 11 blocks. The two short intervals have all their
    /// blocks, the long intervals some.
    #[test]
    fn short_intervals_have_their_blocks() {
        let cache = IntervalCache::new(Cache::new(11));
        let intervals = [8, 4, 6, 2];
        let mut hits = [0; 4];
        for now in 0..100_u64 {
            let at = Duration::from_secs(now);
            for (pool, interval) in intervals.iter().enumerate() {
                for (is_second, begins) in [(false, 0), (true, *interval)] {
                    if now == begins {
                        cache.enter(&pool, WINDOW, 0, at);
                    }
                    if let Some(block) = now.checked_sub(begins) {
                        let (_, is_hit) = cache.take(&pool, (block, block), 1, at, || ());
                        hits[pool] += u64::from(is_hit && is_second && now >= 20);
                    }
                }
            }
            assert!(cache.blocks().weight() <= 11);
        }
        assert!(hits[3] == 80 && hits[1] == 80, "{hits:?}");
        assert!(hits[2] >= 30 && hits[0] <= hits[2], "{hits:?}");
        for (pool, interval) in intervals.iter().enumerate() {
            for begins in [0, *interval] {
                cache.leave(&pool, 100 - begins, Duration::from_secs(100));
            }
        }
        assert!(cache.blocks().is_empty());
    }

    #[test]
    fn sessions_that_stand_still_give_way() {
        let cache = IntervalCache::new(Cache::new(4));
        let play =
            |pool: char, block: u64, now: u64| cache.take(&pool, (block, block), 1, Duration::from_secs(now), || ()).1;
        for pool in ['a', 'b'] {
            cache.enter(&pool, WINDOW, 0, Duration::ZERO);
            cache.enter(&pool, WINDOW, 0, Duration::ZERO);
        }
        // The second session of a stays at the beginning.
        (0..4).for_each(|block| assert!(!play('a', block, block)));
        assert!(!play('b', 0, 4) && !cache.blocks().contains(&('b', 9)));
        // Its blocks are given up, and b's find room.
        (1..5).for_each(|block| assert!(!play('b', block, 30 + block)));
        let kept = (1..5).filter(|block| cache.blocks().contains(&('b', *block))).count();
        assert_eq!(kept, 4);
    }
}
