//! Moves replies to clients: HTTP/1.1, plain and inside TLS, by our own loop, so that file ranges leave a plain
//! connection by `sendfile`; HTTP/2 by `h2`, with bodies read as clients take them.

mod body;
mod buffers;
mod chunk;
mod h1;
mod head;
mod http2;
mod listen;
mod meter;
mod pipe;
mod residency;
mod rewound;
mod room;
mod rules;
mod stream;
mod window;
mod wire;

pub(crate) use body::{Body, BodyError, Needs};
#[cfg(feature = "fuzz")]
pub(crate) use head::{Parsed, parse as parse_head};
pub(crate) use listen::{Limits, SendError, Service, accept_plain, accept_tls};
pub(crate) use meter::Meter;
