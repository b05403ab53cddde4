//! Keys of evicted entries, in bounded memory. The oldest is forgotten first.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

use super::ledger::Hashed;

/// Least number of keys: with large entries a share of the bytes alone would be too few.
const LEAST: usize = 64;
/// Highest number of keys, whatever the sizes: some tens of megabytes of bookkeeping.
const MOST: usize = 1 << 21;

/// Keys of evicted entries, up to a number of bytes that the entries had.
#[derive(Debug, Default)]
pub(crate) struct Ghost {
    /// Number of the latest eviction of each key, and its size.
    keys: HashMap<u64, (u64, u32), BuildHasherDefault<Hashed>>,
    /// Keys in the order of eviction. A key that was taken or evicted again leaves an outdated item.
    order: VecDeque<(u64, u64)>,
    next: u64,
    bytes: u64,
    most: u64,
}

impl Ghost {
    pub(crate) fn resize(&mut self, most: u64) {
        self.most = most;
        self.shrink();
    }

    pub(crate) fn add(&mut self, key: u64, size: u32) {
        self.next += 1;
        if let Some((_, old)) = self.keys.insert(key, (self.next, size)) {
            self.bytes -= u64::from(old);
        }
        self.bytes += u64::from(size);
        self.order.push_back((self.next, key));
        self.shrink();
    }

    /// Forgets a key. Returns whether it was remembered.
    pub(crate) fn take(&mut self, key: u64) -> bool {
        match self.keys.remove(&key) {
            Some((_, size)) => {
                self.bytes -= u64::from(size);
                true
            }
            None => false,
        }
    }

    fn shrink(&mut self) {
        let over = |ghost: &Self| {
            (ghost.bytes > ghost.most && ghost.keys.len() > LEAST)
                || ghost.keys.len() > MOST
                || ghost.order.len() > ghost.keys.len() * 2 + LEAST
        };
        while over(self) {
            let Some((number, key)) = self.order.pop_front() else { return };
            if let Some((latest, size)) = self.keys.get(&key).copied()
                && latest == number
            {
                self.keys.remove(&key);
                self.bytes -= u64::from(size);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_first_and_memory_stays_bounded() {
        let mut ghost = Ghost::default();
        ghost.resize(100);
        (0..1000).for_each(|key| ghost.add(key, 1));
        assert!(!ghost.take(0) && ghost.take(999) && !ghost.take(999));
        for _ in 0..10_000 {
            ghost.add(7, 1);
            ghost.take(7);
        }
        assert!(ghost.order.len() <= ghost.keys.len() * 2 + LEAST + 2);
        assert_eq!(ghost.bytes, ghost.keys.len() as u64);
    }
}
