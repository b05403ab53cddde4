//! The load generator of RTSP: clients in numbers, against any server, each with ports or a connection of its own.
//!
//! [`run_until`] plays what [`Options`] say and gives a [`Report`]: how long sessions took to start, how long each request,
//! and of every single RTP packet whether it came and came in time. A packet is late when it comes more than 100 ms after
//! its time: that of the first packet after a PLAY, and as much later as its timestamp is. Timestamps are those of
//! presentation, so clips with B-frames deviate by their reordering.
//!
//! # How it stays cheap
//! It shares the machine with what it measures. The kernel notes when each packet comes; a thread of its own takes all
//! that came on each port fifty times a second, with one system call a port, and keeps twelve bytes of each packet. No
//! packet wakes a task. Over TCP packets arrive through the connection's task, and their time is that of the read.
//!
//! # What it does not do
//! It decodes nothing and knows no passwords. Redirects are followed until a session has been set up.

mod agenda;
mod arrivals;
pub(crate) mod batch;
mod chart;
pub(crate) mod clock;
mod connection;
mod failure;
pub(crate) mod figures;
mod habits;
mod histograms;
mod media;
pub(crate) mod observation;
mod options;
pub(crate) mod ports;
mod receiver;
pub(crate) mod report;
mod run;
pub(crate) mod schedule;
mod session;
mod sink;
pub(crate) mod system;
mod tally;
mod thread;
mod titles;

pub use histograms::Histograms;
pub use options::{Audience, Options, Transport, Watch};
pub use report::{Distributions, Generator, MediaReport, MethodReport, Progress, Report, Sessions};
pub use run::{RunError, run_until};
pub use titles::expand;
