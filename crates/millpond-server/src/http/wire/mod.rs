//! Connections to clients: HTTP/1.1, plain and over TLS, in a loop of this crate, so that file ranges leave a plain
//! connection by `sendfile`; HTTP/2 by the `h2` crate, with bodies read as clients take them.

mod body_writer;
mod budget;
mod client_frames;
mod error;
mod exchange;
mod h1;
mod http2;
mod http2_body;
#[cfg(feature = "intercept")]
mod intercepted;
mod listen;
mod meter;
mod reply_head;
mod rewind;
mod service;
mod socket;
mod splice;
mod upload;

#[cfg(feature = "intercept")]
pub(crate) use intercepted::{Intercepted, answer_intercepted, closed};
pub(crate) use listen::{accept_plain, accept_tls};
pub(crate) use service::Service;
