//! LRU: evicts the entry whose last use is the oldest.

use super::{Item, Policy, Slot, Time};
use crate::policy::chain::Chain;

/// Least recently used.
#[derive(Debug, Default)]
pub(crate) struct Lru {
    /// Oldest use in front.
    order: Chain,
}

impl Policy for Lru {
    fn resize(&mut self, _: u64) {}

    fn insert(&mut self, slot: Slot, _: &Item, _: Time) {
        self.order.push_back(slot);
    }

    fn hit(&mut self, slot: Slot, _: &Item, _: Time) {
        self.order.remove(slot);
        self.order.push_back(slot);
    }

    fn remove(&mut self, slot: Slot, _: &Item) {
        self.order.remove(slot);
    }

    fn victim(&mut self, kept: &dyn Fn(Slot) -> bool, _: Time) -> Option<Slot> {
        let slot = self.order.iter().find(|slot| !kept(*slot))?;
        self.order.remove(slot);
        Some(slot)
    }
}
