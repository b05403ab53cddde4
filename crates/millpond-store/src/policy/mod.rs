//! Which entry of a full cache goes: pure replacement policies behind one small trait, a file each.
//!
//! A [`Ledger`] holds what is cached and how much room it takes; its [`Policy`] holds the order. Neither does I/O or
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
mod s3fifo;
mod shadow;
mod sieve;
mod sketch;
mod stream;
mod wtinylfu;

#[cfg(test)]
mod tests;

pub use gdsf::Gdsf;
pub use ledger::{Counters, Ledger, Refused};
pub use lfu::Lfu;
pub use lru::Lru;
pub use s3fifo::S3Fifo;
pub use sieve::Sieve;
pub use stream::Stream;
pub use wtinylfu::WTinyLfu;

use std::fmt;

/// Milliseconds since any fixed moment.
pub type Time = u64;

/// The place of an entry in its [`Ledger`]: used again after the entry is gone.
pub type Slot = u32;

/// What a policy is told of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// Hash of the entry's lasting name (object, version, number of the slice): what is remembered of entries gone.
    pub key: u64,
    /// Hash of the object that it is part of.
    pub object: u64,
    /// Which slice of the object, from 0.
    pub index: u32,
    /// How many slices the object has; 1 for what is no slice.
    pub of: u32,
    /// Room that it takes, in bytes.
    pub size: u32,
}

/// The order in which entries go.
///
/// A ledger calls it with slots that are in it: each between one [`insert`](Policy::insert) and one
/// [`remove`](Policy::remove) or [`victim`](Policy::victim).
pub trait Policy: Send + fmt::Debug {
    /// Its name in configuration and tables.
    fn name(&self) -> &'static str;

    /// The room there is, in bytes: told before anything else, and when it changes.
    fn resize(&mut self, capacity: u64);

    /// An entry was put in.
    fn insert(&mut self, slot: Slot, item: &Item, now: Time);

    /// An entry was asked for and is there.
    fn hit(&mut self, slot: Slot, item: &Item, now: Time);

    /// Something was asked for that is not there, whether or not it will be put in.
    fn miss(&mut self, _item: &Item, _now: Time) {}

    /// A viewer begins to read a slice, whether or not it is there: with its first byte, or in its middle. Those who look
    /// for slices to send for them are no viewers.
    fn read(&mut self, _item: &Item, _enters: bool, _now: Time) {}

    /// An entry is gone for another reason than room.
    fn remove(&mut self, slot: Slot, item: &Item);

    /// Chooses the entry that goes and forgets it, passing over those that `kept` says must stay; `None` where all
    /// must.
    fn victim(&mut self, kept: &dyn Fn(Slot) -> bool, now: Time) -> Option<Slot>;
}

/// The names of all policies.
pub const NAMES: &[&str] = &["lru", "lfu", "gdsf", "s3-fifo", "sieve", "w-tinylfu", "stream"];

/// The policy of a name.
pub fn by_name(name: &str) -> Option<Box<dyn Policy>> {
    Some(match name {
        "lru" => Box::new(Lru::default()),
        "lfu" => Box::new(Lfu::default()),
        "gdsf" => Box::new(Gdsf::default()),
        "s3-fifo" => Box::new(S3Fifo::default()),
        "sieve" => Box::new(Sieve::default()),
        "w-tinylfu" => Box::new(WTinyLfu::default()),
        "stream" => Box::new(Stream::default()),
        _ => return None,
    })
}
