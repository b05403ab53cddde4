//! A node of a cluster.

use super::{Bitrate, Load, NodeName, Role, Roles};
use std::sync::Arc;

/// The addresses of a node for viewers and other nodes. `None` is a protocol that the node does not serve.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// Base URL of scheme `http` or `https`, without a path, a query or credentials, and without a slash at its end.
    pub http: Option<Arc<str>>,
    /// Base URL of scheme `rtsp` or `rtsps`, in the same form.
    pub rtsp: Option<Arc<str>>,
}

/// A registered node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name in the cluster.
    pub name: NodeName,
    /// Its addresses.
    pub addresses: Addresses,
    /// Bandwidth that it can send. Its share of all objects is in proportion.
    pub capacity: Bitrate,
    /// Roles of the node.
    pub roles: Roles,
    /// Whether it leaves: it finishes its streams and gets nothing new.
    pub draining: bool,
    /// Its load.
    pub load: Load,
}

impl Node {
    /// A node with all roles, without addresses and load.
    pub fn new(name: NodeName, capacity: Bitrate) -> Self {
        let (addresses, load) = Default::default();
        Self { name, addresses, capacity, roles: Roles::ALL, draining: false, load }
    }

    /// Whether new work of `role` may be given to it.
    pub fn takes(&self, role: Role) -> bool {
        !self.draining && self.roles.contains(role) && self.capacity > Bitrate::ZERO
    }
}
