//! Keys with their values, as nodes tell them to each other.

use super::{GossipLease, GossipStamp};
use crate::NodeName;
use std::sync::Arc;

/// Most bytes of a key.
pub(super) const LONGEST_KEY: usize = 1024;
/// Most bytes of a value.
pub(super) const LONGEST_VALUE: usize = 256 << 10;

/// A key with its last change. Of two entries of one key the greater one counts: the fields are compared in their order, the stamp before all
/// else.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GossipEntry {
    /// The key.
    pub key: String,
    /// Stamp of the change.
    pub stamp: GossipStamp,
    /// The node that made it.
    pub by: NodeName,
    /// Stamp of the change that made the key.
    pub created: GossipStamp,
    /// The lease with which the key ends.
    pub lease: Option<GossipLease>,
    /// The value; `None` where the key was deleted.
    pub value: Option<Arc<str>>,
}

impl GossipEntry {
    /// Bytes of the key and its value.
    pub(super) fn size(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, |value| value.len())
    }
}
