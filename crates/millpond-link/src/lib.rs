//! A link between two network namespaces with the faults of a bad network: delay, jitter, loss, bursts of loss, reordering,
//! duplicates, a limited rate with a bounded queue. It stands in for netem where the kernel lacks it.
//!
//! - [`direction`] decides what happens to each packet of one direction. It is pure: times and sizes of packets go in, times of
//!   delivery come out, and one seed gives one sequence of decisions. Tests on a virtual clock use it as their network.
//! - [`Link`] carries packets between two TUN devices as the directions decide.
//! - [`Ends`] puts the devices into two namespaces, with addresses, and removes the namespaces.
//!
//! The program `millpond-link` puts these together.
//!
//! ```
//! use millpond_link::direction::{Direction, Fate, Impairments};
//! use std::time::Duration;
//!
//! let impairments: Impairments = "delay=40ms,rate=1Mbit".parse().unwrap();
//! let mut direction = Direction::new(impairments, 1);
//! // 1,250 bytes take 10 ms at 1 Mbit/s.
//! let fate = direction.arrive(Duration::ZERO, 1250);
//! assert_eq!(fate, Fate::Delivered { at: Duration::from_millis(50), copy: None });
//! ```
//!
//! # What it is not for
//! It serves no viewers, and the server doesn't need it. It measures nothing itself beyond its own counters.

pub mod direction;
mod ends;
mod lateness;
mod link;
mod pending;
mod report;

pub use ends::{End, Ends, EndsError};
pub use lateness::Lateness;
pub use link::{Link, LinkError, PENDING};
pub use report::{DirectionReport, Report};
