//! Memory: one budget for everything that is kept in memory and can be made again.
//!
//! Slices, indexes, rendered playlists and segments are entries of one ledger under one policy. Each kind gets memory in
//! proportion to the value of its entries, and the whole process has one limit.

pub(crate) mod cache;
pub(crate) mod hold;

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::policy::{Item, Ledger, Need, PolicyName, Slot, Time};

/// Counters of one kind of entries, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Weight of all entries, in bytes.
    pub weight: u64,
    /// Limit of entries, reservations and held memory together. All kinds of a memory share it.
    pub budget: u64,
    /// Number of entries.
    pub entries: u64,
    /// Lookups that found an entry.
    pub hits: u64,
    /// Lookups that found none.
    pub misses: u64,
    /// Entries inserted.
    pub insertions: u64,
    /// Entries evicted to make space.
    pub evictions: u64,
    /// Entries refused for want of space.
    pub refused: u64,
}

/// Entries of all kinds under one budget.
pub struct Memory {
    /// A lock: an operation is a look-up and a few words of bookkeeping. Entries are so large that threads rarely meet
    /// here.
    inner: Mutex<Inner>,
    started: Instant,
}

struct Inner {
    ledger: Ledger,
    values: Vec<Option<Held>>,
    kinds: Vec<(&'static str, CacheCounters)>,
    budget: u64,
    /// Bytes reserved for entries that are being made.
    reserved: u64,
    /// Bytes in use outside of entries.
    held: u64,
}

/// A value with the kind of its entry.
pub(crate) struct Held {
    kind: usize,
    pub(crate) value: Arc<dyn Any + Send + Sync>,
}

impl Memory {
    /// Creates an empty memory, with a budget in bytes.
    pub fn new(budget: u64, policy: PolicyName) -> Arc<Self> {
        Arc::new(Self {
            inner: Mutex::new(Inner {
                ledger: Ledger::new(budget, policy),
                values: Vec::new(),
                kinds: Vec::new(),
                budget,
                reserved: 0,
                held: 0,
            }),
            started: Instant::now(),
        })
    }

    /// Changes the budget, in bytes.
    pub fn set_budget(&self, budget: u64) {
        self.change(|inner, now| {
            inner.budget = budget;
            inner.fit(now)
        });
    }

    /// Returns the bytes of all entries, reservations and held memory.
    pub fn used(&self) -> u64 {
        let inner = self.lock();
        inner.ledger.counters().bytes + inner.taken()
    }

    /// Returns the budget in bytes.
    pub fn budget(&self) -> u64 {
        self.lock().budget
    }

    /// Returns the counters of each kind of entries.
    pub fn kinds(&self) -> Vec<(&'static str, CacheCounters)> {
        let inner = self.lock();
        inner
            .kinds
            .iter()
            .map(|(name, counters)| (*name, CacheCounters { budget: inner.budget, ..*counters }))
            .collect()
    }

    /// Adds a kind of entries.
    pub(crate) fn kind(&self, name: &'static str) -> usize {
        let mut inner = self.lock();
        inner.kinds.push((name, CacheCounters::default()));
        inner.kinds.len() - 1
    }

    pub(crate) fn counters(&self, kind: usize) -> CacheCounters {
        let inner = self.lock();
        CacheCounters { budget: inner.budget, ..inner.kinds[kind].1 }
    }

    /// Returns the value of an entry for which `is_it` returns true, and counts a use of the entry.
    pub(crate) fn get(
        &self,
        kind: usize,
        item: &Item,
        is_it: impl FnOnce(&dyn Any) -> bool,
    ) -> Option<Arc<dyn Any + Send + Sync>> {
        let now = self.now();
        let mut inner = self.lock();
        let found = inner.ledger.ask(item, now).and_then(|slot| {
            let held = inner.values.get(slot as usize)?.as_ref()?;
            is_it(&*held.value).then(|| held.value.clone())
        });
        let counters = &mut inner.kinds[kind].1;
        match &found {
            Some(_) => counters.hits += 1,
            None => counters.misses += 1,
        }
        found
    }

    /// Counts a viewer that begins to read a slice, in memory or not. `enters` says whether it begins with the first
    /// byte.
    pub(crate) fn read(&self, item: &Item, enters: bool) {
        let now = self.now();
        self.lock().ledger.read(item, enters, now);
    }

    /// As [`Memory::get`], without counting a use.
    pub(crate) fn peek<T>(&self, key: u64, look: impl FnOnce(&dyn Any) -> T) -> Option<T> {
        let inner = self.lock();
        let slot = inner.ledger.find(key)?;
        inner.values.get(slot as usize)?.as_ref().map(|held| look(&*held.value))
    }

    /// Inserts an entry and replaces one with the same key. Releases `reserved` bytes of a reservation in the same
    /// step. Returns whether the entry was inserted.
    pub(crate) fn insert(&self, kind: usize, item: Item, value: Arc<dyn Any + Send + Sync>, reserved: u64) -> bool {
        self.insert_needed(kind, (item, None), value, reserved)
    }

    /// As [`Memory::insert`], for an entry of which it may be known when it is needed next.
    pub(crate) fn insert_needed(
        &self,
        kind: usize,
        (item, need): (Item, Option<Need>),
        value: Arc<dyn Any + Send + Sync>,
        reserved: u64,
    ) -> bool {
        let old = self.remove(item.key);
        let is_in = self.change(|inner, now| {
            inner.reserved = inner.reserved.saturating_sub(reserved);
            let mut gone = inner.fit(now).1;
            let mut slots = Vec::new();
            let slot = inner.ledger.insert_needed(item, need, now, &mut slots);
            gone.extend(inner.out(&slots));
            let counters = &mut inner.kinds[kind].1;
            let Ok(slot) = slot else {
                counters.refused += 1;
                return (false, gone);
            };
            counters.weight += u64::from(item.size);
            counters.entries += 1;
            counters.insertions += 1;
            let index = slot as usize;
            if index >= inner.values.len() {
                inner.values.resize_with(index + 1, || None);
            }
            inner.values[index] = Some(Held { kind, value });
            (true, gone)
        });
        drop(old);
        is_in
    }

    /// Changes when an entry is needed next. The needs of all entries are times of one clock.
    pub(crate) fn set_need(&self, key: u64, need: Need) {
        let mut inner = self.lock();
        if let Some(slot) = inner.ledger.find(key) {
            inner.ledger.set_need(slot, need);
        }
    }

    /// Entries that were needed before a time are evicted first from now on.
    pub(crate) fn give_up_needs(&self, before: Duration) {
        self.lock().ledger.give_up_needs(before);
    }

    /// Removes an entry.
    pub(crate) fn remove(&self, key: u64) -> Option<Arc<dyn Any + Send + Sync>> {
        self.lock().remove(key)
    }

    /// Removes an entry whose value is `unwanted`, in one step.
    pub(crate) fn remove_if(
        &self,
        key: u64,
        unwanted: impl FnOnce(&dyn Any) -> bool,
    ) -> Option<Arc<dyn Any + Send + Sync>> {
        let mut inner = self.lock();
        let slot = inner.ledger.find(key)?;
        if !unwanted(&*inner.values.get(slot as usize)?.as_ref()?.value) {
            return None;
        }
        inner.remove(key)
    }

    /// Removes all entries of a kind whose values are `unwanted`. Returns their number.
    pub(crate) fn purge(&self, kind: usize, unwanted: impl Fn(&dyn Any) -> bool) -> usize {
        let mut gone = Vec::new();
        let mut inner = self.lock();
        let keys: Vec<u64> = inner
            .ledger
            .items()
            .filter(|(slot, _)| {
                let held = inner.values.get(*slot as usize).and_then(Option::as_ref);
                held.is_some_and(|held| held.kind == kind && unwanted(&*held.value))
            })
            .map(|(_, item)| item.key)
            .collect();
        gone.extend(keys.into_iter().filter_map(|key| inner.remove(key)));
        drop(inner);
        gone.len()
    }

    /// Calls `each` with every value of a kind.
    pub(crate) fn each(&self, kind: usize, mut each: impl FnMut(&dyn Any)) {
        let inner = self.lock();
        inner.values.iter().flatten().filter(|held| held.kind == kind).for_each(|held| each(&*held.value));
    }

    /// Reserves bytes for an entry that is being made, and evicts entries for it. Returns whether there is enough
    /// space. The reservation must be ended by [`Memory::release`] or [`Memory::insert`].
    pub(crate) fn reserve(&self, bytes: u64) -> bool {
        self.change(|inner, now| {
            if inner.taken().saturating_add(bytes) > inner.budget {
                return (false, Vec::new());
            }
            inner.reserved += bytes;
            inner.fit(now)
        })
    }

    /// Ends a reservation.
    pub(crate) fn release(&self, bytes: u64) {
        self.change(|inner, now| {
            inner.reserved = inner.reserved.saturating_sub(bytes);
            inner.fit(now)
        });
    }

    /// Counts bytes in use, without a limit. They must be given back by [`Memory::let_go`].
    pub(crate) fn hold(&self, kind: usize, bytes: u64) {
        // Zero bytes are no entry.
        if bytes == 0 {
            return;
        }
        self.change(|inner, now| inner.hold(kind, bytes, now));
    }

    /// As [`Memory::hold`], if this kind then holds at most `most` and nothing exceeds the budget. Returns whether it
    /// does.
    pub(crate) fn try_hold(&self, kind: usize, bytes: u64, most: u64) -> bool {
        self.change(|inner, now| {
            let fits = inner.kinds[kind].1.weight.saturating_add(bytes) <= most
                && inner.taken().saturating_add(bytes) <= inner.budget;
            match (fits, bytes) {
                (true, 1..) => inner.hold(kind, bytes, now),
                _ => (fits, Vec::new()),
            }
        })
    }

    /// Stops counting bytes in use.
    pub(crate) fn let_go(&self, kind: usize, bytes: u64) {
        self.change(|inner, now| {
            inner.held -= bytes;
            let counters = &mut inner.kinds[kind].1;
            counters.weight -= bytes;
            counters.entries -= 1;
            inner.fit(now)
        });
    }

    /// Runs a step under the lock. Removed values are dropped after it, because their destructors may be slow.
    fn change(&self, step: impl FnOnce(&mut Inner, Time) -> (bool, Vec<Held>)) -> bool {
        let now = self.now();
        let (result, gone) = step(&mut self.lock(), now);
        drop(gone);
        result
    }

    fn now(&self) -> Time {
        self.started.elapsed().as_millis() as Time
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Only the policy and comparisons of keys run under it.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Returns the bytes that entries cannot use.
    fn taken(&self) -> u64 {
        self.reserved + self.held
    }

    /// Sets the capacity of the ledger to the bytes that are neither reserved nor held.
    fn fit(&mut self, now: Time) -> (bool, Vec<Held>) {
        let mut slots = Vec::new();
        self.ledger.resize(self.budget.saturating_sub(self.taken()), now, &mut slots);
        (true, self.out(&slots))
    }

    fn hold(&mut self, kind: usize, bytes: u64, now: Time) -> (bool, Vec<Held>) {
        self.held += bytes;
        let counters = &mut self.kinds[kind].1;
        counters.weight += bytes;
        counters.entries += 1;
        counters.insertions += 1;
        self.fit(now)
    }

    fn out(&mut self, slots: &[(Slot, Item)]) -> Vec<Held> {
        let take = |(slot, item): &(Slot, Item)| {
            let held = self.values.get_mut(*slot as usize)?.take()?;
            let counters = &mut self.kinds[held.kind].1;
            counters.weight -= u64::from(item.size);
            counters.entries -= 1;
            counters.evictions += 1;
            Some(held)
        };
        slots.iter().filter_map(take).collect()
    }

    fn remove(&mut self, key: u64) -> Option<Arc<dyn Any + Send + Sync>> {
        let size = self.ledger.item(self.ledger.find(key)?)?.size;
        let (slot, _) = self.ledger.remove(key)?;
        let held = self.values.get_mut(slot as usize)?.take()?;
        let counters = &mut self.kinds[held.kind].1;
        counters.weight -= u64::from(size);
        counters.entries -= 1;
        Some(held.value)
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.lock();
        f.debug_struct("Memory").field("budget", &inner.budget).field("kinds", &inner.kinds).finish_non_exhaustive()
    }
}
