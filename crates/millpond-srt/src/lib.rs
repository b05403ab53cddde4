//! SRT of live streams (draft-sharabayko-srt-01), without I/O.
//!
//! No socket, no clock, no random numbers: datagrams, times and random bytes are arguments; datagrams, payloads and decisions are
//! results. Times are durations since a start of the caller's choice. Only live mode and handshakes of version 5 are spoken: no files,
//! no rendezvous, no groups.
//!
//! - A [`SrtListener`] answers callers without a state of its own, until one returns the cookie: its [`ConnectionRequest`] has the stream
//!   id, and is accepted or refused.
//! - A [`Caller`] makes a connection to a listener.
//! - A [`SrtConnection`] sends and receives payloads: it acknowledges, asks for lost packets and sends them again, delivers payloads at
//!   their time, and drops what is too late.
//! - A [`StreamId`] is what a caller asks for, in both ways that programs write it.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod caller;
mod connection;
mod cookie;
mod crypto;
mod extensions;
mod handshake;
mod listener;
pub mod packet;
mod rejection;
mod sequence;
mod stream_id;
#[cfg(test)]
mod tests;

pub use caller::{CallFailed, Caller, CallerOptions};
pub use connection::{Counts, SrtConnection, SrtEnded, SrtReceived};
pub use crypto::{BadPassphrase, KeyLength, Passphrase};
pub use listener::{ConnectionRequest, Destination, SrtArrival, SrtListener, UnlockedRequest};
pub use packet::SocketId;
pub use rejection::Rejection;
pub use sequence::Sequence;
pub use stream_id::{StreamAction, StreamId, StreamIdError};
