//! Addresses of the nodes of a cluster, which limits of clients do not count.

use std::{
    collections::HashSet,
    net::IpAddr,
    sync::{PoisonError, RwLock},
};

/// The addresses from which the nodes of this server's cluster send requests. They read on behalf of viewers whom they have counted.
#[derive(Debug, Default)]
pub struct NodeAddresses(RwLock<HashSet<IpAddr>>);

impl NodeAddresses {
    /// Replaces the addresses.
    pub fn set(&self, all: impl IntoIterator<Item = IpAddr>) {
        let all = all.into_iter().map(|address| address.to_canonical()).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = all;
    }

    /// Whether a client is a node.
    pub fn contains(&self, client: IpAddr) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(&client.to_canonical())
    }
}
