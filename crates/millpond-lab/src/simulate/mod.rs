//! The cache simulator: traces through the server's own policies and prefetch modes, against a virtual clock and a
//! modelled link.
//!
//! A [`Workload`] is made by chance ([`sproxy`], [`zipf`], [`mix`]) or read from a file ([`trace`]); [`run`] plays it with viewers
//! who read at the rate of the media, [`replay`] as fast as it goes; [`byte_miss_ratio`] is the bound. It uses
//! `millpond_store::policy` and `millpond_store::schedule`, the code that serves.

mod belady;
mod compare;
mod generate;
mod mixes;
mod plot;
mod replay;
mod run;
pub mod trace;
mod way;
mod workload;

pub use belady::byte_miss_ratio;
pub use compare::{Row, compare, head};
pub use generate::{ZipfOptions, sproxy, zipf};
pub use mixes::{MIXES, mix};
pub use plot::{Axis, Plot};
pub use replay::replay;
pub use run::{Link, Outcome, Setting, run};
pub use way::Way;
pub use workload::{Totals, Visit, Workload};
