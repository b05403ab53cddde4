//! Receives one track: packets in any order in, whole access units out.
//!
//! A [`TrackReceiver`] follows one source among the packets that arrive, brings them into order within bounds
//! ([`ReorderBuffer`]), keeps the statistics of RFC 3550, and joins them to units. It owns no socket.

mod reorder;
mod source;
#[cfg(test)]
mod tests;
mod track;

pub use reorder::{ReorderBuffer, ReorderLimits};
pub use track::{ReceiveCounts, TrackReceiver};
