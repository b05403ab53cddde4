//! RTMP (Adobe's Real Time Messaging Protocol, specification 1.0) as publishers speak it.
//!
//! Pure: no socket and no clock. A [`Session`] takes the bytes of a connection. It returns what its client does as [`RtmpEvent`]s,
//! and the bytes of its replies. Media messages come out as FLV tags (Video File Format specification 10, annex E.4), whose
//! bodies are those of the messages.
//!
//! Clients can only publish: `play` is refused.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod amf0;
mod chunk;
mod error;
mod handshake;
mod message;
mod reply;
mod session;
#[cfg(test)]
mod tests;

pub use error::RtmpError;
pub use session::{PublishTarget, Refusal, RtmpEvent, Session};
