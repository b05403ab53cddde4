//! Greedy-Dual-Size-Frequency (Cherkasova, "Improving WWW proxies performance with Greedy-Dual-Size-Frequency caching
//! policy", 1998). An entry's rank is its number of uses divided by its size, plus the rank of the last evicted entry.
//! It serves the most requests with a given capacity; small entries are evicted last.

use super::heap::Heap;
use super::{Item, Policy, Slot, Time};

/// Greedy-Dual-Size-Frequency, all entries costing the same to fetch.
#[derive(Debug, Default)]
pub(crate) struct Gdsf {
    heap: Heap,
    uses: Vec<u32>,
    age: f64,
}

impl Gdsf {
    fn rank(&mut self, slot: Slot, item: &Item) {
        let rank = self.age + f64::from(self.uses[slot as usize]) / f64::from(item.size.max(1));
        self.heap.set(slot, rank);
    }
}

impl Policy for Gdsf {
    fn resize(&mut self, _: u64) {}

    fn insert(&mut self, slot: Slot, item: &Item, _: Time) {
        let index = slot as usize;
        if index >= self.uses.len() {
            self.uses.resize(index + 1, 0);
        }
        self.uses[index] = 1;
        self.rank(slot, item);
    }

    fn hit(&mut self, slot: Slot, item: &Item, _: Time) {
        self.uses[slot as usize] = self.uses[slot as usize].saturating_add(1);
        self.rank(slot, item);
    }

    fn remove(&mut self, slot: Slot, _: &Item) {
        self.heap.remove(slot);
    }

    fn victim(&mut self, kept: &dyn Fn(Slot) -> bool, _: Time) -> Option<Slot> {
        let (slot, rank) = self.heap.pop(kept)?;
        self.age = rank;
        Some(slot)
    }
}
