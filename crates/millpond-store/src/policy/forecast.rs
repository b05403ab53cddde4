//! Evicts the slice that takes the most room and time for its next use, by what is known of viewers and objects.
//!
//! Slices of one object are asked for in order, at a pace, by viewers some of whom leave on the way. So of each slice it
//! can be said when it will be asked for next: when a viewer that is on its way reaches it (the interval caching of
//! Srinilta and Choudhary), else when a new viewer comes to the object and gets that far (popularity, and the prefix value
//! of SProxy). Belady's optimum evicts what is asked for last. Where the future is a guess, the use that can be expected
//! for the time a slice is held decides. Few slices are considered for each eviction: the worst of the last ones, some
//! drawn by chance, and those that came last.

use super::audience::Audience;
use super::{Item, Policy, Slot, Time};
use fastrand::Rng;
use std::collections::VecDeque;

/// Random entries that are considered for each eviction.
const DRAWN: usize = 16;
/// Entries kept in mind from one look to the next: the worst that were seen.
const WORST: usize = 16;
/// Newest entries that are considered for each eviction: an entry without a likely use is evicted before it evicts others.
const NEW: usize = 8;

/// Evicts the entry with the least use to be expected for its room and time.
#[derive(Debug)]
pub(super) struct Forecast {
    audience: Audience,
    /// Slots that are in, in no order.
    all: Vec<Slot>,
    /// By slot.
    entries: Vec<Entry>,
    /// Slots filled and not considered since; some of them are free again.
    new: VecDeque<Slot>,
    /// The worst slots of the last looks; some of them have gone.
    worst: Vec<Slot>,
    looks: Vec<(f64, Slot)>,
    rng: Rng,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    item: Item,
    /// Its place in `all`.
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
            self.entries.resize(index + 1, Entry::default());
        }
        self.entries[index] = Entry { item: *item, place: self.all.len(), is_in: true };
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
