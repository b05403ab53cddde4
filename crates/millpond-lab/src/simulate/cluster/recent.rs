//! Sessions that have just begun, in the pools of interval caching.

use millpond_store::intervals::{IntervalPools, Window};
use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

/// The caching window: ten seconds, in blocks of one second.
const WINDOW: Window = Window { blocks: 10, reach: 11, length: Duration::from_secs(1) };

/// The sessions of each node and asset that are near its beginning. Sessions play at the same rate, so that one that is led at its
/// beginning is led to its end; only beginnings are followed.
#[derive(Debug, Default)]
pub(super) struct RecentSessions {
    pools: IntervalPools<(usize, usize)>,
    /// When each session began, and its next block.
    sessions: HashMap<(usize, usize), VecDeque<(Duration, u64)>>,
}

impl RecentSessions {
    /// Adds a session. Returns whether it is led by another one.
    pub(super) fn begin(&mut self, node: usize, asset: usize, now: Duration) -> bool {
        let key = (node, asset);
        let sessions = self.sessions.entry(key).or_default();
        for (begun, next) in sessions.iter_mut() {
            let block = now.saturating_sub(*begun).as_secs();
            if block > *next {
                self.pools.advance(&key, *next, block - 1, now);
                *next = block;
            }
        }
        while let Some((_, next)) = sessions.front().copied().filter(|(_, next)| *next > WINDOW.reach) {
            self.pools.leave(&key, next, now);
            sessions.pop_front();
        }
        let is_led = self.pools.leads(&key, 0);
        self.pools.enter(&key, WINDOW, 0, now);
        sessions.push_back((now, 0));
        is_led
    }

    /// Forgets the sessions of a node.
    pub(super) fn kill(&mut self, node: usize, now: Duration) {
        let pools = &mut self.pools;
        self.sessions.retain(|key, sessions| {
            if key.0 == node {
                sessions.iter().for_each(|(_, next)| drop(pools.leave(key, *next, now)));
            }
            key.0 != node
        });
    }
}
