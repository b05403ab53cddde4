//! Striping: an object cut into units, which lie on the stores of a striping group in turn (section 2.2 of Srinilta and
//! Choudhary, "Performance Enhancement Using Intra-server Caching in a Continuous Media Server").
//!
//! A [`StripeMap`] beside the place's other objects says how the units lie. [`StripedOrigin`](origin::StripedOrigin) presents a
//! striped object as an ordinary one, and reads units of several stores at the same time. A map has only the names of its stores.
//! The operator configures their locations: `docs/design/decisions/0022-striping.md`.
//!
//! No byte of a unit is handed out before its block is verified by its checksum: `docs/design/decisions/0093-checksums-of-units.md`.

mod batch;
mod block_gate;
pub(crate) mod group;
mod group_store;
mod hex;
mod map;
pub(crate) mod origin;
mod part;
mod repair;
mod scrub;
mod sink;
mod sum_cache;
#[cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]
mod sums;
mod turns;
mod unstriping;
mod writing;

#[cfg(test)]
mod tests;

pub use map::{MapError, StripeMap, StripeSource};
pub use scrub::{ScrubFault, ScrubOutcome, Scrubbed, scrub};
pub use sink::{MapTarget, StripeError};
pub use sums::{BadBlock, SumError, SumHead, SumPage, SumTable, SumWriter, UnitSums};
pub use unstriping::{remove_striped, unstripe};
pub use writing::{StripePlan, Striped, remove, stripe};
