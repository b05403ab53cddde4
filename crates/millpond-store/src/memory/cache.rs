//! Typed entries of one kind in a [`Memory`].

use std::any::Any;
use std::borrow::Borrow;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use crate::{
    memory::{CacheCounters, Memory},
    policy::{Item, Need, PolicyName},
};

/// Entries by key. Their owner states their weight, which counts against the budget of a [`Memory`].
///
/// Values are cloned out, so they are reference-counted in practice. Clones are views of the same entries.
pub struct Cache<K, V> {
    memory: Arc<Memory>,
    kind: usize,
    types: PhantomData<fn(K, V)>,
}

impl<K, V> Clone for Cache<K, V> {
    fn clone(&self) -> Self {
        Self { memory: self.memory.clone(), kind: self.kind, types: PhantomData }
    }
}

impl<K, V> Cache<K, V>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Creates a cache with its own memory, of at most `budget` weight, under SIEVE.
    pub fn new(budget: u64) -> Self {
        Self::of(&Memory::new(budget, PolicyName::Sieve), "all")
    }

    /// Creates a kind of entries in a shared memory.
    pub fn of(memory: &Arc<Memory>, name: &'static str) -> Self {
        Self { memory: memory.clone(), kind: memory.kind(name), types: PhantomData }
    }

    /// Returns an entry, and counts a use of it.
    pub fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let object = self.hash(key);
        self.get_item(key, &Item { key: object, object, index: 0, of: 1, size: 0 })
    }

    /// As [`Cache::get`], for an entry that is a part of an object, which `item` describes.
    pub(crate) fn get_item<Q>(&self, key: &Q, item: &Item) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let item = Item { key: self.hash(key), ..*item };
        let found = self.memory.get(self.kind, &item, |value| is_of::<K, V, Q>(value, key))?;
        found.downcast_ref::<(K, V)>().map(|(_, value)| value.clone())
    }

    /// Returns whether there is an entry. Does not count as a use.
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.memory.peek(self.hash(key), |value| is_of::<K, V, Q>(value, key)).unwrap_or(false)
    }

    /// Inserts an entry, replaces one with the same key, and evicts others where necessary.
    ///
    /// Returns whether it was inserted: an entry larger than the budget is refused.
    pub fn insert(&self, key: K, value: V, weight: u64) -> bool {
        let hash = self.hash(&key);
        let Ok(size) = u32::try_from(weight) else { return false };
        let item = Item { key: hash, object: hash, index: 0, of: 1, size };
        self.memory.insert(self.kind, item, Arc::new((key, value)), 0)
    }

    /// As [`Cache::insert`], for an entry of which it is known when it is needed next. It is refused where others would have to be evicted
    /// that are needed sooner.
    pub(crate) fn insert_needed(&self, key: K, value: V, weight: u64, need: Need) -> bool {
        let hash = self.hash(&key);
        let Ok(size) = u32::try_from(weight) else { return false };
        let item = Item { key: hash, object: hash, index: 0, of: 1, size };
        self.memory.insert_needed(self.kind, (item, Some(need)), Arc::new((key, value)), 0)
    }

    /// Changes when an entry is needed next.
    pub(crate) fn set_need<Q>(&self, key: &Q, need: Need)
    where
        K: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.memory.set_need(self.hash(key), need);
    }

    /// Entries of the memory that were needed before a time are evicted first from now on.
    pub(crate) fn give_up_needs(&self, before: Duration) {
        self.memory.give_up_needs(before);
    }

    /// As [`Cache::insert`], for an entry that is a part of an object. Releases `reserved` bytes of a reservation in
    /// the same step.
    pub(crate) fn insert_item(&self, key: K, value: V, item: Item, reserved: u64) -> bool {
        let item = Item { key: self.hash(&key), ..item };
        self.memory.insert(self.kind, item, Arc::new((key, value)), reserved)
    }

    /// Removes an entry.
    pub fn remove<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.remove_if(key, |_| true)
    }

    /// Removes an entry whose value is `unwanted`, in one step.
    pub fn remove_if<Q>(&self, key: &Q, unwanted: impl FnOnce(&V) -> bool) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let unwanted = |value: &dyn Any| {
            value.downcast_ref::<(K, V)>().is_some_and(|(other, value)| other.borrow() == key && unwanted(value))
        };
        let removed = self.memory.remove_if(self.hash(key), unwanted)?;
        removed.downcast_ref::<(K, V)>().map(|(_, value)| value.clone())
    }

    /// Removes all entries that are unwanted. Returns their number.
    pub fn purge(&self, unwanted: impl Fn(&K, &V) -> bool) -> usize {
        self.memory
            .purge(self.kind, |value| value.downcast_ref::<(K, V)>().is_some_and(|(key, value)| unwanted(key, value)))
    }

    /// Calls `each` with every entry.
    pub fn each(&self, mut each: impl FnMut(&K, &V)) {
        self.memory.each(self.kind, |value| {
            if let Some((key, value)) = value.downcast_ref::<(K, V)>() {
                each(key, value);
            }
        });
    }

    /// Removes all entries of this kind. Counters stay.
    pub fn clear(&self) {
        self.purge(|_, _| true);
    }

    /// Returns the weight of all entries.
    pub fn weight(&self) -> u64 {
        self.counters().weight
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.counters().entries as usize
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the counters. The budget is the budget of its memory.
    pub fn counters(&self) -> CacheCounters {
        self.memory.counters(self.kind)
    }

    /// Returns the hash that names an entry in the memory.
    pub(crate) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.kind.hash(&mut hasher);
        key.hash(&mut hasher);
        hasher.finish()
    }
}

fn is_of<K, V, Q>(value: &dyn Any, key: &Q) -> bool
where
    K: Borrow<Q> + 'static,
    V: 'static,
    Q: Eq + ?Sized,
{
    value.downcast_ref::<(K, V)>().is_some_and(|(other, _)| other.borrow() == key)
}

impl<K, V> fmt::Debug for Cache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("counters", &self.memory.counters(self.kind)).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert!(cache.counters().weight <= 1000);
        }
        let mut held = Vec::new();
        cache.each(|key, _| held.push(*key));
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
        assert!(!cache.insert(2, 2, 11) && !cache.insert(2, 2, u64::MAX));
        assert!(cache.contains(&1));
        assert_eq!(cache.counters().refused, 1);
    }

    #[test]
    fn replacing_counts_the_new_weight() {
        let cache = Cache::new(10);
        cache.insert(1, 1, 8);
        cache.insert(1, 2, 3);
        assert_eq!((cache.get(&1), cache.weight()), (Some(2), 3));
    }

    #[test]
    fn kinds_share_one_budget_and_are_counted_apart() {
        let memory = Memory::new(10, PolicyName::Sieve);
        let (first, second) = (Cache::of(&memory, "first"), Cache::of(&memory, "second"));
        for key in 0..10 {
            first.insert(key, "first", 1);
        }
        assert_eq!((first.get(&3), second.get(&3)), (Some("first"), None::<u32>));
        second.insert(3, 7, 4);
        assert_eq!((first.get(&3), second.get(&3)), (Some("first"), Some(7)));
        assert_eq!((first.weight(), second.weight(), memory.used()), (6, 4, 10));
        assert_eq!((first.counters().evictions, second.counters().evictions), (4, 0));
        assert_eq!(first.purge(|key, _| *key != 3), 5);
        memory.set_budget(2);
        assert!(memory.used() <= 2);
    }

    #[test]
    fn reservations_take_room_from_entries() {
        let memory = Memory::new(10, PolicyName::Sieve);
        let cache = Cache::of(&memory, "all");
        for key in 0..10 {
            cache.insert(key, key, 1);
        }
        assert!(memory.reserve(6));
        assert_eq!(cache.weight(), 4);
        assert!(!memory.reserve(5));
        assert!(!cache.insert(100, 0, 5), "only 4 are left for entries");
        let item = Item { key: cache.hash(&101), object: 0, index: 0, of: 1, size: 6 };
        assert!(cache.insert_item(101, 0, item, 6));
        assert_eq!((cache.contains(&101), memory.used()), (true, 10));
        memory.release(3);
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
