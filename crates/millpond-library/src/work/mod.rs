//! Heavy work: computation that a stored file causes, on threads of its own.
//!
//! Index building, presentations and manifests take time and memory in proportion to the metadata of a file, which
//! may be hostile. A [`WorkPool`] runs such jobs on threads with a lower priority than those that serve. It bounds the
//! jobs that wait, charges their memory to the budget before it is used, and cancels a job when nobody waits for its
//! result. Whoever renders what a [`Library`](crate::Library) opened shares the pool through
//! [`Library::pool`](crate::Library::pool). Clients that have jobs waiting take turns, and playlists run before pictures.

mod asker;
mod charges;
mod counters;
mod error;
mod pool;
mod queue;

pub use asker::Asker;
pub use charges::Charge;
pub use counters::PoolStats;
pub use error::{MemoryShare, PoolError};
pub use pool::{PoolOptions, WorkPool};
pub use queue::JobKind;

/// Most samples of a segment that is planned on the serving threads: a hundred microseconds of work.
pub const FEW_SAMPLES: u32 = 2048;
