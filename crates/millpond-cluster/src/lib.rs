//! The decisions of a cluster: its nodes, the nodes that serve an object, and whether a stream fits.
//!
//! Pure: no socket, no clock and no etcd. A caller reads registrations from etcd and makes a [`View`] of them. An
//! [`Assignment`] names the dispensers of an object in such a view; [`homes`] names the nodes that keep a part of it, and
//! [`HomeRoute`] those that a node of a zone asks for it. A [`Book`] says whether a stream fits its node and its storages for its whole playback. A [`Witness`] finds the changes between two views,
//! and [`Liveness`] tells from probes whether a node answers. [`Prints`] tell whether nodes serve a place alike: a view that is
//! [seen by](View::seen_by) a node gives places to no others. All nodes with the same view and the same settings give the
//! same answers.
//!
//! A [`GossipMap`] is a node's copy of a registry that needs no service: nodes tell each other its changes.
//!
//! The crate moves no media and does not write to etcd.
//!
//! ```
//! use millpond_cluster::{Assignment, Bitrate, Entry, Loads, Node, ObjectKey, Request, Sosd, View};
//!
//! let nodes = ["a", "b", "c"].map(|name| Node::new(name.parse().unwrap(), Bitrate::from_mbps(1000)));
//! let written: Vec<_> = nodes.iter().map(|node| (format!("/millpond/nodes/{}/1", node.name), node.to_json())).collect();
//! let entries = written.iter().map(|(key, value)| Entry { key, value: value.as_bytes(), created: 1 });
//! let view = View::read("/millpond/", 7, entries);
//! assert!(view.problems().is_empty());
//!
//! let mut loads = Loads::new(view.into());
//! let key = ObjectKey::new("films", "ducks.mp4");
//! let answer = Sosd::default().assign(&mut loads, &Request { key: &key, rate: Bitrate::from_mbps(4), turn: 0, rooms: None });
//! assert_eq!(answer.candidates.len(), 3);
//! ```
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod assignment;
mod bitrate;
mod book;
#[cfg(test)]
mod book_tests;
mod booking;
mod change;
mod class;
mod clocks;
mod difference;
mod expected;
mod gossip;
mod hash;
mod home;
mod key;
mod ledger;
mod liveness;
mod load;
mod loads;
mod name;
mod node;
mod orders;
mod prints;
mod purge_entry;
mod purge_list;
mod role;
mod unbooked;
mod view;
mod wire;

pub use assignment::{Answer, Assignment, AssignmentName, Candidate, Request, Rooms, RoundRobin, Sosd, Standing};
pub use bitrate::Bitrate;
pub use book::{Book, CLOCKS_DIFFER, Shortage};
pub use booking::{Booking, BookingError, InvalidResource, Resource};
pub use change::{Change, ChangeKind, Witness};
pub use clocks::{ClockReading, Clocks, SharedTime};
pub use difference::{DifferingSettings, NodeDifference};
pub use expected::Expected;
pub use gossip::{
    GossipChange, GossipCondition, GossipEntry, GossipError, GossipEvent, GossipHeartbeat, GossipLease, GossipMap,
    GossipMoment, GossipOrder, GossipPair, GossipPass, GossipProof, GossipRefusal, GossipReply, GossipReplyError,
    GossipRun, GossipStamp, InvalidLease, InvalidPass, PASS_VALID,
};
pub use home::{HomeRoute, RangeGroup, homes, zone_home};
pub use key::ObjectKey;
pub use ledger::{BookingPlan, Demand, Ledger, Limits, Room, Slot};
pub use liveness::{Liveness, Probed};
pub use load::Load;
pub use loads::Loads;
pub use name::{InvalidName, NodeName};
pub use node::{Addresses, Node};
pub use prints::{InvalidPrints, Print, Prints};
pub use purge_entry::{PurgeEntry, PurgeEntryError, PurgedObjects};
pub use purge_list::{DuePurges, PurgeList};
pub use role::{InvalidRole, Role, Roles};
pub use unbooked::Unbooked;
pub use view::{Entry, Problem, ProblemKind, View, node_key};
pub use wire::NodeError;
