//! The cache simulator: workloads through the server's own policies and prefetch planner, on a virtual clock and a
//! modelled link.
//!
//! A [`Workload`] is generated at random ([`sproxy`], [`zipf`], [`mix`]) or read from a file ([`trace`]). [`run`] plays it with
//! viewers that read at the rate of the media, [`replay`] with viewers that take no time; [`byte_miss_ratio`] is the bound.
//! All of them drive the code that serves: the ledger and policies of `millpond_store::policy`, and the planner and meter of
//! `millpond_store::schedule`.

mod belady;
mod broadcast;
pub mod cluster;
mod compare;
mod generate;
mod link_model;
mod look_ahead;
mod mixes;
mod outcome;
mod plot;
mod replay;
mod run;
#[cfg(test)]
mod side_by_side;
mod slice_item;
pub mod trace;
mod workload;

pub use belady::byte_miss_ratio;
pub use broadcast::{BroadcastLoad, BroadcastRow, BroadcastSetting, broadcast};
pub use compare::{Row, compare, head};
pub use generate::{ZipfOptions, sproxy, zipf};
pub use link_model::LinkModel;
pub use millpond_stream::broadcast::MOST_PHASES;
pub use mixes::{MIXES, mix};
pub use outcome::{Outcome, Setting};
pub use plot::{Axis, Plot};
pub use replay::replay;
pub use run::run;
pub use workload::{Totals, Visit, Workload};
