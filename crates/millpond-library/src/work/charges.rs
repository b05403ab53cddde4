//! Memory of heavy work, charged to the budget before it is used.

use super::{MemoryShare, PoolError};
use millpond_store::{Hold, Holds, Memory};
use std::{sync::Arc, time::Duration};
use tokio::{sync::Notify, time::timeout_at};

/// Longest wait for memory that other jobs hold.
const PATIENCE: Duration = Duration::from_secs(5);
/// Share of the budget for all jobs together: slices being fetched need the rest.
const SHARE: MemoryShare = MemoryShare::Half;

/// The part of the memory budget that heavy work uses.
#[derive(Debug)]
pub(super) struct Charges {
    holds: Holds,
    freed: Arc<Notify>,
    patience: Duration,
}

/// Memory charged to the budget until this is dropped.
#[derive(Debug)]
#[must_use = "the memory is given back when this is dropped"]
pub struct Charge {
    hold: Hold,
    freed: Arc<Notify>,
}

impl Charges {
    pub(super) fn new(memory: &Arc<Memory>) -> Self {
        Self { holds: Holds::of(memory, "work"), freed: Arc::default(), patience: PATIENCE }
    }

    /// Returns the bytes that all jobs may have together.
    pub(super) fn most(&self) -> u64 {
        SHARE.of(self.holds.budget())
    }

    /// Charges `bytes`. Waits up to [`PATIENCE`] while other jobs hold them.
    pub(super) async fn charge(&self, bytes: u64) -> Result<Charge, PoolError> {
        let deadline = tokio::time::Instant::now() + self.patience;
        loop {
            let (budget, most) = (self.holds.budget(), self.most());
            if bytes > most {
                return Err(PoolError::TooLarge { wanted: bytes, most, share: SHARE, budget });
            }
            // Listening begins before the attempt, so that memory given back in between is noticed.
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            if let Some(hold) = self.holds.try_take(bytes, most) {
                return Ok(Charge { hold, freed: self.freed.clone() });
            }
            if timeout_at(deadline, freed).await.is_err() {
                return Err(PoolError::NoRoom { wanted: bytes, seconds: self.patience.as_secs(), budget });
            }
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.hold.give_back();
        self.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_store::{Store, StoreOptions};

    #[tokio::test]
    async fn a_charge_waits_for_others_and_not_for_ever() {
        let store = Store::new(&StoreOptions::default()).unwrap();
        let budget = store.memory().budget();
        let mut charges = Charges::new(store.memory());
        charges.patience = Duration::from_millis(5);
        let most = budget / 2;
        let refused = charges.charge(most + 1).await.unwrap_err();
        assert_eq!(refused, PoolError::TooLarge { wanted: most + 1, most, share: SHARE, budget });
        let first = charges.charge(most).await.unwrap();
        assert!(store.memory().used() >= most);
        assert!(matches!(charges.charge(1).await, Err(PoolError::NoRoom { wanted: 1, .. })));
        charges.patience = Duration::from_secs(60);
        let (second, ()) = tokio::join!(charges.charge(most), async {
            tokio::task::yield_now().await;
            drop(first);
        });
        drop(second.unwrap());
        assert_eq!(store.memory().used(), 0);
    }
}
