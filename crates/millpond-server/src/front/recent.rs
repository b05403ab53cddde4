//! Segments that were asked for lately, for the choice of those worth keeping.

use crate::library::Resource;
use millpond_store::Cache;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many segments are remembered.
const MOST: u64 = 16_384;

/// Requests for segments that were not in memory.
pub(super) struct Recent {
    /// For each segment the value of `bytes` when it was asked for last.
    last: Cache<(u64, Resource), u64>,
    /// Bytes of all segments asked for.
    bytes: AtomicU64,
}

impl Recent {
    pub(super) fn new() -> Self {
        Self { last: Cache::new(MOST), bytes: AtomicU64::new(0) }
    }

    /// Notes that a segment of `len` bytes is asked for; tells whether it was before, and no more than `window` bytes of
    /// segments ago. A memory of so many bytes would have it still.
    pub(super) fn again(&self, key: &(u64, Resource), len: u64, window: u64) -> bool {
        let now = self.bytes.fetch_add(len, Ordering::Relaxed);
        let before = self.last.get(key);
        self.last.insert(key.clone(), now, 1);
        before.is_some_and(|before| now.saturating_sub(before) <= window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> (u64, Resource) {
        (7, Resource::TsSegment("v1".to_owned(), number))
    }

    #[test]
    fn the_second_request_counts_where_it_is_soon() {
        let recent = Recent::new();
        assert!(!recent.again(&key(1), 100, 1000));
        assert!(recent.again(&key(1), 100, 1000));
        assert!(!recent.again(&key(2), 100, 1000), "another segment");
        // Ten in turn fit a window of a thousand bytes, eleven don't.
        for count in [10, 11] {
            let recent = Recent::new();
            let mut packed = 0;
            for _ in 0..3 {
                packed += (0..count).filter(|n| recent.again(&key(*n), 100, 1000)).count();
            }
            assert_eq!(packed, if count == 10 { 20 } else { 0 }, "{count} in turn");
        }
    }
}
