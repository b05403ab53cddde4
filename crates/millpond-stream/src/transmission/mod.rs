//! Network transmission in real time: frames become packets and leave when they are due (AMPS).
//!
//! A [`Transmitter`] is a thread with a pair of UDP ports. Its state machine, [`Rounds`](rounds::Rounds), has no sockets and
//! no clock. Each subscriber on it is a [`Sending`](sending::Sending), which sends the frames of a [`Transmission`] through
//! the outlets of its [`TrackSender`]s.

mod allowance;
mod arrival;
mod burst;
mod deadline;
mod epochs;
mod history;
mod kinds;
#[cfg(not(feature = "tfrc"))]
mod no_rate_control;
mod pace;
mod packets;
mod progress;
mod protection;
mod rounds;
mod sending;
mod shared_port;
#[cfg(test)]
mod tests;
mod thread_time;
mod track;
mod transmitter;
mod udp;
mod wheel;

pub(crate) use arrival::Arrival;
pub use deadline::Lateness;
pub(crate) use epochs::Epochs;
pub use history::PACKETS_KEPT;
pub(crate) use kinds::{KIND, MULTICAST};
pub(crate) use pace::Pace;
pub use pace::RateRule;
pub use progress::{Observer, Progress, SentTotals};
pub use protection::Protection;
pub use sending::ROUND;
pub(crate) use sending::Transmission;
pub use shared_port::SharedPort;
pub(crate) use thread_time::ThreadTime;
pub(crate) use track::Passed;
pub use track::{TrackSender, ntp};
pub(crate) use transmitter::{Stopped, Transmitter};
pub use udp::Udp;

use std::time::{Instant, SystemTime};

/// A moment, on both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// On the clock that never goes back.
    pub(crate) at: Instant,
    /// On the clock that sender reports tell.
    pub(crate) wall: SystemTime,
}

impl Now {
    /// Reads the system's clocks.
    pub(crate) fn read() -> Self {
        Self { at: Instant::now(), wall: SystemTime::now() }
    }
}
