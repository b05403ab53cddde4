//! Parsers of requests: head, target, framing, preconditions, ranges and accepted codings.
//!
//! Each is a pure function of the bytes or header fields that a client sent: no I/O, no clock, no configuration.
//! The module is public so that unit tests and fuzz targets call the parsers that serve. The two most important types
//! are [`Request`], which HTTP/1 and HTTP/2 share, and [`head::ParsedHead`], the result of reading HTTP/1 bytes.

pub mod accept;
pub mod authority;
pub mod body;
pub mod cmcd;
pub mod coding;
pub mod conditional;
mod error;
pub mod framing;
pub mod head;
mod message;
pub mod range;
pub mod target;

pub use error::HeadError;
pub use message::{FieldValue, Request};
