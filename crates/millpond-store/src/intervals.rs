//! Interval caching (Srinilta and Choudhary 3.2): which blocks stay in memory for sessions that follow another one.
//!
//! There is a pool for each thing that is played. The first session in a pool, the owner, reads; a session within the caching
//! window behind another one finds the blocks in memory. A block stays while a session will reach it within the window. A pool is
//! open while a session is within one window of the beginning: its blocks of that window stay then, for sessions that begin later.
//!
//! Pure: it knows positions, and its callers hold the blocks. The stream engine and the simulator drive it.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
};

/// A caching window in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// A session this many blocks behind another one reads memory.
    pub blocks: u64,
    /// Blocks stay for sessions that are behind by up to this many blocks. At least `blocks`: positions at the window's edge vary.
    pub reach: u64,
}

/// The positions of all sessions, by what they play.
#[derive(Debug)]
pub struct IntervalPools<K>(HashMap<K, Pool>);

/// What follows from a session's move.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advance {
    /// Whether another session is ahead of the block, by no more than the window.
    pub follows: bool,
    /// Blocks that no session wants any more.
    pub unwanted: Vec<u64>,
}

#[derive(Debug)]
struct Pool {
    /// Number of sessions by their next block.
    sessions: BTreeMap<u64, u32>,
    window: Window,
}

impl<K> Default for IntervalPools<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Clone + Eq + Hash> IntervalPools<K> {
    /// Adds a session that reads `block` next. The first session of a pool chooses its window.
    pub fn enter(&mut self, key: &K, window: Window, block: u64) {
        let pool = || Pool { sessions: BTreeMap::new(), window };
        self.0.entry(key.clone()).or_insert_with(pool).enter(block);
    }

    /// Whether a session is at `block`, or ahead of it by no more than the window.
    pub fn leads(&self, key: &K, block: u64) -> bool {
        self.0.get(key).is_some_and(|pool| pool.leads(block))
    }

    /// Whether a session will reach `block` within the window's reach.
    pub fn wants(&self, key: &K, block: u64) -> bool {
        self.0.get(key).is_some_and(|pool| pool.wants(block))
    }

    /// Moves a session, whose next block was `next`, behind `block`.
    pub fn advance(&mut self, key: &K, next: u64, block: u64) -> Advance {
        let Some(pool) = self.0.get_mut(key) else { return Advance::default() };
        let follows = pool.follows(block);
        let was_open = pool.is_open();
        pool.leave(next);
        pool.enter(block.saturating_add(1));
        // Blocks that it skipped, and those of an open pool, stay only if another session wants them.
        let mut unwanted = Vec::new();
        if was_open && !pool.is_open() {
            unwanted.extend(pool.unwanted(0..pool.window.reach));
        }
        if next != block {
            unwanted.extend(pool.unwanted(next..next.saturating_add(pool.window.reach)));
        }
        Advance { follows, unwanted }
    }

    /// Removes a session whose next block was `next`. Returns the blocks that no session wants any more.
    pub fn leave(&mut self, key: &K, next: u64) -> Vec<u64> {
        let Some(pool) = self.0.get_mut(key) else { return Vec::new() };
        let was_open = pool.is_open();
        pool.leave(next);
        let from = if was_open { 0 } else { next };
        let unwanted = pool.unwanted(from..next.saturating_add(pool.window.reach)).collect();
        if pool.sessions.is_empty() {
            self.0.remove(key);
        }
        unwanted
    }
}

impl Pool {
    fn enter(&mut self, block: u64) {
        *self.sessions.entry(block).or_default() += 1;
    }

    fn leave(&mut self, block: u64) {
        if let Some(count) = self.sessions.get_mut(&block) {
            *count -= 1;
            if *count == 0 {
                self.sessions.remove(&block);
            }
        }
    }

    /// Whether a session is within reach of the beginning.
    fn is_open(&self) -> bool {
        self.sessions.keys().next().is_some_and(|last| *last <= self.window.reach)
    }

    fn wants(&self, block: u64) -> bool {
        let reach = self.window.reach;
        let furthest = block.saturating_sub(reach);
        self.sessions.range(furthest..=block).next().is_some() || (block < reach && self.is_open())
    }

    fn follows(&self, block: u64) -> bool {
        self.sessions.range(block.saturating_add(1)..=block.saturating_add(self.window.blocks)).next().is_some()
    }

    fn leads(&self, block: u64) -> bool {
        self.sessions.range(block..=block.saturating_add(self.window.blocks)).next().is_some()
    }

    fn unwanted(&self, blocks: std::ops::Range<u64>) -> impl Iterator<Item = u64> {
        blocks.filter(|block| !self.wants(*block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { blocks: 3, reach: 4 };

    #[test]
    fn a_follower_leads_nobody_to_the_origin() {
        let mut pools = IntervalPools::default();
        pools.enter(&'a', WINDOW, 0);
        assert!(pools.leads(&'a', 0) && !pools.leads(&'b', 0));
        for block in 0..3 {
            assert_eq!(pools.advance(&'a', block, block), Advance::default());
        }
        pools.enter(&'a', WINDOW, 0);
        assert!(pools.advance(&'a', 0, 0).follows && pools.wants(&'a', 3) && !pools.wants(&'a', 9));
        assert_eq!(pools.advance(&'a', 3, 3), Advance::default());
        assert_eq!(pools.leave(&'a', 1), [0_u64; 0], "the owner is still near the beginning");
        assert_eq!(pools.advance(&'a', 4, 4).unwanted, [0, 1, 2, 3], "now it is not");
        assert_eq!(pools.leave(&'a', 5), [5, 6, 7, 8]);
        assert!(pools.0.is_empty());
    }
}
