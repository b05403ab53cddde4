//! SIEVE (Zhang et al., "SIEVE is Simpler than LRU", NSDI 2024). Entries are queued by age, and a hit only marks its
//! entry. A hand walks from the oldest to the newest entry, clears marks and evicts the first unmarked one. A hit moves
//! nothing, and entries read once are evicted first.

use super::chain::Chain;
use super::{Item, Policy, Slot, Time};

/// SIEVE.
#[derive(Debug, Default)]
pub(crate) struct Sieve {
    /// Oldest in front.
    order: Chain,
    visited: Vec<bool>,
    hand: Option<Slot>,
}

impl Sieve {
    fn take(&mut self, slot: Slot) {
        if self.hand == Some(slot) {
            self.hand = self.order.after(slot);
        }
        self.order.remove(slot);
    }
}

impl Policy for Sieve {
    fn resize(&mut self, _: u64) {}

    fn insert(&mut self, slot: Slot, _: &Item, _: Time) {
        let index = slot as usize;
        if index >= self.visited.len() {
            self.visited.resize(index + 1, false);
        }
        self.visited[index] = false;
        self.order.push_back(slot);
    }

    fn hit(&mut self, slot: Slot, _: &Item, _: Time) {
        self.visited[slot as usize] = true;
    }

    fn remove(&mut self, slot: Slot, _: &Item) {
        self.take(slot);
    }

    fn victim(&mut self, kept: &dyn Fn(Slot) -> bool, _: Time) -> Option<Slot> {
        // Two rounds clear every mark: an entry that is skipped afterwards must stay.
        for _ in 0..self.order.len() * 2 + 1 {
            let slot = self.hand.or_else(|| self.order.front())?;
            if kept(slot) || std::mem::take(&mut self.visited[slot as usize]) {
                self.hand = self.order.after(slot);
                continue;
            }
            self.take(slot);
            return Some(slot);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Ledger, PolicyName};

    /// The example of the paper, figure 1: A..G with A, B, G used; H, A, D, I, B, J are read.
    #[test]
    fn the_hand_walks_as_published() {
        let item = |name: char| Item { key: u64::from(name), object: 0, index: 0, of: 1, size: 1 };
        let mut ledger = Ledger::new(7, PolicyName::Sieve);
        let mut gone = Vec::new();
        // Oldest to newest: G F E D C B A.
        for name in ['G', 'F', 'E', 'D', 'C', 'B', 'A'] {
            ledger.insert(item(name), 0, &mut gone).unwrap();
        }
        for name in ['A', 'B', 'G'] {
            ledger.ask(&item(name), 0);
        }
        for name in ['H', 'A', 'D', 'I', 'B', 'J'] {
            if ledger.ask(&item(name), 0).is_none() {
                ledger.insert(item(name), 0, &mut gone).unwrap();
            }
        }
        let out: String = gone.iter().filter_map(|(_, item)| char::from_u32(item.key as u32)).collect();
        assert_eq!(out, "FEC");
    }
}
