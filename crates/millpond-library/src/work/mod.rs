//! Heavy work: what a stored file makes the server compute, away from the threads that serve.
//!
//! Index building, presentations and manifests take time and memory in proportion to the metadata of a file, which
//! may be hostile. [`Pool`] runs such jobs on threads of its own with a lower priority. It bounds the jobs that wait,
//! charges their memory to the budget before it is used, and cancels a job when nobody waits for its result.

mod charges;
mod pool;
mod refusal;

pub(crate) use charges::Charge;
#[cfg(test)]
pub(crate) use pool::for_tests;
pub(crate) use pool::{Pool, PoolOptions};
pub use refusal::Refusal;
