//! A policy of our own for what is streamed: it knows objects, positions and viewers, where others know keys.
//!
//! Slices of one object are asked for in order, at a pace, by viewers some of whom leave on the way. So of each slice it
//! can be said when it will be asked for next: when a viewer that is on its way comes by (what Srinilta and Choudhary's
//! interval caching lives on), else when somebody comes to the object, who then has to get that far (popularity, and
//! SProxy's prefix value). Belady's optimum puts out what is asked for last; this puts out, of a few entries drawn by
//! chance and of those that came last, what is expected to be asked for last.

use super::audience::Audience;
use super::{Item, Policy, Slot, Time};
use fastrand::Rng;
use std::collections::VecDeque;

/// Entries drawn by chance for each that goes.
const DRAWN: usize = 24;
/// Of those that came last and were not looked at yet: what nobody will want soon goes before it puts out others.
const NEW: usize = 8;

/// Farthest expected use goes first.
#[derive(Debug)]
pub struct Stream {
    audience: Audience,
    /// Slots that are in, in no order.
    all: Vec<Slot>,
    /// By slot.
    entries: Vec<Entry>,
    /// Slots that came and were not looked at since; some of them have gone.
    new: VecDeque<Slot>,
    rng: Rng,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    item: Item,
    /// Its place in `all`.
    place: usize,
    is_in: bool,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            audience: Audience::default(),
            all: Vec::new(),
            entries: Vec::new(),
            new: VecDeque::new(),
            rng: Rng::with_seed(1),
        }
    }
}

impl Stream {
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
}

impl Policy for Stream {
    fn name(&self) -> &'static str {
        "stream"
    }

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
        let mut worst: Option<(f64, Slot)> = None;
        let mut look = |slot: Slot, entries: &[Entry], audience: &Audience| {
            let Some(entry) = entries.get(slot as usize).filter(|entry| entry.is_in && !kept(slot)) else { return };
            let next = audience.next_use(&entry.item, now);
            if worst.is_none_or(|(most, _)| next > most) {
                worst = Some((next, slot));
            }
        };
        for _ in 0..NEW.min(self.new.len()) {
            if let Some(slot) = self.new.pop_front() {
                look(slot, &self.entries, &self.audience);
            }
        }
        for _ in 0..DRAWN.min(self.all.len()) {
            let slot = self.all[self.rng.usize(..self.all.len())];
            look(slot, &self.entries, &self.audience);
        }
        let slot = worst.map(|(_, slot)| slot).or_else(|| self.all.iter().copied().find(|slot| !kept(*slot)))?;
        self.take(slot);
        Some(slot)
    }
}
