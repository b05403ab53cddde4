//! Eviction policies: pure, behind one small trait, one file each.
//!
//! A [`Ledger`] holds what is cached and how much room it takes; its policy holds the order. Neither does I/O or
//! reads a clock, so the simulator runs the same code against traces that the server runs against viewers.

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
mod s3fifo;
mod shadow;
mod sieve;
mod sketch;
mod stream;
mod wtinylfu;

#[cfg(test)]
mod tests;

use gdsf::Gdsf;
pub use ledger::{Counters, Ledger, Refused};
use lfu::Lfu;
use lru::Lru;
pub use name::{BadPolicy, PolicyName};
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
    /// Hash of the entry's lasting name (object, version, number of the slice): what is remembered of evicted entries.
    pub key: u64,
    /// Hash of the object that it is part of.
    pub object: u64,
    /// Which slice of the object, from 0.
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
    /// Tells the capacity in bytes: before anything else, and when it changes.
    fn resize(&mut self, capacity: u64);

    /// An entry was inserted.
    fn insert(&mut self, slot: Slot, item: &Item, now: Time);

    /// An entry was looked up and is present.
    fn hit(&mut self, slot: Slot, item: &Item, now: Time);

    /// An entry was looked up and is absent, whether or not it will be inserted.
    fn miss(&mut self, _item: &Item, _now: Time) {}

    /// A viewer begins to read a slice, present or absent: with its first byte, or in its middle. Prefetch is no viewer.
    fn read(&mut self, _item: &Item, _enters: bool, _now: Time) {}

    /// An entry was removed, for another reason than its eviction.
    fn remove(&mut self, slot: Slot, item: &Item);

    /// Chooses the entry to evict and forgets it, passing over entries that are `kept`. Returns `None` where all are.
    fn victim(&mut self, kept: &dyn Fn(Slot) -> bool, now: Time) -> Option<Slot>;
}
