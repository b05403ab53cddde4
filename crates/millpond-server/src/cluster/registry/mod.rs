//! The registry of a cluster: keys with revisions, leases and watches, by which its nodes know each other.
//!
//! Its semantics are etcd's (keys are changed by transactions, in one order that revisions number; keys under a lease end with it), so
//! that the tasks of a node are the same with every registry. Without etcd, each node has a copy of all keys, whose revisions are
//! stamps ([`StaticRegistry`]).

mod answers;
mod askers;
#[cfg(test)]
mod conformance;
mod error;
mod gossip;
mod key_changes;
mod own_addresses;
mod peers;
mod static_changes;
mod static_registry;
#[cfg(test)]
mod trust;

pub(crate) use answers::{AskedQuestion, GossipQuestion, ProvedAnswer};
pub(crate) use error::RegistryError;
pub(crate) use gossip::{GOSSIP, PASS_HEADER, PROOF_HEADER};
pub(super) use key_changes::KeyChanges;
pub(crate) use peers::PeerStatus;
pub(super) use static_changes::StaticChanges;
pub(super) use static_registry::StaticRegistry;

#[cfg(test)]
use super::simulation::SimulatedEtcd;
use millpond_etcd::{EtcdClient, LeaseId, Range, Revision, Transaction};
use std::time::Duration;

/// The registry of a cluster. Its clones are one.
#[derive(Clone, Debug)]
pub(super) enum Registry {
    /// etcd.
    Etcd(EtcdClient),
    /// etcd in memory, for the simulation of a cluster.
    #[cfg(test)]
    Simulated(SimulatedEtcd),
    /// Copies of the nodes of a list.
    Static(StaticRegistry),
}

impl Registry {
    /// Its name, for messages.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Static(_) => "the registry of the nodes",
            _ => "etcd",
        }
    }

    /// Whether all nodes see all changes in one order, which the revisions of readings number. Otherwise revisions of keys are stamps of different
    /// clocks.
    pub(super) fn has_one_order(&self) -> bool {
        !matches!(self, Self::Static(_))
    }

    /// Asks another member first from now on, where the registry has members.
    pub(super) fn rotate(&self) {
        match self {
            Self::Etcd(client) => client.rotate(),
            #[cfg(test)]
            Self::Simulated(_) => {}
            Self::Static(_) => {}
        }
    }

    /// Reads the keys of a prefix, at most `most`.
    ///
    /// # Errors
    /// The registry does not answer, or refuses.
    pub(super) async fn range(&self, prefix: &[u8], most: usize) -> Result<Range, RegistryError> {
        match self {
            Self::Etcd(client) => Ok(client.range(prefix, most).await?),
            #[cfg(test)]
            Self::Simulated(etcd) => etcd.range(prefix, most).await,
            Self::Static(registry) => registry.range(prefix, most).await,
        }
    }

    /// Makes changes if all conditions hold; tells whether they did.
    ///
    /// # Errors
    /// As [`commit_at`](Self::commit_at).
    pub(super) async fn commit(&self, transaction: &Transaction) -> Result<bool, RegistryError> {
        self.commit_at(transaction).await.map(|revision| revision.is_some())
    }

    /// Makes changes if all conditions hold; returns their revision, or `None` where a condition does not hold. Without an answer, the changes may
    /// or may not have been made.
    ///
    /// # Errors
    /// The registry does not answer, or refuses.
    pub(super) async fn commit_at(&self, transaction: &Transaction) -> Result<Option<Revision>, RegistryError> {
        match self {
            Self::Etcd(client) => Ok(client.commit_at(transaction).await?),
            #[cfg(test)]
            Self::Simulated(etcd) => etcd.commit_at(transaction).await,
            Self::Static(registry) => registry.commit_at(transaction),
        }
    }

    /// Begins a lease; returns the time to live that it has.
    ///
    /// # Errors
    /// The registry does not answer, or refuses.
    pub(super) async fn grant(&self, ttl: Duration) -> Result<(LeaseId, Duration), RegistryError> {
        match self {
            Self::Etcd(client) => Ok(client.grant(ttl).await?),
            #[cfg(test)]
            Self::Simulated(etcd) => etcd.grant(ttl).await,
            Self::Static(registry) => registry.grant(ttl),
        }
    }

    /// Renews a lease; returns its time to live, or `None` where it is over.
    ///
    /// # Errors
    /// The registry does not answer, or refuses.
    pub(super) async fn keep_alive(&self, lease: LeaseId) -> Result<Option<Duration>, RegistryError> {
        match self {
            Self::Etcd(client) => Ok(client.keep_alive(lease).await?),
            #[cfg(test)]
            Self::Simulated(etcd) => etcd.keep_alive(lease).await,
            Self::Static(registry) => Ok(registry.keep_alive(lease)),
        }
    }

    /// Ends a lease, and deletes its keys.
    ///
    /// # Errors
    /// The registry does not answer, or refuses.
    pub(super) async fn revoke(&self, lease: LeaseId) -> Result<(), RegistryError> {
        match self {
            Self::Etcd(client) => Ok(client.revoke(lease).await?),
            #[cfg(test)]
            Self::Simulated(etcd) => etcd.revoke(lease).await,
            Self::Static(registry) => registry.revoke(lease),
        }
    }

    /// Follows the changes of keys with a prefix, from a revision on.
    ///
    /// # Errors
    /// The registry does not answer, refuses, or has forgotten the revision.
    pub(super) async fn watch(&self, prefix: &[u8], from: Revision) -> Result<KeyChanges, RegistryError> {
        match self {
            Self::Etcd(client) => Ok(KeyChanges::Etcd(client.watch(prefix, from).await?)),
            #[cfg(test)]
            Self::Simulated(etcd) => Ok(KeyChanges::Simulated(etcd.watch(prefix, from).await?)),
            Self::Static(registry) => Ok(KeyChanges::Static(registry.watch(prefix, from)?)),
        }
    }

    /// Whether nodes are simulated: then all runs on one thread, in one order.
    #[cfg(test)]
    pub(super) fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated(_))
    }
}
