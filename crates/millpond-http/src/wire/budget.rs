//! Memory budget for replies in progress: streams of HTTP/2 and bytes of bodies.
//!
//! Opening streams costs a client nothing, so streams are counted over all connections. In addition to the common
//! budget, each connection has a small one of its own, which greedy clients cannot take.

use millpond_store::{Hold, Holds, Memory};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory charged for a stream, in bytes: its state, its task and the plan of its reply.
const STREAM_COST: u64 = 16 << 10;
/// Memory charged for a body in progress, in bytes: those that the client has not taken yet.
const BODY_COST: u64 = 256 << 10;
/// Streams that every connection may have.
const STREAMS_ALWAYS: usize = 8;
/// Divisor of the memory budget: streams share one such part, bodies another.
const BUDGET_SHARE: u64 = 4;

/// The budget of all connections together.
pub(super) struct ReplyBudget {
    streams: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
    holds: Holds,
}

impl ReplyBudget {
    /// Creates a budget within that of `memory`.
    pub(super) fn new(memory: &Arc<Memory>) -> Arc<Self> {
        let shared = |cost: u64| {
            let count = usize::try_from(memory.budget() / BUDGET_SHARE / cost).unwrap_or(usize::MAX);
            Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)))
        };
        Arc::new(Self {
            streams: shared(STREAM_COST),
            bodies: shared(BODY_COST),
            holds: Holds::of(memory, "connections"),
        })
    }

    /// Reserves memory for a body from the common budget, if any is left.
    pub(super) fn try_body(&self) -> Option<Reservation> {
        let permit = self.bodies.clone().try_acquire_owned().ok()?;
        Some(Reservation { _permit: permit, _hold: Some(self.holds.take(BODY_COST)) })
    }

    /// Creates the budget of one connection.
    pub(super) fn of_connection(self: &Arc<Self>) -> ConnectionBudget {
        ConnectionBudget {
            common: self.clone(),
            streams: Arc::new(Semaphore::new(STREAMS_ALWAYS)),
            bodies: Arc::new(Semaphore::new(1)),
        }
    }
}

/// The budget of one connection: its own first, then the common one.
pub(super) struct ConnectionBudget {
    common: Arc<ReplyBudget>,
    streams: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
}

impl ConnectionBudget {
    /// Reserves memory for a stream, if any is left.
    pub(super) fn try_stream(&self) -> Option<Reservation> {
        if let Ok(permit) = self.streams.clone().try_acquire_owned() {
            return Some(Reservation { _permit: permit, _hold: None });
        }
        let permit = self.common.streams.clone().try_acquire_owned().ok()?;
        Some(Reservation { _permit: permit, _hold: Some(self.common.holds.take(STREAM_COST)) })
    }

    /// Waits for memory for a body. Never returns `None` while the server runs.
    pub(super) async fn body(&self) -> Option<Reservation> {
        tokio::select! {
            biased;
            own = self.bodies.clone().acquire_owned() => Some(Reservation { _permit: own.ok()?, _hold: None }),
            common = self.common.bodies.clone().acquire_owned() => {
                Some(Reservation { _permit: common.ok()?, _hold: Some(self.common.holds.take(BODY_COST)) })
            }
        }
    }
}

/// Reserved memory. Dropping it returns the memory to the budget.
pub(super) struct Reservation {
    _permit: OwnedSemaphorePermit,
    /// Charge to the memory budget, for common memory only. Charging the connections' own too would let many
    /// connections use up the memory for reading.
    _hold: Option<Hold>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_store::policy::PolicyName;

    #[tokio::test]
    async fn a_greedy_connection_leaves_others_their_budget() {
        let memory = Memory::new(4 << 20, PolicyName::Sieve);
        let budget = ReplyBudget::new(&memory);
        let (greedy, modest) = (budget.of_connection(), budget.of_connection());
        let streams: Vec<Reservation> = std::iter::from_fn(|| greedy.try_stream()).collect();
        assert_eq!(streams.len(), STREAMS_ALWAYS + 64, "a quarter of 4 MiB by 16 KiB");
        let others: Vec<Reservation> = std::iter::from_fn(|| modest.try_stream()).collect();
        assert_eq!(others.len(), STREAMS_ALWAYS);
        assert_eq!(memory.used(), STREAM_COST * 64, "a quarter and no more");
        drop((streams, others));
        let mut bodies = Vec::new();
        while let Some(Some(body)) = futures_util::FutureExt::now_or_never(greedy.body()) {
            bodies.push(body);
        }
        assert_eq!(bodies.len(), 5);
        assert!(budget.try_body().is_none());
        assert_eq!(memory.used(), BODY_COST * 4);
        assert!(futures_util::FutureExt::now_or_never(modest.body()).is_some());
        drop(bodies);
        assert_eq!(memory.used(), 0);
    }
}
