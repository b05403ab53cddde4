//! A cache with a byte budget and SIEVE eviction.
//!
//! SIEVE (Zhang et al., "SIEVE is Simpler than LRU", NSDI 2024): entries stand in a queue by age; a hit only marks
//! its entry; a hand walks from the oldest to the newest, clears marks and evicts the first unmarked entry. A hit
//! moves nothing, and what is read once (a viewer who watches a film through) goes first.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Marks the end of a chain of entries.
const NONE: usize = usize::MAX;

/// A cache whose entries weigh what their owner says, bounded by a budget.
///
/// One mutex guards it: an operation is a hash lookup and a few words of bookkeeping, and entries are large enough
/// that a thread comes here rarely. Values are cloned out, so they are reference-counted in practice.
pub struct Cache<K, V> {
    inner: Mutex<Inner<K, V>>,
}

/// What a [`Cache`] holds and did since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// The weight of all entries now.
    pub weight: u64,
    /// The most that entries and reservations may weigh together.
    pub budget: u64,
    /// Entries now.
    pub entries: u64,
    /// Lookups that found an entry.
    pub hits: u64,
    /// Lookups that found none.
    pub misses: u64,
    /// Entries put in.
    pub insertions: u64,
    /// Entries put out for want of room.
    pub evictions: u64,
    /// Entries refused because they alone exceed the budget.
    pub refused: u64,
}

struct Node<K, V> {
    key: K,
    value: V,
    weight: u64,
    visited: bool,
    newer: usize,
    older: usize,
}

struct Inner<K, V> {
    map: HashMap<K, usize>,
    nodes: Vec<Option<Node<K, V>>>,
    free: Vec<usize>,
    newest: usize,
    oldest: usize,
    hand: usize,
    reserved: u64,
    counters: CacheCounters,
}

impl<K: Clone + Eq + Hash, V: Clone> Cache<K, V> {
    /// An empty cache that holds at most `budget` of weight.
    pub fn new(budget: u64) -> Self {
        Self {
            inner: Mutex::new(Inner {
                map: HashMap::new(),
                nodes: Vec::new(),
                free: Vec::new(),
                newest: NONE,
                oldest: NONE,
                hand: NONE,
                reserved: 0,
                counters: CacheCounters { budget, ..CacheCounters::default() },
            }),
        }
    }

    /// Looks an entry up, and marks it as used.
    pub fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let mut inner = self.lock();
        let Some(&index) = inner.map.get(key) else {
            inner.counters.misses += 1;
            return None;
        };
        inner.counters.hits += 1;
        let node = inner.nodes[index].as_mut()?;
        node.visited = true;
        Some(node.value.clone())
    }

    /// Whether there is an entry, without marking or counting.
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.lock().map.contains_key(key)
    }

    /// Puts an entry in, in place of one with the same key, and puts out others where room is wanted.
    ///
    /// Returns whether it is in: an entry for which there is no room even alone is refused.
    pub fn insert(&self, key: K, value: V, weight: u64) -> bool {
        self.insert_reserved(key, value, weight, 0)
    }

    /// Takes an entry out.
    pub fn remove<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let mut inner = self.lock();
        let index = inner.map.remove(key)?;
        inner.take(index).map(|node| node.value)
    }

    /// Takes out an entry where `unwanted` says so of its value, in one step.
    pub fn remove_if<Q>(&self, key: &Q, unwanted: impl FnOnce(&V) -> bool) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let mut inner = self.lock();
        let index = *inner.map.get(key)?;
        if !unwanted(&inner.nodes[index].as_ref()?.value) {
            return None;
        }
        inner.map.remove(key);
        inner.take(index).map(|node| node.value)
    }

    /// Takes everything out; counters stay.
    pub fn clear(&self) {
        let mut inner = self.lock();
        let nodes = std::mem::take(&mut inner.nodes);
        inner.map.clear();
        inner.free.clear();
        (inner.newest, inner.oldest, inner.hand) = (NONE, NONE, NONE);
        inner.counters.weight = 0;
        inner.counters.entries = 0;
        drop(inner);
        drop(nodes);
    }

    /// The weight of all entries.
    pub fn weight(&self) -> u64 {
        self.lock().counters.weight
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.lock().map.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What it holds and did.
    pub fn counters(&self) -> CacheCounters {
        self.lock().counters
    }

    /// Sets room aside for something that is being made, putting entries out for it.
    ///
    /// Returns whether there is that much room. It must be given back by [`Cache::release`] or used up by
    /// [`Cache::insert_reserved`].
    pub(crate) fn reserve(&self, weight: u64) -> bool {
        let mut inner = self.lock();
        let Some(reserved) = inner.reserved.checked_add(weight) else {
            return false;
        };
        if reserved > inner.counters.budget {
            return false;
        }
        inner.reserved = reserved;
        let evicted = inner.make_room(0);
        drop(inner);
        drop(evicted);
        true
    }

    /// Gives reserved room back.
    pub(crate) fn release(&self, weight: u64) {
        let mut inner = self.lock();
        inner.reserved = inner.reserved.saturating_sub(weight);
    }

    /// Room set aside now.
    pub(crate) fn reserved(&self) -> u64 {
        self.lock().reserved
    }

    /// As [`Cache::insert`], using up `reserved` of the room set aside in the same step.
    pub(crate) fn insert_reserved(&self, key: K, value: V, weight: u64, reserved: u64) -> bool {
        let mut inner = self.lock();
        inner.reserved = inner.reserved.saturating_sub(reserved);
        let replaced = inner.map.remove(&key).and_then(|index| inner.take(index));
        let fits = weight.checked_add(inner.reserved).is_some_and(|sum| sum <= inner.counters.budget);
        if !fits {
            inner.counters.refused += 1;
            return false;
        }
        let evicted = inner.make_room(weight);
        inner.push(key, value, weight);
        drop(inner);
        // Values may be large or have work to do on drop: not under the lock.
        drop((replaced, evicted));
        true
    }

    fn lock(&self) -> MutexGuard<'_, Inner<K, V>> {
        // The bookkeeping runs no foreign code that could panic half-way but hashing, which comes first.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash, V> Inner<K, V> {
    /// Adds an entry as the newest.
    fn push(&mut self, key: K, value: V, weight: u64) {
        let node = Node { key: key.clone(), value, weight, visited: false, newer: NONE, older: self.newest };
        let index = match self.free.pop() {
            Some(index) => {
                self.nodes[index] = Some(node);
                index
            }
            None => {
                self.nodes.push(Some(node));
                self.nodes.len() - 1
            }
        };
        match self.node(self.newest) {
            Some(newest) => newest.newer = index,
            None => self.oldest = index,
        }
        self.newest = index;
        self.map.insert(key, index);
        self.counters.weight += weight;
        self.counters.entries += 1;
        self.counters.insertions += 1;
    }

    /// Unlinks an entry that is no longer in the map.
    fn take(&mut self, index: usize) -> Option<Node<K, V>> {
        let node = self.nodes[index].take()?;
        match self.node(node.newer) {
            Some(newer) => newer.older = node.older,
            None => self.newest = node.older,
        }
        match self.node(node.older) {
            Some(older) => older.newer = node.newer,
            None => self.oldest = node.newer,
        }
        if self.hand == index {
            self.hand = node.newer;
        }
        self.free.push(index);
        self.counters.weight -= node.weight;
        self.counters.entries -= 1;
        Some(node)
    }

    /// Evicts until `weight` more fits, and gives back what was evicted.
    fn make_room(&mut self, weight: u64) -> Vec<Node<K, V>> {
        let mut evicted = Vec::new();
        let room = self.counters.budget.saturating_sub(self.reserved);
        while self.counters.weight.saturating_add(weight) > room {
            let Some(node) = self.evict() else { break };
            evicted.push(node);
        }
        evicted
    }

    /// Moves the hand to the first entry that was not used since it last passed, and takes that out.
    fn evict(&mut self) -> Option<Node<K, V>> {
        loop {
            if self.hand == NONE {
                self.hand = self.oldest;
            }
            let index = self.hand;
            let node = self.node(index)?;
            if !node.visited {
                let key = node.key.clone();
                self.map.remove(&key);
                self.counters.evictions += 1;
                return self.take(index);
            }
            node.visited = false;
            self.hand = node.newer;
        }
    }

    fn node(&mut self, index: usize) -> Option<&mut Node<K, V>> {
        self.nodes.get_mut(index)?.as_mut()
    }
}

impl<K: Clone + Eq + Hash, V: Clone> fmt::Debug for Cache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("counters", &self.counters()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn keys(cache: &Cache<u32, u32>, of: std::ops::Range<u32>) -> Vec<u32> {
        of.filter(|key| cache.contains(key)).collect()
    }

    #[test]
    fn a_scan_does_not_put_out_what_is_used() {
        let cache = Cache::new(4);
        for key in 0..4 {
            assert!(cache.insert(key, key, 1));
        }
        cache.get(&0);
        cache.get(&2);
        for key in 4..100 {
            cache.insert(key, key, 1);
            cache.get(&0);
            cache.get(&2);
        }
        assert!(cache.contains(&0) && cache.contains(&2));
        assert_eq!(cache.len(), 4);
    }

    /// The example of the paper, figure 1: A..G with A, B, G used; H, A, D, I, B, J come.
    #[test]
    fn the_hand_walks_as_published() {
        let cache = Cache::new(7);
        // Oldest to newest: G F E D C B A.
        for key in ['G', 'F', 'E', 'D', 'C', 'B', 'A'] {
            cache.insert(key, (), 1);
        }
        for key in ['A', 'B', 'G'] {
            cache.get(&key);
        }
        let mut out = Vec::new();
        let mut request = |key: char| {
            if cache.get(&key).is_none() {
                let before: Vec<char> = ('A'..='J').filter(|k| cache.contains(k)).collect();
                cache.insert(key, (), 1);
                out.extend(before.into_iter().filter(|k| !cache.contains(k)));
            }
        };
        for key in ['H', 'A', 'D', 'I', 'B', 'J'] {
            request(key);
        }
        assert_eq!(out, ['F', 'E', 'C']);
    }

    #[test]
    fn weight_never_exceeds_the_budget() {
        let cache = Cache::new(1000);
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let key = rng.u32(0..200);
            match rng.u32(0..10) {
                0 => drop(cache.remove(&key)),
                1..5 => drop(cache.get(&key)),
                _ => drop(cache.insert(key, key, rng.u64(0..300))),
            }
            let counters = cache.counters();
            assert!(counters.weight <= 1000);
            assert_eq!(counters.entries as usize, cache.len());
        }
        let held = keys(&cache, 0..200);
        assert_eq!(held.len(), cache.len());
        for key in held {
            cache.remove(&key);
        }
        assert_eq!((cache.weight(), cache.len()), (0, 0));
        assert!(cache.insert(1, 1, 1000));
    }

    #[test]
    fn too_large_is_refused_and_leaves_the_rest() {
        let cache = Cache::new(10);
        cache.insert(1, 1, 5);
        assert!(!cache.insert(2, 2, 11));
        assert!(cache.contains(&1));
        assert_eq!(cache.counters().refused, 1);
        assert!(!Cache::new(u64::MAX).insert_reserved(0, 0, u64::MAX, 0) || cache.contains(&1));
    }

    #[test]
    fn replacing_counts_the_new_weight() {
        let cache = Cache::new(10);
        cache.insert(1, 1, 8);
        cache.insert(1, 2, 3);
        assert_eq!((cache.get(&1), cache.weight()), (Some(2), 3));
    }

    #[test]
    fn reservations_take_room_from_entries() {
        let cache = Cache::new(10);
        for key in 0..10 {
            cache.insert(key, key, 1);
        }
        assert!(cache.reserve(6));
        assert_eq!(cache.weight(), 4);
        assert!(!cache.reserve(5));
        assert!(!cache.insert(100, 0, 5), "only 4 are left for entries");
        assert!(cache.insert_reserved(101, 0, 6, 6));
        assert_eq!((cache.weight(), cache.reserved()), (10, 0));
        cache.release(3);
        assert_eq!(cache.reserved(), 0);
    }

    #[test]
    fn values_are_dropped_when_out() {
        let cache = Cache::new(1);
        let value = Arc::new(());
        cache.insert(1, value.clone(), 1);
        cache.insert(2, Arc::new(()), 1);
        assert_eq!(Arc::strong_count(&value), 1);
        assert!(cache.remove_if(&2, |_| false).is_none());
        assert!(cache.remove_if(&2, |_| true).is_some());
        cache.insert(3, value.clone(), 1);
        cache.clear();
        assert_eq!(Arc::strong_count(&value), 1);
        assert!(cache.is_empty() && cache.weight() == 0);
    }
}
