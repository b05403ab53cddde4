//! Room for HTTP/2 streams and the bytes of their bodies, bounded by the budget of memory.
//!
//! A connection may open streams without end for nothing, so streams are counted over all connections. Each connection
//! has a small share of its own beside what all share: a client that takes everything leaves others theirs.

use millpond_store::{Hold, Holds, Memory};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What a stream is counted as: its state, its task, the plan of its reply.
const STREAM: u64 = 16 << 10;
/// What a body under way is counted as: bytes read or made for it that the client has not taken.
const BODY: u64 = 256 << 10;
/// Streams that a connection may always have.
const STREAMS_ALWAYS: usize = 8;
/// Part of the budget that streams share, and part that bodies share.
const PART: u64 = 4;

/// What all connections share.
pub(crate) struct Room {
    streams: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
    holds: Holds,
}

impl Room {
    /// Room within the budget of `memory`.
    pub(crate) fn new(memory: &Arc<Memory>) -> Arc<Self> {
        let shared = |cost: u64| {
            let count = usize::try_from(memory.budget() / PART / cost).unwrap_or(usize::MAX);
            Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)))
        };
        Arc::new(Self { streams: shared(STREAM), bodies: shared(BODY), holds: Holds::of(memory, "connections") })
    }

    /// Room for the bytes of a body beside those that every connection may have, where there is any.
    pub(crate) fn body(&self) -> Option<Ticket> {
        let permit = self.bodies.clone().try_acquire_owned().ok()?;
        Some(Ticket { _permit: permit, _hold: Some(self.holds.take(BODY)) })
    }

    /// The share of one connection.
    pub(crate) fn share(self: &Arc<Self>) -> Share {
        Share {
            room: self.clone(),
            streams: Arc::new(Semaphore::new(STREAMS_ALWAYS)),
            bodies: Arc::new(Semaphore::new(1)),
        }
    }
}

/// What one connection may use: its own first, then what is left of the common.
pub(crate) struct Share {
    room: Arc<Room>,
    streams: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
}

impl Share {
    /// Room for one more stream, where there is any.
    pub(crate) fn stream(&self) -> Option<Ticket> {
        if let Ok(permit) = self.streams.clone().try_acquire_owned() {
            return Some(Ticket { _permit: permit, _hold: None });
        }
        let permit = self.room.streams.clone().try_acquire_owned().ok()?;
        Some(Ticket { _permit: permit, _hold: Some(self.room.holds.take(STREAM)) })
    }

    /// Waits for room for the bytes of a body; `None` never happens while the server runs.
    pub(crate) async fn body(&self) -> Option<Ticket> {
        tokio::select! {
            biased;
            own = self.bodies.clone().acquire_owned() => Some(Ticket { _permit: own.ok()?, _hold: None }),
            common = self.room.bodies.clone().acquire_owned() => {
                Some(Ticket { _permit: common.ok()?, _hold: Some(self.room.holds.take(BODY)) })
            }
        }
    }
}

/// Room that was taken, until this is dropped.
pub(crate) struct Ticket {
    _permit: OwnedSemaphorePermit,
    /// What is charged to the budget: common room alone. Were each connection's own charged too, many connections would
    /// leave nothing to read with.
    _hold: Option<Hold>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_store::policy::PolicyName;

    #[tokio::test]
    async fn a_greedy_connection_leaves_others_their_share() {
        let memory = Memory::new(4 << 20, PolicyName::Sieve);
        let room = Room::new(&memory);
        let (greedy, modest) = (room.share(), room.share());
        let streams: Vec<Ticket> = std::iter::from_fn(|| greedy.stream()).collect();
        assert_eq!(streams.len(), STREAMS_ALWAYS + 64, "a quarter of 4 MiB by 16 KiB");
        let others: Vec<Ticket> = std::iter::from_fn(|| modest.stream()).collect();
        assert_eq!(others.len(), STREAMS_ALWAYS);
        assert_eq!(memory.used(), STREAM * 64, "a quarter and no more");
        drop((streams, others));
        let mut bodies = Vec::new();
        while let Some(Some(body)) = futures_util::FutureExt::now_or_never(greedy.body()) {
            bodies.push(body);
        }
        assert_eq!(bodies.len(), 5);
        assert!(room.body().is_none());
        assert_eq!(memory.used(), BODY * 4);
        assert!(futures_util::FutureExt::now_or_never(modest.body()).is_some());
        drop(bodies);
        assert_eq!(memory.used(), 0);
    }
}
