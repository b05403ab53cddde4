//! Moves replies to clients: HTTP/1.1 over plain TCP by our own loop, so that file ranges leave by `sendfile`;
//! HTTP/2 and everything over TLS by hyper.

mod body;
mod buffers;
mod chunk;
mod h1;
mod head;
mod hyper_front;
mod listen;
mod residency;
mod window;

pub(crate) use body::{Body, BodyError, Needs};
pub(crate) use listen::{Limits, SendError, Service, accept_plain, accept_tls};
