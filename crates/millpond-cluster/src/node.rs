//! A node of a cluster.

use super::{Bitrate, Load, NodeName, Prints, Role, Roles};
use std::{net::IpAddr, sync::Arc};

/// The addresses of a node for viewers and other nodes. `None` is a protocol that the node does not serve.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// Base URL of scheme `http` or `https`, without a path, a query or credentials, and without a slash at its end.
    pub http: Option<Arc<str>>,
    /// Base URL of scheme `rtsp` or `rtsps`, in the same form.
    pub rtsp: Option<Arc<str>>,
    /// Base URL of scheme `https` at which the node answers other nodes only; `None` where it has no such listener.
    pub nodes: Option<Arc<str>>,
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
    /// Bandwidth that can be booked of it; `None` where that is not limited, and where its version does not state it.
    pub limit: Option<Bitrate>,
    /// Version of its program; `None` where that is of a time before versions were registered.
    pub version: Option<Arc<str>>,
    /// Address of its machine on the way to etcd, from which its requests to other nodes come too; `None` where that is not known.
    pub source: Option<IpAddr>,
    /// Id of its cluster; `None` where it states none.
    pub cluster: Option<Arc<str>>,
    /// Zone that it is in, such as a site with fast links; `None` where it states none.
    pub zone: Option<Arc<str>>,
    /// Prints of the settings that form its output; `None` where its version does not state them, or in another form.
    pub prints: Option<Arc<Prints>>,
    /// Roles of the node.
    pub roles: Roles,
    /// Whether it leaves: it finishes its streams and gets nothing new.
    pub draining: bool,
    /// Number of the last purge that it has applied; `None` where its version knows no purges.
    pub purged: Option<u64>,
    /// Its load.
    pub load: Load,
}

impl Node {
    /// A node with all roles, without addresses and load.
    pub fn new(name: NodeName, capacity: Bitrate) -> Self {
        let (addresses, load) = Default::default();
        let (limit, version, source, cluster, zone, prints, purged) = Default::default();
        let (roles, draining) = (Roles::ALL, false);
        Self { name, addresses, capacity, limit, version, source, cluster, zone, prints, purged, roles, draining, load }
    }

    /// Bandwidth that can be booked of it; `None` where that is not limited. Versions that do not state it are taken to be as the node that
    /// asks, of which `is_limited` tells whether its bandwidth is limited.
    pub fn bookable(&self, is_limited: bool) -> Option<Bitrate> {
        match &self.version {
            Some(_) => self.limit,
            None => Some(self.capacity).filter(|_| is_limited),
        }
    }

    /// Whether new work of `role` may be given to it.
    pub fn takes(&self, role: Role) -> bool {
        !self.draining && self.roles.contains(role) && self.capacity > Bitrate::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_old_versions_are_limited_as_the_node_that_asks() {
        let mbps = Bitrate::from_mbps;
        let old = Node::new("a".parse().unwrap(), mbps(100));
        assert_eq!((old.bookable(true), old.bookable(false)), (Some(mbps(100)), None));
        let new = Node { version: Some("1.0".into()), ..old };
        assert_eq!((new.bookable(true), new.bookable(false)), (None, None));
        let limited = Node { limit: Some(mbps(50)), ..new };
        assert_eq!((limited.bookable(true), limited.bookable(false)), (Some(mbps(50)), Some(mbps(50))));
    }
}
