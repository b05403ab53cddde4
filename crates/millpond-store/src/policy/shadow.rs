//! A cache without bytes: the misses of a policy, measured with a sample of the slices.
//!
//! A sample of one slice in `n`, in a cache of an `n`th of the capacity, has the miss ratio of all slices in the whole
//! cache (Waldspurger et al., "Efficient MRC construction with SHARDS", FAST 2015). The sample gets thinner as the
//! cache grows, so that a shadow stays small.

use super::{Item, Ledger, Policy, Slot, Time};

/// Most entries of a shadow. Beyond them every other slice leaves the sample.
const ENTRIES: u64 = 8192;
/// A miss counts half after lookups of this many times the cache's capacity.
const HALF_LIFE: f64 = 2.0;

/// A cache of names only, under one policy.
#[derive(Debug)]
pub(super) struct Shadow {
    ledger: Ledger,
    capacity: u64,
    /// Binary logarithm of the sampling: one slice of two to the power of this is in the sample.
    thinned: u32,
    /// Bytes looked up and absent. Later ones count more.
    missed: f64,
    gone: Vec<(Slot, Item)>,
}

impl Shadow {
    pub(super) fn new(policy: Box<dyn Policy>) -> Self {
        Self { ledger: Ledger::with(0, policy), capacity: 0, thinned: 0, missed: 0.0, gone: Vec::new() }
    }

    /// Sets the capacity of the cache.
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

    /// Returns the missed bytes, scaled to all slices. Later ones count more.
    pub(super) fn missed(&self) -> f64 {
        self.missed * f64::from(self.thinned).exp2()
    }
}

/// Returns whether a slice is in the sample. Uses bits of its name that hash tables and sketches do not begin with.
fn is_sampled(key: u64, thinned: u32) -> bool {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).trailing_zeros() >= thinned
}
