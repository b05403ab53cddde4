//! A registry without a service: each node has all keys of the cluster, and the nodes tell each other what changed.
//!
//! [`GossipMap`] is the copy of one node. A [`GossipReply`] is what a node tells another one: the keys that changed since the last time, and
//! the heartbeats of all leases that it knows. Of two values of a key the one with the greater [stamp](GossipStamp) counts, so copies that have
//! heard the same changes are the same, whatever their order and however often they came.

mod entry;
mod error;
mod lease;
mod leases;
mod log;
mod map;
mod pass;
mod refusal;
mod reply;
mod stamp;
#[cfg(test)]
mod tests;

pub use entry::GossipEntry;
pub use error::GossipError;
pub use lease::{GossipLease, InvalidLease};
pub use leases::GossipHeartbeat;
pub use log::{GossipEvent, GossipPair};
pub use map::{GossipChange, GossipCondition, GossipMap, GossipMoment, GossipOrder, GossipRun};
pub use pass::{GossipPass, GossipProof, InvalidPass, PASS_VALID};
pub use refusal::GossipRefusal;
pub use reply::{GossipReply, GossipReplyError};
pub use stamp::GossipStamp;
