//! The entries of a cache: names to slots, the bytes they take, and their pins.

use super::{Item, Need, Policy, PolicyName, Slot, Time, need::Needs};
use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    time::Duration,
};

/// Counters of a [`Ledger`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerCounters {
    /// Number of entries.
    pub entries: u64,
    /// Bytes of all entries.
    pub bytes: u64,
    /// Bytes of pinned entries, including those removed while pinned.
    pub pinned: u64,
    /// Lookups that found an entry.
    pub hits: u64,
    /// Lookups that found none.
    pub misses: u64,
    /// Entries inserted.
    pub insertions: u64,
    /// Entries evicted to make space.
    pub evictions: u64,
    /// Entries not inserted because no space could be made.
    pub refused: u64,
}

/// The entry is larger than the capacity, or pinned entries leave too little space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

#[derive(Clone, Copy, Debug, Default)]
struct LedgerEntry {
    item: Item,
    pins: u32,
    state: EntryState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EntryState {
    #[default]
    Free,
    In,
    /// Removed while pinned: its slot becomes free with the last pin.
    Doomed,
}

/// Entries under a budget.
#[derive(Debug)]
pub struct Ledger {
    slots: HashMap<u64, Slot, BuildHasherDefault<Hashed>>,
    entries: Vec<LedgerEntry>,
    free: Vec<Slot>,
    policy: Box<dyn Policy>,
    needs: Needs,
    capacity: u64,
    counters: LedgerCounters,
}

impl Ledger {
    /// Creates an empty ledger of `capacity` bytes.
    pub fn new(capacity: u64, policy: PolicyName) -> Self {
        Self::with(capacity, policy.policy())
    }

    /// As [`new`](Self::new), for a policy without a name too.
    pub(super) fn with(capacity: u64, mut policy: Box<dyn Policy>) -> Self {
        policy.resize(capacity);
        Self {
            slots: HashMap::default(),
            entries: Vec::new(),
            free: Vec::new(),
            policy,
            needs: Needs::default(),
            capacity,
            counters: LedgerCounters::default(),
        }
    }

    /// Looks an entry up for a reader. The policy learns of the hit or miss.
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

    /// Tells the policy that a viewer begins to read a slice, cached or not. `enters` says whether it begins with the
    /// first byte.
    pub fn read(&mut self, item: &Item, enters: bool, now: Time) {
        self.policy.read(item, enters, now);
    }

    /// Returns the slot of an entry. Does not count as a use.
    pub fn find(&self, key: u64) -> Option<Slot> {
        self.slots.get(&key).copied()
    }

    /// Returns the entry in a slot.
    pub fn item(&self, slot: Slot) -> Option<&Item> {
        let entry = self.entries.get(slot as usize)?;
        (entry.state == EntryState::In).then_some(&entry.item)
    }

    /// Returns all entries, in no particular order.
    pub fn items(&self) -> impl Iterator<Item = (Slot, &Item)> {
        let used = |(slot, entry): (usize, &LedgerEntry)| entry.state == EntryState::In && slot < Slot::MAX as usize;
        self.entries.iter().enumerate().filter(move |pair| used(*pair)).map(|(slot, entry)| (slot as Slot, &entry.item))
    }

    /// Inserts an entry that is not present. Entries evicted for it are added to `gone`.
    ///
    /// # Errors
    ///
    /// [`Refused`] if no space can be made. Entries evicted until then stay evicted.
    pub fn insert(&mut self, item: Item, now: Time, gone: &mut Vec<(Slot, Item)>) -> Result<Slot, Refused> {
        self.insert_needed(item, None, now, gone)
    }

    /// As [`insert`](Self::insert), for an entry of which it may be known when it is needed next.
    ///
    /// # Errors
    ///
    /// [`Refused`] also where the entry would be evicted first: the policy chose an entry with a need, and none is needed later.
    pub fn insert_needed(
        &mut self,
        item: Item,
        need: Option<Need>,
        now: Time,
        gone: &mut Vec<(Slot, Item)>,
    ) -> Result<Slot, Refused> {
        if let Some(slot) = self.find(item.key) {
            return Ok(slot);
        }
        if u64::from(item.size) > self.capacity || !self.make_room((u64::from(item.size), need), now, gone) {
            self.counters.refused += 1;
            return Err(Refused);
        }
        let slot = self.free.pop().unwrap_or(self.entries.len() as Slot);
        if slot as usize == self.entries.len() {
            self.entries.push(LedgerEntry::default());
        }
        self.entries[slot as usize] = LedgerEntry { item, pins: 0, state: EntryState::In };
        self.slots.insert(item.key, slot);
        self.counters.entries += 1;
        self.counters.bytes += u64::from(item.size);
        self.counters.insertions += 1;
        self.policy.insert(slot, &item, now);
        self.needs.set(slot, need);
        Ok(slot)
    }

    /// Changes when an entry is needed next.
    pub fn set_need(&mut self, slot: Slot, need: Need) {
        if self.item(slot).is_some() {
            self.needs.set(slot, Some(need));
        }
    }

    /// Entries that were needed before a time are evicted first from now on.
    pub fn give_up_needs(&mut self, before: Duration) {
        self.needs.give_up(before);
    }

    /// Inserts entries into their old slots, in an empty ledger. Entries that don't fit, or share a slot, are left out.
    pub fn restore(&mut self, entries: impl Iterator<Item = (Slot, Item)>) {
        for (slot, item) in entries {
            let index = slot as usize;
            if index >= self.entries.len() {
                self.entries.resize(index + 1, LedgerEntry::default());
            }
            let taken = self.entries[index].state != EntryState::Free || self.slots.contains_key(&item.key);
            if taken || self.counters.bytes + u64::from(item.size) > self.capacity {
                continue;
            }
            self.entries[index] = LedgerEntry { item, pins: 0, state: EntryState::In };
            self.slots.insert(item.key, slot);
            self.counters.entries += 1;
            self.counters.bytes += u64::from(item.size);
            self.policy.insert(slot, &item, 0);
        }
        let free = |(slot, entry): (usize, &LedgerEntry)| (entry.state == EntryState::Free).then_some(slot as Slot);
        self.free = self.entries.iter().enumerate().rev().filter_map(free).collect();
    }

    /// Removes an entry. The flag says whether its slot is free: a pinned one is not.
    pub fn remove(&mut self, key: u64) -> Option<(Slot, bool)> {
        let slot = self.slots.remove(&key)?;
        let item = self.entries[slot as usize].item;
        self.policy.remove(slot, &item);
        Some((slot, self.let_go(slot)))
    }

    /// Protects an entry from eviction until [`unpin`](Self::unpin) is called as often.
    pub fn pin(&mut self, slot: Slot) {
        let Some(entry) = self.entries.get_mut(slot as usize) else { return };
        if entry.pins == 0 {
            self.counters.pinned += u64::from(entry.item.size);
        }
        entry.pins += 1;
    }

    /// Removes a pin. Returns the key of an entry that was removed meanwhile and whose slot is now free.
    pub fn unpin(&mut self, slot: Slot) -> Option<u64> {
        let entry = self.entries.get_mut(slot as usize).filter(|entry| entry.pins > 0)?;
        entry.pins -= 1;
        if entry.pins > 0 {
            return None;
        }
        self.counters.pinned -= u64::from(entry.item.size);
        let key = entry.item.key;
        (entry.state == EntryState::Doomed && self.let_go(slot)).then_some(key)
    }

    /// Changes the capacity. Entries evicted for it are added to `gone`.
    pub fn resize(&mut self, capacity: u64, now: Time, gone: &mut Vec<(Slot, Item)>) {
        self.capacity = capacity;
        self.policy.resize(capacity);
        self.make_room((0, None), now, gone);
    }

    /// Changes the policy. The new one learns the present entries in the order of slots, and no history.
    pub fn set_policy(&mut self, policy: PolicyName, now: Time) {
        let mut policy = policy.policy();
        policy.resize(self.capacity);
        for (slot, item) in self.items() {
            policy.insert(slot, item, now);
        }
        self.policy = policy;
    }

    /// Returns the budget in bytes.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the counters.
    pub fn counters(&self) -> LedgerCounters {
        self.counters
    }

    /// Evicts entries until one of a size fits. Returns whether it does.
    fn make_room(&mut self, (size, need): (u64, Option<Need>), now: Time, gone: &mut Vec<(Slot, Item)>) -> bool {
        while self.counters.bytes + size > self.capacity {
            let entries = &self.entries;
            let kept = |slot: Slot| entries.get(slot as usize).is_some_and(|entry| entry.pins > 0);
            let chosen = self.policy.victim(&kept, now);
            let Some(slot) = chosen.and_then(|slot| self.needed_later(slot, need, now)) else { return false };
            let item = self.entries[slot as usize].item;
            self.slots.remove(&item.key);
            self.counters.evictions += 1;
            gone.push((slot, item));
            self.let_go(slot);
        }
        true
    }

    /// The entry to evict where the policy has chosen and forgotten `chosen`: that one, or if it has a need, the entry that is needed
    /// last. `None` where that would be the new entry, whose need is `new`: the chosen one stays.
    fn needed_later(&mut self, chosen: Slot, new: Option<Need>, now: Time) -> Option<Slot> {
        let last = self.needs.of(chosen).and_then(|_| self.needs.last());
        let Some((need, last)) = last.filter(|(_, last)| self.entries[*last as usize].pins == 0) else {
            return Some(chosen);
        };
        let is_new_last = new.is_some_and(|new| new >= need);
        if is_new_last || last != chosen {
            self.policy.insert(chosen, &self.entries[chosen as usize].item, now);
        }
        if is_new_last {
            return None;
        }
        if last != chosen {
            self.policy.remove(last, &self.entries[last as usize].item);
        }
        Some(last)
    }

    /// Frees the slot of an entry that has left map and policy, or marks it for the last unpin.
    fn let_go(&mut self, slot: Slot) -> bool {
        self.needs.set(slot, None);
        let entry = &mut self.entries[slot as usize];
        if entry.state == EntryState::In {
            self.counters.entries -= 1;
        }
        if entry.pins > 0 {
            entry.state = EntryState::Doomed;
            return false;
        }
        self.counters.bytes -= u64::from(entry.item.size);
        entry.state = EntryState::Free;
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

    fn item(key: u64, size: u32) -> Item {
        Item { key, object: key, index: 0, of: 1, size }
    }

    #[test]
    fn room_is_made_and_what_is_pinned_stays() {
        let mut ledger = Ledger::new(10, PolicyName::Lru);
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

    /// Whatever the policy chooses, of entries with needs the one that is needed last leaves. Others are the policy's choice.
    #[test]
    fn of_entries_with_needs_the_last_needed_leaves() {
        for name in PolicyName::ALL {
            let mut ledger = Ledger::new(10, name);
            let mut gone = Vec::new();
            let at = |seconds| Some(Need::At(Duration::from_secs(seconds)));
            for (key, seconds) in [(1, 10), (2, 40), (3, 20), (4, 50), (5, 30)] {
                ledger.insert_needed(item(key, 2), at(seconds), 0, &mut gone).unwrap();
            }
            ledger.set_need(ledger.find(4).unwrap(), Need::At(Duration::from_secs(5)));
            ledger.insert_needed(item(6, 2), at(15), 1, &mut gone).unwrap();
            assert_eq!(ledger.insert_needed(item(7, 2), at(31), 1, &mut gone), Err(Refused), "{name}: it is the last");
            ledger.insert(item(8, 3), 2, &mut gone).unwrap();
            ledger.give_up_needs(Duration::from_secs(6));
            ledger.resize(7, 3, &mut gone);
            let keys: Vec<_> = gone.iter().map(|(_, item)| item.key).collect();
            assert_eq!(keys[..3], [2, 5, 3], "{name}");
            // Now the policy may choose the entry without a need too.
            assert!(keys[3..] == [4] || keys[3..] == [8], "{name}: {keys:?}");
            let mut left: Vec<_> = ledger.items().map(|(_, item)| item.key).collect();
            left.sort_unstable();
            assert!(left == [1, 6, 8] || left == [1, 4, 6], "{name}: {left:?}");
            assert_eq!(ledger.remove(1).map(|(_, is_free)| is_free), Some(true));
        }
    }

    #[test]
    fn a_slot_taken_out_while_pinned_comes_free_with_its_last_pin() {
        let mut ledger = Ledger::new(4, PolicyName::Lru);
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
