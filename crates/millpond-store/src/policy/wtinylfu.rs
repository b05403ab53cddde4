//! W-TinyLFU (Einziger, Friedman, Manes, "TinyLFU: a highly efficient cache admission policy", 2017). New entries are
//! in a small window. When one leaves the window, it is admitted to the main region only if it was used more often than
//! the entry that would be evicted for it. The main region is a segmented LRU: entries are on probation, and protected
//! after a use there.

use super::chain::Chain;
use super::sketch::Sketch;
use super::{Item, Policy, Slot, Time};

/// Shares of the capacity: that of the window, and that of protected entries in the rest.
const WINDOW: f64 = 0.01;
const PROTECTED: f64 = 0.8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Region {
    #[default]
    Window,
    Probation,
    Protected,
}

/// W-TinyLFU.
#[derive(Debug, Default)]
pub(crate) struct WTinyLfu {
    /// Least recently used in front.
    chains: [Chain; 3],
    bytes: [u64; 3],
    nodes: Vec<(Item, Region)>,
    sketch: Sketch,
    capacity: u64,
}

impl WTinyLfu {
    fn put(&mut self, slot: Slot, region: Region) {
        let node = &mut self.nodes[slot as usize];
        node.1 = region;
        self.bytes[region as usize] += u64::from(node.0.size);
        self.chains[region as usize].push_back(slot);
    }

    fn take(&mut self, slot: Slot) {
        let (item, region) = self.nodes[slot as usize];
        self.bytes[region as usize] -= u64::from(item.size);
        self.chains[region as usize].remove(slot);
    }

    /// Inserts an entry into the main region: on probation, or protected if only that segment has space.
    fn admit(&mut self, slot: Slot) {
        let fits = |region: Region, most: f64| {
            let bytes = self.bytes[region as usize] + u64::from(self.nodes[slot as usize].0.size);
            bytes as f64 <= self.main_most() as f64 * most
        };
        let only_protected = !fits(Region::Probation, 1.0 - PROTECTED) && fits(Region::Protected, PROTECTED);
        self.put(slot, if only_protected { Region::Protected } else { Region::Probation });
    }

    /// Returns the first entry of a region that is not `kept`.
    fn first(&self, region: Region, kept: &dyn Fn(Slot) -> bool) -> Option<Slot> {
        self.chains[region as usize].iter().find(|slot| !kept(*slot))
    }

    fn main_most(&self) -> u64 {
        self.capacity - (self.capacity as f64 * WINDOW) as u64
    }

    fn estimate(&self, slot: Slot) -> u8 {
        self.sketch.estimate(self.nodes[slot as usize].0.key)
    }
}

impl Policy for WTinyLfu {
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
        self.put(slot, Region::Window);
    }

    fn hit(&mut self, slot: Slot, item: &Item, _: Time) {
        // Uses that follow each other closely, in the window, say little about future uses.
        let region = match self.nodes[slot as usize].1 {
            Region::Window => Region::Window,
            Region::Probation | Region::Protected => {
                self.sketch.count(item.key);
                Region::Protected
            }
        };
        self.take(slot);
        self.put(slot, region);
        let most = (self.main_most() as f64 * PROTECTED) as u64;
        while self.bytes[Region::Protected as usize] > most {
            let Some(slot) = self.chains[Region::Protected as usize].front() else { return };
            self.take(slot);
            self.put(slot, Region::Probation);
        }
    }

    fn miss(&mut self, item: &Item, _: Time) {
        self.sketch.count(item.key);
    }

    fn remove(&mut self, slot: Slot, _: &Item) {
        self.take(slot);
    }

    fn victim(&mut self, kept: &dyn Fn(Slot) -> bool, _: Time) -> Option<Slot> {
        // No entry of the main region is evicted without a comparison while the window has a candidate.
        while let Some(candidate) = self.first(Region::Window, kept) {
            let size = u64::from(self.nodes[candidate as usize].0.size);
            let main = self.bytes[Region::Probation as usize] + self.bytes[Region::Protected as usize];
            let victim = self.first(Region::Probation, kept).or_else(|| self.first(Region::Protected, kept));
            // The admitted entry is larger than the evicted one: the main region makes room, not the window.
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
            // A key that is inserted again and again is admitted at last, though it never stayed long enough to be used.
            self.sketch.count(self.nodes[candidate as usize].0.key);
            if loses {
                return Some(candidate);
            }
            self.admit(candidate);
            self.take(victim);
            return Some(victim);
        }
        let slot = [Region::Probation, Region::Protected].into_iter().find_map(|region| self.first(region, kept))?;
        self.take(slot);
        Some(slot)
    }
}
