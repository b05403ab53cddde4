//! HTTP as clients speak it: HTTP/1.1 in a loop of this crate, HTTP/2 by the `h2` crate.
//!
//! | module | does |
//! |---|---|
//! | [`wire`] | accepts connections, reads heads and sends replies: HTTP/1.1, HTTP/2, TLS |
//! | [`body`] | turns plans, files and object ranges into chunks that a connection pulls |
//! | [`request`] | parses heads, targets, ranges and preconditions; pure |
//!
//! Imports run down this table only; a unit test enforces that. A [`wire::FrontEnd`] finds the
//! target of each request and makes the reply. This crate knows no assets, streams or paths.

pub mod body;
pub mod request;
#[cfg(test)]
mod walls;
pub mod wire;
