//! Errors of registries.

use millpond_cluster::GossipError;
use millpond_etcd::EtcdError;

/// An error of a request to the registry.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum RegistryError {
    /// Of etcd.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    /// Of the nodes' own copies.
    #[error(transparent)]
    Static(#[from] GossipError),
}

impl RegistryError {
    /// The name of the registry, for messages.
    pub(crate) fn registry(&self) -> &'static str {
        match self {
            Self::Static(_) => "the registry of the nodes",
            _ => "etcd",
        }
    }

    /// Whether the named key or lease does not exist.
    pub(in super::super) fn is_not_found(&self) -> bool {
        match self {
            Self::Etcd(error) => error.is_not_found(),
            Self::Static(error) => *error == GossipError::NoLease,
        }
    }

    /// Whether nothing is wrong but that the keys must be read anew.
    pub(in super::super) fn is_compacted(&self) -> bool {
        matches!(self, Self::Etcd(EtcdError::Compacted { .. }) | Self::Static(GossipError::Forgotten(_)))
    }

    /// Whether the request may have been carried out although it failed.
    pub(in super::super) fn is_unsure(&self) -> bool {
        match self {
            Self::Etcd(error) => error.is_of_member(),
            Self::Static(_) => false,
        }
    }
}
