//! The changes of this node's copy of all keys.

use super::{RegistryError, StaticRegistry};
use millpond_etcd::{KeyEvent, Revision};
use std::time::Duration;
use tokio::{sync::watch, time::sleep};

/// Longest interval between looks for leases that are over.
const TICK: Duration = Duration::from_millis(250);

/// A watch of keys.
#[derive(Debug)]
pub(in super::super) struct StaticChanges {
    registry: StaticRegistry,
    prefix: String,
    /// Number of the next change.
    next: u64,
    changed: watch::Receiver<u64>,
}

impl StaticChanges {
    pub(super) fn new(registry: StaticRegistry, prefix: String, next: u64) -> Self {
        let changed = registry.changed();
        Self { registry, prefix, next, changed }
    }

    /// Waits for the next changes. Cancel safe: no change is lost.
    pub(super) async fn next(&mut self) -> Result<(Vec<KeyEvent>, Revision), RegistryError> {
        loop {
            self.registry.tick();
            self.changed.borrow_and_update();
            let (events, at) = self.registry.changes(&self.prefix, self.next)?;
            self.next = at + 1;
            if !events.is_empty() {
                return Ok((events, i64::try_from(at).unwrap_or(i64::MAX)));
            }
            tokio::select! {
                _ = self.changed.changed() => {}
                () = sleep(TICK) => {}
            }
        }
    }
}
