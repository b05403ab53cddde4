//! The bound: what a cache that knows the future would miss (Belady, "A study of replacement algorithms for a
//! virtual-storage computer", 1966). It evicts the entry whose next use is the furthest, first of all one that is never used
//! again. With slices of one size that is the optimum; with the last slices of objects, or whole
//! objects, which are smaller or larger, it is near it.

use super::{slice_item::item, workload::Workload};
use millpond_store::policy::Item;
use std::collections::{BTreeSet, HashMap};

/// Slices asked for in the order of time, each with how many of its bytes are read. `slice` is none where objects are
/// cached whole.
fn asks(workload: &Workload, slice: Option<u32>) -> Vec<(Item, u64)> {
    let mut asks = Vec::new();
    for visit in &workload.visits {
        let slice = slice.map_or(visit.len.max(1), u64::from);
        let mut at = visit.from;
        while at < visit.to {
            let index = at / slice;
            let end = ((index + 1) * slice).min(visit.to);
            asks.push((visit.at + (at - visit.from) as f64 / visit.rate, item(visit, index, slice), end - at));
            at = end;
        }
    }
    // Stable: those of one moment stay in their order.
    asks.sort_by(|a, b| a.0.total_cmp(&b.0));
    asks.into_iter().map(|(_, item, bytes)| (item, bytes)).collect()
}

/// Returns the share of the bytes read that a cache of `capacity` bytes must miss.
pub fn byte_miss_ratio(workload: &Workload, slice: Option<u32>, capacity: u64) -> f64 {
    let asks = asks(workload, slice);
    let mut next = vec![usize::MAX; asks.len()];
    let mut seen: HashMap<u64, usize> = HashMap::new();
    for (place, (item, _)) in asks.iter().enumerate().rev() {
        if let Some(later) = seen.insert(item.key, place) {
            next[place] = later;
        }
    }
    drop(seen);
    // By when they are asked for again, the latest last.
    let mut order: BTreeSet<(usize, u64)> = BTreeSet::new();
    let mut held: HashMap<u64, (usize, u64)> = HashMap::new();
    let (mut used, mut missed, mut read) = (0, 0, 0);
    for (place, (item, bytes)) in asks.iter().enumerate() {
        read += bytes;
        let (key, size) = (item.key, u64::from(item.size));
        if let Some((again, _)) = held.remove(&key) {
            order.remove(&(again, key));
            used -= size;
        } else {
            missed += bytes;
        }
        if next[place] == usize::MAX || size > capacity {
            continue;
        }
        order.insert((next[place], key));
        held.insert(key, (next[place], size));
        used += size;
        while used > capacity {
            let Some((_, out)) = order.pop_last() else { break };
            if let Some((_, size)) = held.remove(&out) {
                used -= size;
            }
        }
    }
    missed as f64 / read.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::workload::Visit;

    fn of(keys: &[u64]) -> Workload {
        let visit = |(at, key): (usize, &u64)| Visit {
            at: at as f64,
            object: *key,
            len: 1,
            from: 0,
            to: 1,
            rate: f64::INFINITY,
        };
        Workload { name: "test".into(), visits: keys.iter().enumerate().map(visit).collect() }
    }

    #[test]
    fn the_textbook_string_misses_nine_times() {
        // Silberschatz, Operating System Concepts: three frames, optimal replacement: nine faults of twenty. There a
        // page must be in to be used; here it may go by, which saves two.
        let keys = [7, 0, 1, 2, 0, 3, 0, 4, 2, 3, 0, 3, 2, 1, 2, 0, 1, 7, 0, 1];
        let misses = byte_miss_ratio(&of(&keys), None, 3) * 20.0;
        assert!((7.0..=9.0).contains(&misses.round()), "{misses}");
        assert_eq!(byte_miss_ratio(&of(&keys), None, 100) * 20.0, 6.0);
    }

    #[test]
    fn a_loop_that_does_not_fit_keeps_what_fits() {
        let keys: Vec<u64> = (0..100).map(|n| n % 10).collect();
        // Nine stay of ten: the tenth is missed each time round.
        let misses = byte_miss_ratio(&of(&keys), None, 9) * 100.0;
        assert_eq!(misses.round(), 19.0);
    }
}
