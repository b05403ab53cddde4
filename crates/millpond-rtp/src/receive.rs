//! Receives one track: packets in any order in, whole access units out.
//!
//! A [`TrackReceiver`] follows one source among the packets that arrive, brings them into order within bounds
//! ([`ReorderBuffer`]), keeps the statistics of RFC 3550, and joins them to units. Where the sender offers it, it
//! asks for missing packets, and holds all packets by the time that repairs take. It owns no socket.

mod hold;
mod reorder;
mod repairs;
mod round_trip;
mod source;
#[cfg(test)]
mod tests;
mod track;

pub use reorder::{ReorderBuffer, ReorderLimits};
pub use repairs::RepairCounts;
pub use track::{ReceiveCounts, TrackReceiver};
