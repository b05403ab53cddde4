//! A bounded map whose entries that nobody asks for are forgotten, without a list of their uses.

use std::{collections::HashMap, hash::Hash};

/// Two maps. Entries that are looked up move into the younger one; when that is full, it becomes the older one, whose entries are
/// dropped. So an entry stays that is used once in the time of `most` other ones.
#[derive(Debug)]
pub(super) struct Generations<K, V> {
    most: usize,
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K: Eq + Hash + Copy, V: Copy> Generations<K, V> {
    /// Holds `most` entries in each of its two maps.
    pub(super) fn new(most: usize) -> Self {
        Self { most, young: HashMap::new(), old: HashMap::new() }
    }

    pub(super) fn get(&mut self, key: &K) -> Option<V> {
        if let Some(value) = self.young.get(key) {
            return Some(*value);
        }
        let value = self.old.remove(key)?;
        self.insert(*key, value);
        Some(value)
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.most && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    pub(super) fn remove(&mut self, key: &K) {
        self.young.remove(key);
        self.old.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_entries_outlive_a_flood() {
        let mut map = Generations::new(100);
        map.insert(0, "viewer");
        for number in 1..10_000 {
            map.insert(number, "stranger");
            if number % 50 == 0 {
                assert_eq!(map.get(&0), Some("viewer"), "{number}");
            }
            assert!(map.young.len() + map.old.len() <= 200);
        }
        assert_eq!(map.get(&1), None);
        map.remove(&0);
        assert_eq!(map.get(&0), None);
    }
}
