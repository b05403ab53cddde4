//! The changes of keys, as they are made.

#[cfg(test)]
use super::super::simulation::SimulatedWatch;
use super::{RegistryError, StaticChanges};
use millpond_etcd::{KeyEvent, KeyWatch, Revision};

/// A watch of keys. It ends when it is dropped.
#[derive(Debug)]
pub(crate) enum KeyChanges {
    /// By etcd.
    Etcd(KeyWatch),
    /// By etcd in memory.
    #[cfg(test)]
    Simulated(SimulatedWatch),
    /// By the nodes' own copies.
    Static(StaticChanges),
}

impl KeyChanges {
    /// Waits for the next changes; returns them with the revision of the registry. Cancel safe: no change is lost.
    ///
    /// # Errors
    /// The watch is over: the member is gone, or the revision is forgotten.
    pub(in super::super) async fn next(&mut self) -> Result<(Vec<KeyEvent>, Revision), RegistryError> {
        match self {
            Self::Etcd(watch) => Ok(watch.next().await?),
            #[cfg(test)]
            Self::Simulated(watch) => watch.next().await,
            Self::Static(changes) => changes.next().await,
        }
    }
}
