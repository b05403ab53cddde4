//! Eviction policies: pure, behind one small trait, one file each.
//!
//! A [`Ledger`] holds the cached entries and their sizes; its policy holds their order. Neither does I/O or reads a
//! clock, so the simulator runs the same code on traces that the server runs for viewers.
//!
//! For some entries the time of their next [need](Need) is known. If the policy chooses one of these, the ledger evicts the entry
//! that is needed last instead.

mod audience;
mod chain;
mod forecast;
mod gdsf;
mod ghost;
mod heap;
mod ledger;
mod lfu;
mod lru;
mod name;
mod need;
mod s3fifo;
mod shadow;
mod sieve;
mod sketch;
mod stream;
mod wtinylfu;

#[cfg(test)]
mod tests;

use gdsf::Gdsf;
pub use ledger::{Ledger, LedgerCounters, Refused};
use lfu::Lfu;
use lru::Lru;
pub use name::{BadPolicy, PolicyName};
pub use need::Need;
use s3fifo::S3Fifo;
use sieve::Sieve;
use stream::StreamPolicy;
use wtinylfu::WTinyLfu;

use std::fmt;

/// Milliseconds since any fixed moment.
pub type Time = u64;

/// The number of an entry in its [`Ledger`]. It is used again after the entry is gone.
pub type Slot = u32;

/// An entry, as a policy sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// Hash of the entry's permanent name (object, version, number of the slice), by which policies remember evicted
    /// entries.
    pub key: u64,
    /// Hash of the object that it is part of.
    pub object: u64,
    /// Number of the slice in the object, from 0.
    pub index: u32,
    /// Number of slices of the object; 1 for an entry that is no slice.
    pub of: u32,
    /// Its size in bytes.
    pub size: u32,
}

/// The order in which entries are evicted.
///
/// A ledger calls it with slots that are in it: each between one [`insert`](Policy::insert) and one
/// [`remove`](Policy::remove) or [`victim`](Policy::victim).
pub(crate) trait Policy: Send + fmt::Debug {
    /// Sets the capacity in bytes: before any other call, and when it changes.
    fn resize(&mut self, capacity: u64);

    /// An entry was inserted.
    fn insert(&mut self, slot: Slot, item: &Item, now: Time);

    /// An entry was looked up and is present.
    fn hit(&mut self, slot: Slot, item: &Item, now: Time);

    /// An entry was looked up and is absent, whether or not it will be inserted.
    fn miss(&mut self, _item: &Item, _now: Time) {}

    /// A viewer begins to read a slice, cached or not, at its first byte or in its middle. Prefetch does not count.
    fn read(&mut self, _item: &Item, _enters: bool, _now: Time) {}

    /// An entry was removed, but not evicted.
    fn remove(&mut self, slot: Slot, item: &Item);

    /// Chooses the entry to evict and forgets it. Entries that are `kept` are skipped. Returns `None` where all are.
    fn victim(&mut self, kept: &dyn Fn(Slot) -> bool, now: Time) -> Option<Slot>;
}
