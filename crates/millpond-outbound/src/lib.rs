//! HTTP requests to other servers: origins, siblings, nodes, key sets, deciders of access, etcd.
//!
//! The servers may be hostile. A [`Client`] bounds what HTTP itself does not: interim replies (RFC 9110 15.2), frames of
//! HTTP/2 that carry no content, and the time that one connection keeps a thread before other work runs. Requests have
//! no time limit of their own, except for connecting: a caller that stops to wait ends them.
//!
//! The most important types are [`Client`] with its [`Options`], and [`SendError`]. [`FrameWalk`] finds the frames of HTTP/2
//! in passing bytes, for servers too. The crate knows no
//! origins and no places, and does not interpret replies: its callers do.
#![forbid(unsafe_code)]

mod client;
mod connector;
mod error;
mod frame_walk;
mod frames;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzzing;
mod guard;
mod heads;
mod request;
mod tls;

pub use client::{Client, Options};
pub use error::{CertificateFault, Excess, SendError, chain};
pub use frame_walk::{FrameHead, FrameKind, FrameWalk};
pub use request::RequestBuilder;
