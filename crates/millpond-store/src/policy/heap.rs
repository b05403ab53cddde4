//! A binary heap of slots by rank, lowest first. Ranks can change. An indexed table: no allocation per change.

use super::Slot;

const NONE: u32 = u32::MAX;

/// Slots by rank; among equals the one that was ranked first.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    order: Vec<Slot>,
    /// By slot: its position in `order`, and its rank.
    nodes: Vec<Node>,
    next: u64,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    place: u32,
    rank: f64,
    since: u64,
}

impl Heap {
    /// Inserts a slot, or changes its rank.
    pub(crate) fn set(&mut self, slot: Slot, rank: f64) {
        let index = slot as usize;
        if index >= self.nodes.len() {
            self.nodes.resize(index + 1, Node { place: NONE, rank: 0.0, since: 0 });
        }
        self.next += 1;
        let place = match self.nodes[index].place {
            NONE => {
                self.order.push(slot);
                self.order.len() as u32 - 1
            }
            place => place,
        };
        self.nodes[index] = Node { place, rank, since: self.next };
        self.settle(place as usize);
    }

    pub(crate) fn remove(&mut self, slot: Slot) {
        let Some(place) = self.nodes.get(slot as usize).map(|node| node.place).filter(|place| *place != NONE) else {
            return;
        };
        self.nodes[slot as usize].place = NONE;
        self.order.swap_remove(place as usize);
        if let Some(moved) = self.order.get(place as usize) {
            self.nodes[*moved as usize].place = place;
            self.settle(place as usize);
        }
    }

    /// Removes the lowest slot that is not `kept`, and returns it with its rank.
    pub(crate) fn pop(&mut self, kept: &dyn Fn(Slot) -> bool) -> Option<(Slot, f64)> {
        let mut passed = Vec::new();
        let found = loop {
            let Some(&slot) = self.order.first() else { break None };
            let node = self.nodes[slot as usize];
            self.remove(slot);
            if !kept(slot) {
                break Some((slot, node.rank));
            }
            passed.push((slot, node.rank));
        };
        for (slot, rank) in passed {
            self.set(slot, rank);
        }
        found
    }

    fn settle(&mut self, mut at: usize) {
        while at > 0 && self.below(at, (at - 1) / 2) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        loop {
            let (left, right) = (at * 2 + 1, at * 2 + 2);
            let mut least = at;
            for child in [left, right] {
                if child < self.order.len() && self.below(child, least) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.swap(at, least);
            at = least;
        }
    }

    fn below(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.nodes[self.order[a] as usize], &self.nodes[self.order[b] as usize]);
        a.rank.total_cmp(&b.rank).then(a.since.cmp(&b.since)).is_lt()
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.order.swap(a, b);
        self.nodes[self.order[a] as usize].place = a as u32;
        self.nodes[self.order[b] as usize].place = b as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_out_by_rank_whatever_changed_before() {
        let mut rng = fastrand::Rng::with_seed(3);
        let mut heap = Heap::default();
        let mut ranks = vec![None; 100];
        for _ in 0..10_000 {
            let slot = rng.u32(..100);
            if rng.u8(..4) == 0 {
                heap.remove(slot);
                ranks[slot as usize] = None;
            } else {
                let rank = f64::from(rng.u32(..50));
                heap.set(slot, rank);
                ranks[slot as usize] = Some(rank);
            }
        }
        let mut last = f64::MIN;
        let mut count = 0;
        while let Some((slot, rank)) = heap.pop(&|slot| slot == 7) {
            assert!(rank >= last && ranks[slot as usize] == Some(rank));
            (last, count) = (rank, count + 1);
        }
        assert_eq!(count, ranks.iter().enumerate().filter(|(slot, rank)| *slot != 7 && rank.is_some()).count());
    }
}
