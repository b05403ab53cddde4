//! Connections of clients, before anybody knows which protocol they speak.
//!
//! A [`Listener`] is a listening socket, whose [`Door`] gives the connections. [`Slots`] limit those of a protocol, a [`ClientTally`] those of
//! a client. [`tls`] has the certificate, [`proxies`] the address of the client behind a trusted proxy, and [`kernel_pipe`] the way of
//! bytes from one connection to another.
//!
//! The crate reads no request, and knows no user and no media.
#![forbid(unsafe_code)]

pub mod kernel_pipe;
mod listeners;
pub mod proxies;
mod slots;
mod tally;
mod timeouts;
pub mod tls;

pub use listeners::{BindError, Door, Inherited, Listener, Listeners, SERVED, bind, transparent};
pub use slots::{Slot, Slots};
pub use tally::{ClientTally, Tallied};
pub use timeouts::ConnectionTimeouts;
