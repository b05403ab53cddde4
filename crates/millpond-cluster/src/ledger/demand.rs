//! Bandwidth that a stream wants, and the limits of nodes and storages.

use crate::Bitrate;
use std::{collections::BTreeSet, sync::Arc, time::Duration};

/// Bandwidth that can be booked; `None` is unbounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// That of this node.
    pub node: Option<Bitrate>,
    /// That of each storage, which all nodes share.
    pub storage: Option<Bitrate>,
    /// That of each store of a striping group, which all nodes share.
    pub store: Option<Bitrate>,
}

/// A stream that wants bandwidth of its node, and of a storage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// The storage that it reads from; `None` for one that reads from none.
    pub storage: Option<Arc<str>>,
    /// The stores of that storage's striping group that hold its units; each gives an equal part of it. Empty where one link carries it.
    pub stores: BTreeSet<Arc<str>>,
    /// Its bandwidth.
    pub rate: Bitrate,
    /// Time that it plays from now on; `None` for one without an end.
    pub length: Option<Duration>,
    /// Whether it needs its storage only: what a node reads and doesn't send.
    pub is_read_only: bool,
}
