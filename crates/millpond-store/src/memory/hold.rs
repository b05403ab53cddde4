//! Memory in use that cannot be evicted.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::memory::Memory;

/// One kind of memory in use. Entries are evicted for it.
#[derive(Clone)]
pub struct Holds {
    memory: Arc<Memory>,
    kind: usize,
}

impl Holds {
    /// Creates a kind, under a name.
    pub fn of(memory: &Arc<Memory>, name: &'static str) -> Self {
        Self { memory: memory.clone(), kind: memory.kind(name) }
    }

    /// Counts `bytes` in use. Never refused: the caller checks its limits beforehand.
    pub fn take(&self, bytes: u64) -> Hold {
        self.memory.hold(self.kind, bytes);
        Hold { holds: self.clone(), bytes: AtomicU64::new(bytes) }
    }

    /// Counts `bytes` in use, if this kind then stays within `most` and all memory in use within the budget.
    pub fn try_take(&self, bytes: u64, most: u64) -> Option<Hold> {
        let taken = self.memory.try_hold(self.kind, bytes, most);
        taken.then(|| Hold { holds: self.clone(), bytes: AtomicU64::new(bytes) })
    }

    /// Returns the bytes in use.
    pub fn weight(&self) -> u64 {
        self.memory.counters(self.kind).weight
    }

    /// Returns the budget of the memory in bytes, which entries share.
    pub fn budget(&self) -> u64 {
        self.memory.budget()
    }
}

impl fmt::Debug for Holds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Holds").field("weight", &self.weight()).finish_non_exhaustive()
    }
}

/// Memory in use, until this is dropped.
#[derive(Debug)]
#[must_use = "the room is given back when this is dropped"]
pub struct Hold {
    holds: Holds,
    bytes: AtomicU64,
}

impl Hold {
    /// Stops counting the bytes early, because they are counted elsewhere from now on.
    pub fn give_back(&self) {
        let bytes = self.bytes.swap(0, Ordering::Relaxed);
        if bytes > 0 {
            self.holds.memory.let_go(self.holds.kind, bytes);
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{memory::cache::Cache, policy::PolicyName};

    #[test]
    fn entries_make_way_for_what_is_held() {
        let memory = Memory::new(100, PolicyName::Sieve);
        let (cache, holds) = (Cache::of(&memory, "texts"), Holds::of(&memory, "sessions"));
        let fill = || assert_eq!((0..10).filter(|key| cache.insert(*key, (), 10)).count(), 10);
        fill();
        assert_eq!((memory.used(), cache.len()), (100, 10));
        let (first, second) = (holds.take(35), holds.take(30));
        assert_eq!((holds.weight(), cache.len(), memory.used()), (65, 3, 95));
        assert!(!memory.reserve(36), "no room for it beside that");
        let most = holds.take(200);
        assert_eq!(cache.len(), 0, "over the budget nothing else is there");
        drop((first, most));
        fill();
        assert_eq!((holds.weight(), cache.len()), (30, 7));
        second.give_back();
        second.give_back();
        assert_eq!(holds.weight(), 0);
        drop(second);
        assert_eq!(memory.kinds()[1].1.entries, 0);
    }

    #[test]
    fn room_is_taken_within_a_share_of_the_budget() {
        let memory = Memory::new(100, PolicyName::Sieve);
        let (work, sessions) = (Holds::of(&memory, "work"), Holds::of(&memory, "sessions"));
        let first = work.try_take(30, 50).unwrap();
        assert!(work.try_take(21, 50).is_none(), "over the share");
        let others = sessions.take(60);
        assert!(work.try_take(11, 50).is_none(), "over the budget");
        drop(others);
        assert!(work.try_take(20, 50).is_some());
        drop(first);
        assert_eq!(memory.used(), 0);
    }
}
