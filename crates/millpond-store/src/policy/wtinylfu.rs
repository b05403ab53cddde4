//! W-TinyLFU (Einziger, Friedman, Manes, "TinyLFU: a highly efficient cache admission policy", 2017): what is new stays
//! in a small window; when it has to leave it, it stays in the cache only where it was asked for more often than what
//! would go for it. The main part is a segmented LRU: on probation, and protected once asked for there.

use super::chain::Chain;
use super::sketch::Sketch;
use super::{Item, Policy, Slot, Time};

/// Shares of the room: the window's, and of the rest what is protected.
const WINDOW: f64 = 0.01;
const PROTECTED: f64 = 0.8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Window,
    Probation,
    Protected,
}

/// W-TinyLFU.
#[derive(Debug, Default)]
pub struct WTinyLfu {
    /// Least recently used in front.
    chains: [Chain; 3],
    bytes: [u64; 3],
    nodes: Vec<(Item, Part)>,
    sketch: Sketch,
    capacity: u64,
}

impl WTinyLfu {
    fn put(&mut self, slot: Slot, part: Part) {
        let node = &mut self.nodes[slot as usize];
        node.1 = part;
        self.bytes[part as usize] += u64::from(node.0.size);
        self.chains[part as usize].push_back(slot);
    }

    fn take(&mut self, slot: Slot) {
        let (item, part) = self.nodes[slot as usize];
        self.bytes[part as usize] -= u64::from(item.size);
        self.chains[part as usize].remove(slot);
    }

    /// Puts an entry into the main part: on probation, or among what is protected where only that has room.
    fn admit(&mut self, slot: Slot) {
        let fits = |part: Part, most: f64| {
            let bytes = self.bytes[part as usize] + u64::from(self.nodes[slot as usize].0.size);
            bytes as f64 <= self.main_most() as f64 * most
        };
        let only_protected = !fits(Part::Probation, 1.0 - PROTECTED) && fits(Part::Protected, PROTECTED);
        self.put(slot, if only_protected { Part::Protected } else { Part::Probation });
    }

    /// The first of a part that need not be kept.
    fn first(&self, part: Part, kept: &dyn Fn(Slot) -> bool) -> Option<Slot> {
        self.chains[part as usize].iter().find(|slot| !kept(*slot))
    }

    fn main_most(&self) -> u64 {
        self.capacity - (self.capacity as f64 * WINDOW) as u64
    }

    fn estimate(&self, slot: Slot) -> u8 {
        self.sketch.estimate(self.nodes[slot as usize].0.key)
    }
}

impl Policy for WTinyLfu {
    fn name(&self) -> &'static str {
        "w-tinylfu"
    }

    fn resize(&mut self, capacity: u64) {
        self.capacity = capacity;
    }

    fn insert(&mut self, slot: Slot, item: &Item, _: Time) {
        let index = slot as usize;
        if index >= self.nodes.len() {
            self.nodes.resize(index + 1, Default::default());
        }
        if self.nodes.len() > self.sketch.entries() {
            self.sketch.grow(self.nodes.len() * 2);
        }
        self.nodes[index].0 = *item;
        self.put(slot, Part::Window);
    }

    fn hit(&mut self, slot: Slot, item: &Item, _: Time) {
        // Uses that follow each other closely, in the window, say little of how often it will be asked for.
        let part = match self.nodes[slot as usize].1 {
            Part::Window => Part::Window,
            Part::Probation | Part::Protected => {
                self.sketch.count(item.key);
                Part::Protected
            }
        };
        self.take(slot);
        self.put(slot, part);
        let most = (self.main_most() as f64 * PROTECTED) as u64;
        while self.bytes[Part::Protected as usize] > most {
            let Some(slot) = self.chains[Part::Protected as usize].front() else { return };
            self.take(slot);
            self.put(slot, Part::Probation);
        }
    }

    fn miss(&mut self, item: &Item, _: Time) {
        self.sketch.count(item.key);
    }

    fn remove(&mut self, slot: Slot, _: &Item) {
        self.take(slot);
    }

    fn victim(&mut self, kept: &dyn Fn(Slot) -> bool, _: Time) -> Option<Slot> {
        // Nothing of the main part goes without a comparison while there is a candidate in the window.
        while let Some(candidate) = self.first(Part::Window, kept) {
            let size = u64::from(self.nodes[candidate as usize].0.size);
            let main = self.bytes[Part::Probation as usize] + self.bytes[Part::Protected as usize];
            let victim = self.first(Part::Probation, kept).or_else(|| self.first(Part::Protected, kept));
            // What was let in was larger than what went for it: the main part pays, not the window.
            if let Some(victim) = victim.filter(|_| main > self.main_most()) {
                self.take(victim);
                return Some(victim);
            }
            self.take(candidate);
            let Some(victim) = victim.filter(|_| main + size > self.main_most()) else {
                self.admit(candidate);
                continue;
            };
            let loses = self.estimate(candidate) <= self.estimate(victim);
            // Who comes again and again is let in at last, though it never was in long enough to be used.
            self.sketch.count(self.nodes[candidate as usize].0.key);
            if loses {
                return Some(candidate);
            }
            self.admit(candidate);
            self.take(victim);
            return Some(victim);
        }
        let slot = [Part::Probation, Part::Protected].into_iter().find_map(|part| self.first(part, kept))?;
        self.take(slot);
        Some(slot)
    }
}
