//! The load generator of WebRTC: viewers in numbers by WHEP (draft-ietf-wish-whep), against any server, each with a port of its own.
//!
//! [`run_until`] plays what [`Options`] say and gives a [`Report`]: how long each step of a start took, and of every single RTP
//! packet whether it came and came in time. Headers of SRTP are not encrypted, so nothing is decrypted but the server's reports.
//! A packet is late when it comes more than 100 ms after its time, by its timestamp and the fastest packet of its track.
//!
//! # How it stays cheap
//! It receives as the generator of RTSP does: the kernel notes when each packet comes, and a thread of its own takes all that came on
//! each port fifty times a second.
//!
//! # What it does not do
//! It decodes nothing, asks for no packets again, and knows no passwords. Candidates of UDP are enough for it: no TURN, no mDNS.

mod checks;
mod description;
mod failure;
mod handshake;
mod lateness;
mod media;
mod options;
mod receiver;
mod report;
mod run;
mod session;
mod tally;

pub use options::Options;
pub use report::{Report, Sessions};
pub use run::{RunError, run_until};
