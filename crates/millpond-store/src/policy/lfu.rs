//! LFU with dynamic ageing (LFU-DA, Arlitt et al., "Evaluating content management techniques for Web proxy caches",
//! 2000). An entry's rank is its number of uses, plus the rank of the last evicted entry at the time of its last use.
//! So entries that were popular once are evicted in the end.

use super::heap::Heap;
use super::{Item, Policy, Slot, Time};

/// Least frequently used, with ageing.
#[derive(Debug, Default)]
pub(crate) struct Lfu {
    heap: Heap,
    uses: Vec<u32>,
    age: f64,
}

impl Policy for Lfu {
    fn resize(&mut self, _: u64) {}

    fn insert(&mut self, slot: Slot, _: &Item, _: Time) {
        let index = slot as usize;
        if index >= self.uses.len() {
            self.uses.resize(index + 1, 0);
        }
        self.uses[index] = 1;
        self.heap.set(slot, self.age + 1.0);
    }

    fn hit(&mut self, slot: Slot, _: &Item, _: Time) {
        let uses = &mut self.uses[slot as usize];
        *uses = uses.saturating_add(1);
        self.heap.set(slot, self.age + f64::from(*uses));
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
