//! RTMP (Adobe's Real Time Messaging Protocol, specification 1.0; Enhanced RTMP 2) of publishers and players, from both ends.
//!
//! Pure: no socket and no clock. A [`Session`] is the server's end of a connection, and an [`RtmpClient`] the client's. Each takes the
//! bytes of a connection. It returns what its peer does as events, and the bytes for the peer. Media messages come out as FLV tags
//! (Video File Format specification 10, annex E.4), whose bodies are those of the messages. [`RtmpMedia`] is one to be sent.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod aggregate;
mod amf0;
mod capabilities;
mod chunk;
mod chunk_writer;
mod client;
mod command;
mod error;
mod handshake;
mod link;
mod message;
mod reply;
mod session;
mod target;
#[cfg(test)]
mod tests;
mod url;

pub use chunk_writer::RtmpMedia;
pub use client::{ClientEvent, RtmpClient, RtmpPurpose};
pub use error::RtmpError;
pub use session::{Refusal, RtmpEvent, Session};
pub use target::StreamTarget;
pub use url::{RtmpUrl, RtmpUrlError};
