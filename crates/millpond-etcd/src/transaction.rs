//! Transactions: what must hold, and what is then changed, at once.

use crate::message::{Base64, Int, LeaseId, Revision, end_of};
use serde_json::{Value, json};

/// A condition of a transaction.
#[derive(Clone, Debug)]
pub enum Compare {
    /// A key is not there.
    Absent(Vec<u8>),
    /// No key has a prefix.
    NoneBelow(Vec<u8>),
    /// A key was last changed at a revision.
    Unchanged(Vec<u8>, Revision),
}

/// A change of a transaction.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Gives a key a value, under a lease if there is one.
    Put {
        /// Key.
        key: Vec<u8>,
        /// Value.
        value: Vec<u8>,
        /// Lease with which the key ends.
        lease: Option<LeaseId>,
    },
    /// Deletes a key.
    Delete(Vec<u8>),
}

/// Changes that are made together, if all conditions hold.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    /// Conditions.
    pub conditions: Vec<Compare>,
    /// Changes.
    pub changes: Vec<Operation>,
}

impl Transaction {
    /// The request of the transaction.
    pub(crate) fn request(&self) -> Value {
        json!({
            "compare": self.conditions.iter().map(Compare::request).collect::<Vec<_>>(),
            "success": self.changes.iter().map(Operation::request).collect::<Vec<_>>(),
        })
    }
}

impl Compare {
    fn request(&self) -> Value {
        match self {
            Self::Absent(key) => json!({ "key": Base64(key.clone()), "target": "CREATE", "create_revision": Int(0) }),
            Self::NoneBelow(prefix) => json!({
                "key": Base64(prefix.clone()),
                "range_end": Base64(end_of(prefix)),
                "target": "CREATE",
                "create_revision": Int(0),
            }),
            Self::Unchanged(key, revision) => {
                json!({ "key": Base64(key.clone()), "target": "MOD", "mod_revision": Int(*revision) })
            }
        }
    }
}

impl Operation {
    fn request(&self) -> Value {
        match self {
            Self::Put { key, value, lease } => json!({ "request_put": {
                "key": Base64(key.clone()),
                "value": Base64(value.clone()),
                "lease": Int(lease.map_or(0, |LeaseId(id)| id)),
            } }),
            Self::Delete(key) => json!({ "request_delete_range": { "key": Base64(key.clone()) } }),
        }
    }
}
