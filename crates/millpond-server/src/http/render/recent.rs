//! Recently requested segments, for the choice of those worth packing.

use crate::library::Resource;
use millpond_store::Cache;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most segments that are remembered.
const CAPACITY: u64 = 16_384;

/// Recent requests for segments that were not in memory.
pub(super) struct RecentSegments {
    /// Value of `bytes` at the last request for each segment.
    last: Cache<(u64, Resource), u64>,
    /// Sum of the lengths of all requested segments.
    bytes: AtomicU64,
}

impl RecentSegments {
    /// Creates an empty record.
    pub(super) fn new() -> Self {
        Self { last: Cache::new(CAPACITY), bytes: AtomicU64::new(0) }
    }

    /// Records a request for a segment of `len` bytes. Tells whether the last request for it was at most `window` bytes
    /// of segments ago: a cache of `window` bytes would still hold it.
    pub(super) fn is_repeated(&self, key: &(u64, Resource), len: u64, window: u64) -> bool {
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
        let recent = RecentSegments::new();
        assert!(!recent.is_repeated(&key(1), 100, 1000));
        assert!(recent.is_repeated(&key(1), 100, 1000));
        assert!(!recent.is_repeated(&key(2), 100, 1000), "another segment");
        // Ten in turn fit a window of a thousand bytes, eleven don't.
        for count in [10, 11] {
            let recent = RecentSegments::new();
            let mut packed = 0;
            for _ in 0..3 {
                packed += (0..count).filter(|n| recent.is_repeated(&key(*n), 100, 1000)).count();
            }
            assert_eq!(packed, if count == 10 { 20 } else { 0 }, "{count} in turn");
        }
    }
}
