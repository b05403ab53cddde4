//! What is cached: names to slots, the room taken, and what may not go now.

use super::{Item, Policy, Slot, Time};
use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// What a [`Ledger`] holds and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Entries now.
    pub entries: u64,
    /// Bytes taken now.
    pub bytes: u64,
    /// Bytes of entries that are pinned now, those taken out while pinned included.
    pub pinned: u64,
    /// Times that an entry was asked for and there.
    pub hits: u64,
    /// Times that it was not.
    pub misses: u64,
    /// Entries put in.
    pub insertions: u64,
    /// Entries that went for want of room.
    pub evictions: u64,
    /// Entries not put in: no room could be made.
    pub refused: u64,
}

/// No room: the entry is larger than all there is, or what is in the way is pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    item: Item,
    pins: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Free,
    In,
    /// Taken out while pinned: its slot comes free with the last pin.
    Doomed,
}

/// Entries under a budget.
#[derive(Debug)]
pub struct Ledger {
    slots: HashMap<u64, Slot, BuildHasherDefault<Hashed>>,
    entries: Vec<Entry>,
    free: Vec<Slot>,
    policy: Box<dyn Policy>,
    capacity: u64,
    counters: Counters,
}

impl Ledger {
    /// An empty ledger of `capacity` bytes.
    pub fn new(capacity: u64, mut policy: Box<dyn Policy>) -> Self {
        policy.resize(capacity);
        Self {
            slots: HashMap::default(),
            entries: Vec::new(),
            free: Vec::new(),
            policy,
            capacity,
            counters: Counters::default(),
        }
    }

    /// Looks for an entry as somebody who wants it: a use, or a miss, that the policy sees.
    pub fn ask(&mut self, item: &Item, now: Time) -> Option<Slot> {
        let Some(&slot) = self.slots.get(&item.key) else {
            self.counters.misses += 1;
            self.policy.miss(item, now);
            return None;
        };
        self.counters.hits += 1;
        self.policy.hit(slot, &self.entries[slot as usize].item, now);
        Some(slot)
    }

    /// A viewer begins to read a slice, wherever that is; `enters` says whether with its first byte.
    pub fn read(&mut self, item: &Item, enters: bool, now: Time) {
        self.policy.read(item, enters, now);
    }

    /// Looks for an entry without using it.
    pub fn find(&self, key: u64) -> Option<Slot> {
        self.slots.get(&key).copied()
    }

    /// What is in a slot.
    pub fn item(&self, slot: Slot) -> Option<&Item> {
        let entry = self.entries.get(slot as usize)?;
        (entry.state == State::In).then_some(&entry.item)
    }

    /// All entries, in no order that means anything.
    pub fn items(&self) -> impl Iterator<Item = (Slot, &Item)> {
        let used = |(slot, entry): (usize, &Entry)| entry.state == State::In && slot < Slot::MAX as usize;
        self.entries.iter().enumerate().filter(move |pair| used(*pair)).map(|(slot, entry)| (slot as Slot, &entry.item))
    }

    /// Puts an entry in, where it is not in already. What goes for it is added to `gone`.
    ///
    /// # Errors
    ///
    /// [`Refused`] where no room can be made; what went before that was seen stays gone.
    pub fn insert(&mut self, item: Item, now: Time, gone: &mut Vec<(Slot, Item)>) -> Result<Slot, Refused> {
        if let Some(slot) = self.find(item.key) {
            return Ok(slot);
        }
        if u64::from(item.size) > self.capacity || !self.make_room(u64::from(item.size), now, gone) {
            self.counters.refused += 1;
            return Err(Refused);
        }
        let slot = self.free.pop().unwrap_or(self.entries.len() as Slot);
        if slot as usize == self.entries.len() {
            self.entries.push(Entry::default());
        }
        self.entries[slot as usize] = Entry { item, pins: 0, state: State::In };
        self.slots.insert(item.key, slot);
        self.counters.entries += 1;
        self.counters.bytes += u64::from(item.size);
        self.counters.insertions += 1;
        self.policy.insert(slot, &item, now);
        Ok(slot)
    }

    /// Puts entries in where they were before, into a ledger that is empty; what doesn't fit or has a slot twice is left
    /// out.
    pub fn restore(&mut self, entries: impl Iterator<Item = (Slot, Item)>) {
        for (slot, item) in entries {
            let index = slot as usize;
            if index >= self.entries.len() {
                self.entries.resize(index + 1, Entry::default());
            }
            let taken = self.entries[index].state != State::Free || self.slots.contains_key(&item.key);
            if taken || self.counters.bytes + u64::from(item.size) > self.capacity {
                continue;
            }
            self.entries[index] = Entry { item, pins: 0, state: State::In };
            self.slots.insert(item.key, slot);
            self.counters.entries += 1;
            self.counters.bytes += u64::from(item.size);
            self.policy.insert(slot, &item, 0);
        }
        let free = |(slot, entry): (usize, &Entry)| (entry.state == State::Free).then_some(slot as Slot);
        self.free = self.entries.iter().enumerate().rev().filter_map(free).collect();
    }

    /// Takes an entry out. Its slot is free at once, unless it is pinned: `true` where it is free.
    pub fn remove(&mut self, key: u64) -> Option<(Slot, bool)> {
        let slot = self.slots.remove(&key)?;
        let item = self.entries[slot as usize].item;
        self.policy.remove(slot, &item);
        Some((slot, self.let_go(slot)))
    }

    /// Keeps an entry from going until [`unpin`](Self::unpin) is called as often.
    pub fn pin(&mut self, slot: Slot) {
        let Some(entry) = self.entries.get_mut(slot as usize) else { return };
        if entry.pins == 0 {
            self.counters.pinned += u64::from(entry.item.size);
        }
        entry.pins += 1;
    }

    /// Takes a pin back. Where the slot came free by it, its entry having been taken out meanwhile: that entry's key.
    pub fn unpin(&mut self, slot: Slot) -> Option<u64> {
        let entry = self.entries.get_mut(slot as usize).filter(|entry| entry.pins > 0)?;
        entry.pins -= 1;
        if entry.pins > 0 {
            return None;
        }
        self.counters.pinned -= u64::from(entry.item.size);
        let key = entry.item.key;
        (entry.state == State::Doomed && self.let_go(slot)).then_some(key)
    }

    /// Changes the budget. What goes for it is added to `gone`.
    pub fn resize(&mut self, capacity: u64, now: Time, gone: &mut Vec<(Slot, Item)>) {
        self.capacity = capacity;
        self.policy.resize(capacity);
        self.make_room(0, now, gone);
    }

    /// Changes the policy. The new one learns what is there in the order of slots, and nothing of the past.
    pub fn set_policy(&mut self, mut policy: Box<dyn Policy>, now: Time) {
        policy.resize(self.capacity);
        for (slot, item) in self.items() {
            policy.insert(slot, item, now);
        }
        self.policy = policy;
    }

    /// The name of the policy.
    pub fn policy(&self) -> &'static str {
        self.policy.name()
    }

    /// The budget in bytes.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// What it holds and did.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    fn make_room(&mut self, size: u64, now: Time, gone: &mut Vec<(Slot, Item)>) -> bool {
        while self.counters.bytes + size > self.capacity {
            let entries = &self.entries;
            let kept = |slot: Slot| entries.get(slot as usize).is_some_and(|entry| entry.pins > 0);
            let Some(slot) = self.policy.victim(&kept, now) else { return false };
            let item = self.entries[slot as usize].item;
            self.slots.remove(&item.key);
            self.counters.evictions += 1;
            gone.push((slot, item));
            self.let_go(slot);
        }
        true
    }

    /// Frees the slot of an entry that is out of map and policy, or marks it for the last unpin.
    fn let_go(&mut self, slot: Slot) -> bool {
        let entry = &mut self.entries[slot as usize];
        if entry.state == State::In {
            self.counters.entries -= 1;
        }
        if entry.pins > 0 {
            entry.state = State::Doomed;
            return false;
        }
        self.counters.bytes -= u64::from(entry.item.size);
        entry.state = State::Free;
        self.free.push(slot);
        true
    }
}

/// Keys are hashes already.
#[derive(Debug, Default)]
pub(crate) struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0.rotate_left(8) ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Lru;

    fn item(key: u64, size: u32) -> Item {
        Item { key, object: key, index: 0, of: 1, size }
    }

    #[test]
    fn room_is_made_and_what_is_pinned_stays() {
        let mut ledger = Ledger::new(10, Box::new(Lru::default()));
        let mut gone = Vec::new();
        for key in 0..5 {
            ledger.insert(item(key, 2), 0, &mut gone).unwrap();
        }
        assert!(gone.is_empty());
        let first = ledger.ask(&item(1, 2), 1).unwrap();
        ledger.pin(ledger.find(0).unwrap());
        ledger.insert(item(9, 4), 2, &mut gone).unwrap();
        assert_eq!(gone.iter().map(|(_, item)| item.key).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(ledger.item(first).map(|item| item.key), Some(1));
        assert_eq!(ledger.insert(item(10, 11), 2, &mut gone), Err(Refused));
        assert_eq!(ledger.counters().pinned, 2);
    }

    #[test]
    fn a_slot_taken_out_while_pinned_comes_free_with_its_last_pin() {
        let mut ledger = Ledger::new(4, Box::new(Lru::default()));
        let mut gone = Vec::new();
        let slot = ledger.insert(item(1, 4), 0, &mut gone).unwrap();
        ledger.pin(slot);
        ledger.pin(slot);
        assert_eq!(ledger.remove(1), Some((slot, false)));
        assert_eq!(ledger.insert(item(2, 4), 0, &mut gone), Err(Refused), "its bytes are still taken");
        assert_eq!(ledger.unpin(slot), None);
        assert_eq!(ledger.unpin(slot), Some(1));
        assert_eq!(ledger.insert(item(2, 4), 0, &mut gone), Ok(slot));
        assert_eq!((ledger.counters().bytes, ledger.counters().pinned), (4, 0));
    }
}
