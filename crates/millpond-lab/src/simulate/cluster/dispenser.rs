//! A dispenser's interval cache.

use millpond_store::{
    Cache,
    intervals::{IntervalPools, Window},
};
use std::time::Duration;

/// The striping units in the memory of a dispenser.
pub(super) struct Dispenser {
    pools: IntervalPools<usize>,
    /// When each unit arrives or has arrived, by object and number.
    units: Cache<(usize, u64), Duration>,
    window: Window,
}

impl Dispenser {
    /// A dispenser with `memory` bytes for units, 0 without a cache, and a caching window in units.
    pub(super) fn new(memory: u64, window: u64) -> Self {
        let window = if memory == 0 { 0 } else { window };
        // As the stream engine: units stay for one more than the window, because positions vary.
        let window = Window { blocks: window, reach: window + 1 };
        Self { pools: IntervalPools::default(), units: Cache::new(memory), window }
    }

    pub(super) fn enter(&mut self, object: usize) {
        self.pools.enter(&object, self.window, 0);
    }

    /// Moves a stream to `unit`. Returns when it has it, and whether it came from memory; `read` reads it from the storages.
    pub(super) fn take(
        &mut self,
        object: usize,
        unit: u64,
        bytes: u64,
        now: Duration,
        read: impl FnOnce() -> Duration,
    ) -> (Duration, bool) {
        if self.window.blocks == 0 {
            return (read(), false);
        }
        let advance = self.pools.advance(&object, unit, unit);
        self.drop_unwanted(object, advance.unwanted);
        let key = (object, unit);
        let found = self.units.get(&key);
        let arrives = found.unwrap_or_else(read).max(now);
        if !self.pools.wants(&object, unit) {
            self.units.remove(&key);
        } else if found.is_none() && self.units.insert(key, arrives, bytes) {
            // Marks it as used: units that no stream is known to want are to be evicted first.
            self.units.get(&key);
        }
        (arrives, found.is_some())
    }

    fn drop_unwanted(&self, object: usize, units: Vec<u64>) {
        for unit in units {
            self.units.remove(&(object, unit));
        }
    }
}
