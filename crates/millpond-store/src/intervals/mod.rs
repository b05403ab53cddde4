//! Interval caching (Srinilta and Choudhary 3.2): which blocks stay in memory for sessions that follow another one.
//!
//! There is a pool for each thing that is played. The first session in a pool, the owner, reads; a session within the caching
//! window behind another one finds the blocks in memory. A block stays while a session will reach it within the window. A pool is
//! open while a session is within one window of the beginning: its blocks of that window stay then, for sessions that begin later.
//! Where memory is short, the block that is needed last is evicted, or not kept at all: so short intervals have their blocks.
//!
//! [`IntervalPools`] are pure: they know positions. An [`IntervalCache`] holds the blocks too. The stream engine and the simulator
//! drive it.

mod cache;

pub use cache::IntervalCache;

use crate::policy::Need;
use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    ops::Range,
    time::Duration,
};

/// A caching window in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// A session this many blocks behind another one reads memory.
    pub blocks: u64,
    /// Blocks stay for sessions that are behind by up to this many blocks. At least `blocks`: positions at the window's edge vary.
    pub reach: u64,
    /// Playing time of a block.
    pub length: Duration,
}

/// The positions of all sessions, by what they play.
#[derive(Debug)]
pub struct IntervalPools<K>(HashMap<K, Pool>);

/// The result of a session's step to another block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advance {
    /// Whether another session is ahead of the block, by no more than the window.
    pub follows: bool,
    /// Blocks whose need is another one now.
    pub changes: Vec<Change>,
}

/// The need of a block that may be in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The block.
    pub block: u64,
    /// When it is needed next; `None` where no session wants it any more.
    pub need: Option<Need>,
}

#[derive(Debug)]
struct Pool {
    /// Number of sessions by their next block.
    sessions: BTreeMap<u64, u32>,
    /// The furthest next block of any session, also of those that have left.
    furthest: u64,
    window: Window,
}

impl<K> Default for IntervalPools<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Clone + Eq + Hash> IntervalPools<K> {
    /// Adds a session that reads `block` next. The first session of a pool chooses its window.
    pub fn enter(&mut self, key: &K, window: Window, block: u64, now: Duration) -> Vec<Change> {
        let pool = || Pool { sessions: BTreeMap::new(), furthest: 0, window };
        let pool = self.0.entry(key.clone()).or_insert_with(pool);
        pool.enter(block);
        pool.changes(pool.behind(block), now).collect()
    }

    /// Whether a session is at `block`, or ahead of it by no more than the window.
    pub fn leads(&self, key: &K, block: u64) -> bool {
        self.0.get(key).is_some_and(|pool| pool.leads(block))
    }

    /// When a session will need `block` next. `None` where none will reach it within the window's reach.
    pub fn need(&self, key: &K, block: u64, now: Duration) -> Option<Need> {
        self.0.get(key).and_then(|pool| pool.need(block, now))
    }

    /// Moves a session, whose next block was `next`, behind `block`.
    pub fn advance(&mut self, key: &K, next: u64, block: u64, now: Duration) -> Advance {
        let Some(pool) = self.0.get_mut(key) else { return Advance::default() };
        let follows = pool.follows(block);
        let was_open = pool.is_open();
        let left = pool.behind(next);
        pool.leave(next);
        pool.enter(block.saturating_add(1));
        // Blocks of an open pool stay only if another session wants them. One that plays on needs what it needed.
        let mut changes = Vec::new();
        if was_open && !pool.is_open() {
            changes.extend(pool.changes(0..pool.window.reach, now));
        }
        if next != block {
            changes.extend(pool.changes(left, now));
            changes.extend(pool.changes(pool.behind(block.saturating_add(1)), now));
        }
        Advance { follows, changes }
    }

    /// Removes a session whose next block was `next`. Returns the blocks whose need is another one now.
    pub fn leave(&mut self, key: &K, next: u64, now: Duration) -> Vec<Change> {
        let Some(pool) = self.0.get_mut(key) else { return Vec::new() };
        let was_open = pool.is_open();
        let left = pool.behind(next);
        pool.leave(next);
        let mut changes: Vec<_> = pool.changes(left, now).collect();
        if was_open && !pool.is_open() {
            changes.extend(pool.changes(0..pool.window.reach, now));
        }
        if pool.sessions.is_empty() {
            self.0.remove(key);
        }
        changes
    }
}

impl Pool {
    fn enter(&mut self, block: u64) {
        *self.sessions.entry(block).or_default() += 1;
        self.furthest = self.furthest.max(block);
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

    fn need(&self, block: u64, now: Duration) -> Option<Need> {
        let Window { reach, length, .. } = self.window;
        let after = |blocks: u64| length.saturating_mul(u32::try_from(blocks).unwrap_or(u32::MAX));
        if let Some((next, _)) = self.sessions.range(block.saturating_sub(reach)..=block).next_back() {
            return Some(Need::At(now.saturating_add(after(block - next))));
        }
        (block < reach && self.is_open()).then(|| Need::Perhaps(after(block)))
    }

    fn follows(&self, block: u64) -> bool {
        self.sessions.range(block.saturating_add(1)..=block.saturating_add(self.window.blocks)).next().is_some()
    }

    fn leads(&self, block: u64) -> bool {
        self.sessions.range(block..=block.saturating_add(self.window.blocks)).next().is_some()
    }

    /// The blocks that a session at `next` may need, as far as sessions have read.
    fn behind(&self, next: u64) -> Range<u64> {
        next..next.saturating_add(self.window.reach).saturating_add(1).min(self.furthest)
    }

    fn changes(&self, blocks: Range<u64>, now: Duration) -> impl Iterator<Item = Change> {
        blocks.map(move |block| Change { block, need: self.need(block, now) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { blocks: 3, reach: 4, length: Duration::from_secs(2) };

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn unwanted(blocks: impl IntoIterator<Item = u64>) -> Vec<Change> {
        blocks.into_iter().map(|block| Change { block, need: None }).collect()
    }

    #[test]
    fn a_follower_leads_nobody_to_the_origin() {
        let now = Duration::ZERO;
        let mut pools = IntervalPools::default();
        pools.enter(&'a', WINDOW, 0, now);
        assert!(pools.leads(&'a', 0) && !pools.leads(&'b', 0));
        for block in 0..3 {
            assert_eq!(pools.advance(&'a', block, block, now), Advance::default());
        }
        pools.enter(&'a', WINDOW, 0, now);
        let wants = |pools: &IntervalPools<char>, block| pools.need(&'a', block, now).is_some();
        assert!(pools.advance(&'a', 0, 0, now).follows && wants(&pools, 3) && !wants(&pools, 9));
        assert_eq!(pools.advance(&'a', 3, 3, now), Advance::default());
        let left = pools.leave(&'a', 1, now);
        assert!(left.iter().all(|change| change.need.is_some()), "the owner is still near the beginning: {left:?}");
        assert_eq!(pools.advance(&'a', 4, 4, now).changes, unwanted(0..4), "now it is not");
        assert_eq!(pools.leave(&'a', 5, now), []);
        assert!(pools.0.is_empty());
    }

    #[test]
    fn needs_are_those_of_the_next_session_behind() {
        let at = |at| Some(Need::At(seconds(at)));
        let mut pools = IntervalPools::default();
        assert_eq!(pools.enter(&'a', WINDOW, 0, seconds(0)), [], "nothing was read");
        for block in 0..4 {
            pools.advance(&'a', block, block, seconds(2 * block));
        }
        assert_eq!(pools.need(&'a', 2, seconds(7)), Some(Need::Perhaps(seconds(4))));
        let change = |(block, need)| Change { block, need };
        let changes: Vec<_> = (0..4).map(|block| change((block, at(7 + 2 * block)))).collect();
        assert_eq!(pools.enter(&'a', WINDOW, 0, seconds(7)), changes);
        // Sessions that play on need what they needed: nothing changes.
        assert_eq!(pools.advance(&'a', 0, 0, seconds(7)), Advance::default());
        assert_eq!(pools.need(&'a', 3, seconds(9)), at(13));
        // A third one is nearer to block 2 and 3. It seeks back, and the second one's needs count again.
        assert_eq!(pools.enter(&'a', WINDOW, 2, seconds(9)), [change((2, at(9))), change((3, at(11)))]);
        let seek = pools.advance(&'a', 2, 0, seconds(9)).changes;
        assert_eq!(seek[..2], [change((2, at(11))), change((3, at(13)))]);
        // Only the window counts, however far the film goes.
        pools.enter(&'a', WINDOW, 100_000, seconds(9));
        assert_eq!(pools.leave(&'a', 100_000, seconds(9)).len(), 0);
        assert!(pools.advance(&'a', 1, 50_000, seconds(9)).changes.len() <= 14);
    }
}
