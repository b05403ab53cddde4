//! A small client of etcd's API (version 3), by the JSON gateway that each member of etcd has.
//!
//! It does what membership and books need: reads of a prefix, transactions, leases and watches. It tries one member after
//! another, each within a time limit, and signs in again when etcd no longer knows its token. It keeps no state of keys: that is its
//! caller's. The two most important types are [`EtcdClient`] and [`KeyWatch`]. It knows nothing of Millpond.

mod client;
mod error;
mod message;
mod options;
mod transaction;
mod watch;

pub use client::{EtcdClient, Range};
pub use error::{EtcdError, code};
pub use message::{KeyEvent, KeyValue, LeaseId, Revision};
pub use options::{EtcdOptions, Tls};
pub use transaction::{Compare, Operation, Transaction};
pub use watch::KeyWatch;
