//! Repairs of damaged units: from a good copy, one at a time, beside the readers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::group_store::GroupStore;
use super::map::StripeMap;
use super::part::read_unit;
use super::sums::UnitSums;
use crate::error::OriginError;

/// Most repairs that wait.
const WAITING: usize = 64;

/// Time after which a repair that failed may be tried again.
const AGAIN: Duration = Duration::from_secs(60);

/// A unit that is damaged at one store, and good at another one.
pub(super) struct Repair {
    pub(super) map: Arc<StripeMap>,
    pub(super) unit: u64,
    pub(super) sums: UnitSums,
    pub(super) damaged: Arc<GroupStore>,
    pub(super) good: Arc<GroupStore>,
}

/// The repairs of a place. Each holds one unit in memory.
#[derive(Debug)]
pub(super) struct RepairQueue {
    waiting: Arc<Semaphore>,
    turn: Arc<Semaphore>,
}

impl RepairQueue {
    pub(super) fn new() -> Self {
        Self { waiting: Arc::new(Semaphore::new(WAITING)), turn: Arc::new(Semaphore::new(1)) }
    }

    /// Begins a repair, if the damaged store may be written to. Without room in the queue, the damage is forgotten, and the next
    /// reader of the copy finds it again.
    pub(super) fn add(&self, repair: Repair) {
        if repair.damaged.sink.is_none() {
            return;
        }
        let Ok(place) = self.waiting.clone().try_acquire_owned() else {
            return repair.forget();
        };
        let turn = self.turn.clone();
        tokio::spawn(async move {
            // It is never closed.
            let Ok(turn) = turn.acquire_owned().await else { return };
            drop(place);
            let is_done = repair.run().await;
            drop(turn);
            if !is_done {
                // Its store may be back then: the next read that finds the damage asks for the repair again.
                sleep(AGAIN).await;
                repair.forget();
            }
        });
    }
}

impl Repair {
    /// Repairs the unit. Returns whether that was possible.
    async fn run(&self) -> bool {
        let (object, unit, store) = (&self.map.source().location, self.unit, &self.damaged.name);
        match self.write().await {
            Ok(()) => {
                self.damaged.counters.repaired.fetch_add(1, Ordering::Relaxed);
                self.forget();
                tracing::info!(object, unit, %store, from = %self.good.name, "a damaged unit is repaired");
                true
            }
            Err(error) => {
                tracing::warn!(object, unit, %store, %error, "a damaged unit cannot be repaired");
                false
            }
        }
    }

    async fn write(&self) -> Result<(), OriginError> {
        let (Some(path), Some(sink)) = (self.map.unit_path(self.unit), &self.damaged.sink) else { return Ok(()) };
        let bytes = read_unit(&*self.good.patient, &path, &self.sums).await?;
        sink.put(&path, bytes).await
    }

    fn forget(&self) {
        if let Some(path) = self.map.unit_path(self.unit) {
            self.damaged.forget_damage(path.as_str());
        }
    }
}
