//! S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023): new entries pass through a
//! small queue. Entries that are used there, or inserted again soon after their eviction, move on to the main queue.
//!
//! The paper counts entries; this counts bytes. The small queue has a tenth of the capacity. The ghosts remember entries of the
//! same total size as the main queue.

use super::chain::Chain;
use super::ghost::Ghost;
use super::{Item, Policy, Slot, Time};

/// Highest number of hits that is counted for an entry.
const MOST_HITS: u8 = 3;

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    item: Item,
    hits: u8,
    main: bool,
}

/// S3-FIFO.
#[derive(Debug, Default)]
pub(crate) struct S3Fifo {
    /// Oldest in front.
    small: Chain,
    main: Chain,
    nodes: Vec<Node>,
    ghost: Ghost,
    small_bytes: u64,
    capacity: u64,
}

impl S3Fifo {
    fn leave(&mut self, slot: Slot) {
        let node = self.nodes[slot as usize];
        match node.main {
            true => self.main.remove(slot),
            false => {
                self.small.remove(slot);
                self.small_bytes -= u64::from(node.item.size);
            }
        }
    }

    fn go_to_main(&mut self, slot: Slot) {
        let node = &mut self.nodes[slot as usize];
        (node.main, node.hits) = (true, 0);
        self.main.push_back(slot);
    }

    /// Evicts from the small queue. Entries used meanwhile move on to the main queue instead.
    fn out_of_small(&mut self, kept: &dyn Fn(Slot) -> bool) -> Option<Slot> {
        let mut at = self.small.front();
        while let Some(slot) = at {
            at = self.small.after(slot);
            let node = self.nodes[slot as usize];
            if node.hits > 0 {
                self.leave(slot);
                self.go_to_main(slot);
            } else if !kept(slot) {
                self.leave(slot);
                self.ghost.add(node.item.key, node.item.size);
                return Some(slot);
            }
        }
        None
    }

    /// Evicts from the main queue. An entry used meanwhile stays for one more round for each use.
    fn out_of_main(&mut self, kept: &dyn Fn(Slot) -> bool) -> Option<Slot> {
        for _ in 0..self.main.len() * (usize::from(MOST_HITS) + 1) {
            let slot = self.main.pop_front()?;
            let node = &mut self.nodes[slot as usize];
            if node.hits == 0 && !kept(slot) {
                return Some(slot);
            }
            node.hits = node.hits.saturating_sub(1);
            self.main.push_back(slot);
        }
        None
    }
}

impl Policy for S3Fifo {
    fn resize(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.ghost.resize(capacity / 10 * 9);
    }

    fn insert(&mut self, slot: Slot, item: &Item, _: Time) {
        let index = slot as usize;
        if index >= self.nodes.len() {
            self.nodes.resize(index + 1, Node::default());
        }
        self.nodes[index] = Node { item: *item, hits: 0, main: false };
        if self.ghost.take(item.key) {
            self.go_to_main(slot);
        } else {
            self.small.push_back(slot);
            self.small_bytes += u64::from(item.size);
        }
    }

    fn hit(&mut self, slot: Slot, _: &Item, _: Time) {
        let node = &mut self.nodes[slot as usize];
        node.hits = (node.hits + 1).min(MOST_HITS);
    }

    fn remove(&mut self, slot: Slot, _: &Item) {
        self.leave(slot);
    }

    fn victim(&mut self, kept: &dyn Fn(Slot) -> bool, _: Time) -> Option<Slot> {
        if self.small_bytes * 10 >= self.capacity || self.main.front().is_none() {
            return self.out_of_small(kept).or_else(|| self.out_of_main(kept));
        }
        self.out_of_main(kept).or_else(|| self.out_of_small(kept))
    }
}
