//! A dispenser's interval cache.

use millpond_store::{
    Cache,
    intervals::{IntervalCache, Window},
};
use std::time::Duration;

/// The striping units in the memory of a dispenser.
pub(super) struct Dispenser {
    /// When each unit arrives or has arrived, by object and number.
    units: IntervalCache<usize, Duration>,
    window: Window,
}

impl Dispenser {
    /// A dispenser with `memory` bytes for units, 0 without a cache, and a caching window in units, each of which plays for `length`.
    pub(super) fn new(memory: u64, window: u64, length: Duration) -> Self {
        let window = if memory == 0 { 0 } else { window };
        // As the stream engine: units stay for one more than the window, because positions vary.
        let window = Window { blocks: window, reach: window + 1, length };
        Self { units: IntervalCache::new(Cache::new(memory)), window }
    }

    pub(super) fn enter(&mut self, object: usize, now: Duration) {
        self.units.enter(&object, self.window, 0, now);
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
        let (arrives, is_hit) = self.units.take(&object, (unit, unit), bytes, now, read);
        (arrives.max(now), is_hit)
    }
}
