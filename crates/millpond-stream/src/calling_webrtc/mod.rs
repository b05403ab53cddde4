//! Calls to servers by WebRTC: an offer by HTTP, and a connection to the server that answers it.
//!
//! A stream is pushed by WHIP (RFC 9725) and pulled by WHEP in the same way; they differ in the direction of the media. A [`Call`] sends
//! the offer and connects. What it returns, [`Called`], is a [`Link`] for packets, their keys, and the [`CalledSession`], which is ended
//! by a request when it is dropped.

mod call;
mod credentials;
mod endpoint;
mod error;
mod link;
mod signalling;
mod sockets;

pub(crate) use call::{Call, Called, STREAM};
pub use endpoint::WebRtcEndpoint;
pub(crate) use endpoint::without_long_parts;
pub(crate) use error::{CallError, CallPurpose};
pub(crate) use link::Link;
pub(crate) use signalling::CalledSession;
