//! Evicts the slice with the fewest expected uses for its bytes and time. Uses are predicted from viewers and objects.
//!
//! Viewers read the slices of an object in order, at a pace, and some leave early. So the next use of each slice can be
//! predicted. A viewer on its way reaches it (the interval caching of Srinilta and Choudhary), or a new viewer comes to
//! the object and gets that far (popularity, and the prefix value of SProxy). Belady's optimum evicts the entry whose
//! next use is the last. Where the future is uncertain, the expected uses per time held decide. Few slices are
//! considered for each eviction: the worst of the last ones, some random ones, and the newest.

use super::audience::Audience;
use super::{Item, Policy, Slot, Time};
use fastrand::Rng;
use std::collections::VecDeque;

/// Random entries that are considered for each eviction.
const DRAWN: usize = 16;
/// Entries remembered from one eviction to the next: the worst that were seen.
const WORST: usize = 16;
/// Newest entries that are considered for each eviction: one without a likely use is evicted before it evicts others.
const NEW: usize = 8;

/// Evicts the entry with the fewest expected uses for its bytes and time.
#[derive(Debug)]
pub(super) struct Forecast {
    audience: Audience,
    /// Slots with an entry, in no order.
    all: Vec<Slot>,
    /// By slot.
    entries: Vec<Candidate>,
    /// Slots filled and not considered since. Some of them are free again.
    new: VecDeque<Slot>,
    /// The worst slots of the last evictions. Some of them are free now.
    worst: Vec<Slot>,
    looks: Vec<(f64, Slot)>,
    rng: Rng,
}

#[derive(Clone, Copy, Debug, Default)]
struct Candidate {
    item: Item,
    /// Its index in `all`.
    place: usize,
    is_in: bool,
}

impl Default for Forecast {
    fn default() -> Self {
        Self {
            audience: Audience::default(),
            all: Vec::new(),
            entries: Vec::new(),
            new: VecDeque::new(),
            worst: Vec::new(),
            looks: Vec::new(),
            rng: Rng::with_seed(1),
        }
    }
}

impl Forecast {
    fn take(&mut self, slot: Slot) {
        let entry = &mut self.entries[slot as usize];
        if !std::mem::take(&mut entry.is_in) {
            return;
        }
        let place = entry.place;
        self.all.swap_remove(place);
        if let Some(moved) = self.all.get(place) {
            self.entries[*moved as usize].place = place;
        }
    }

    fn look(&mut self, slot: Slot, kept: &dyn Fn(Slot) -> bool, now: Time) {
        if let Some(entry) = self.entries.get(slot as usize).filter(|entry| entry.is_in && !kept(slot)) {
            self.looks.push((self.audience.next_use(&entry.item, now), slot));
        }
    }
}

impl Policy for Forecast {
    fn resize(&mut self, _: u64) {}

    fn insert(&mut self, slot: Slot, item: &Item, _: Time) {
        let index = slot as usize;
        if index >= self.entries.len() {
            self.entries.resize(index + 1, Candidate::default());
        }
        self.entries[index] = Candidate { item: *item, place: self.all.len(), is_in: true };
        self.all.push(slot);
        self.new.push_back(slot);
        if self.new.len() > self.all.len() + NEW {
            self.new.pop_front();
        }
    }

    fn read(&mut self, item: &Item, enters: bool, now: Time) {
        self.audience.asks(item, enters, now);
    }

    fn hit(&mut self, _: Slot, _: &Item, _: Time) {}

    fn remove(&mut self, slot: Slot, _: &Item) {
        self.take(slot);
    }

    fn victim(&mut self, kept: &dyn Fn(Slot) -> bool, now: Time) -> Option<Slot> {
        self.looks.clear();
        for slot in std::mem::take(&mut self.worst) {
            self.look(slot, kept, now);
        }
        for _ in 0..NEW.min(self.new.len()) {
            if let Some(slot) = self.new.pop_front() {
                self.look(slot, kept, now);
            }
        }
        for _ in 0..DRAWN.min(self.all.len()) {
            let slot = self.all[self.rng.usize(..self.all.len())];
            self.look(slot, kept, now);
        }
        self.looks.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        self.looks.dedup_by_key(|look| look.1);
        self.worst.extend(self.looks.iter().skip(1).take(WORST).map(|look| look.1));
        let first = self.looks.first().map(|look| look.1);
        let slot = first.or_else(|| self.all.iter().copied().find(|slot| !kept(*slot)))?;
        self.take(slot);
        Some(slot)
    }
}
