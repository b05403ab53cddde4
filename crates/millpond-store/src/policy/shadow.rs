//! A cache without bytes: what a policy would have had, of a sample of the slices.
//!
//! A sample of one slice in `n` in a cache of an `n`th of the room is missed as often as all slices in all of it
//! (Waldspurger et al., "Efficient MRC construction with SHARDS", FAST 2015). The sample gets thinner as the cache grows, so
//! that a shadow stays small.

use super::{Item, Ledger, Policy, Slot, Time};

/// Entries of a shadow at most; then every other slice leaves the sample.
const ENTRIES: u64 = 8192;
/// A miss counts half when this many times the cache's capacity was looked up since.
const HALF_LIFE: f64 = 2.0;

/// A cache of names only, under one policy.
#[derive(Debug)]
pub(super) struct Shadow {
    ledger: Ledger,
    capacity: u64,
    /// One slice of two to the power of this is in the sample.
    thinned: u32,
    /// Bytes looked up and absent, the latest counting most.
    missed: f64,
    gone: Vec<(Slot, Item)>,
}

impl Shadow {
    pub(super) fn new(policy: Box<dyn Policy>) -> Self {
        Self { ledger: Ledger::with(0, policy), capacity: 0, thinned: 0, missed: 0.0, gone: Vec::new() }
    }

    /// Tells the capacity of the cache.
    pub(super) fn resize(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.ledger.resize(capacity >> self.thinned, 0, &mut self.gone);
        self.gone.clear();
    }

    pub(super) fn read(&mut self, item: &Item, enters: bool, now: Time) {
        self.ledger.read(item, enters, now);
    }

    /// Looks a slice up.
    pub(super) fn ask(&mut self, item: &Item, now: Time) {
        if !is_sampled(item.key, self.thinned) {
            return;
        }
        let size = f64::from(item.size);
        self.missed *= (-std::f64::consts::LN_2 * size / (HALF_LIFE * self.ledger.capacity().max(1) as f64)).exp();
        if self.ledger.ask(item, now).is_some() {
            return;
        }
        self.missed += size;
        let _ = self.ledger.insert(*item, now, &mut self.gone);
        self.gone.clear();
        if self.ledger.counters().entries > ENTRIES {
            self.thin();
        }
    }

    fn thin(&mut self) {
        self.thinned += 1;
        let out = self.ledger.items().map(|(_, item)| item.key).filter(|key| !is_sampled(*key, self.thinned));
        for key in out.collect::<Vec<_>>() {
            self.ledger.remove(key);
        }
        self.missed /= 2.0;
        self.resize(self.capacity);
    }

    /// Bytes missed, the latest counting most, as of all slices.
    pub(super) fn missed(&self) -> f64 {
        self.missed * f64::from(self.thinned).exp2()
    }
}

/// Returns whether a slice is in the sample: by bits of its name that hash tables and sketches don't begin with.
fn is_sampled(key: u64, thinned: u32) -> bool {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).trailing_zeros() >= thinned
}
