//! The cluster as operators see it.

use super::{
    Cluster, Start,
    state::{Link, Membership},
    steering::assumed,
};
use millpond_cluster::{Candidate, Demand, Node, ObjectKey, RangeGroup, Room, homes};
use serde::Serialize;
use std::{collections::BTreeMap, sync::PoisonError};
use utoipa::ToSchema;

/// The state of this node, and the nodes of the last view.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ClusterStatus {
    /// Name of this node; null where the server is none of a cluster.
    node: Option<String>,
    /// Number of this run of the node, hexadecimal.
    incarnation: String,
    /// `joining`, `member`, `lost`, or why the name is taken.
    membership: String,
    /// Whether this node drains.
    draining: bool,
    /// The connection to etcd.
    etcd: EtcdStatus,
    /// Revision of the view.
    revision: u64,
    /// Rule that assigns assets to nodes.
    assignment: String,
    /// The nodes.
    nodes: Vec<NodeStatus>,
    /// Booked bandwidth of nodes and storage, in bits a second.
    booked: BTreeMap<String, u64>,
    /// Entries in etcd that are no node.
    problems: Vec<String>,
    /// Number of such entries.
    problem_count: usize,
}

/// The connection to etcd.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct EtcdStatus {
    /// `new`, `following` or `away`.
    state: &'static str,
    /// Time for which it has been away.
    seconds: Option<u64>,
    /// The last error, while it is away.
    error: Option<String>,
}

/// A node.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct NodeStatus {
    /// Its name.
    name: String,
    /// Whether it is this one.
    #[serde(rename = "self")]
    is_self: bool,
    /// Its URL of HTTP.
    http: Option<String>,
    /// Its URL of RTSP.
    rtsp: Option<String>,
    /// Its roles.
    roles: Vec<String>,
    /// Bits a second that it can send.
    capacity_bps: u64,
    /// Bits a second that it sends.
    load_bps: u64,
    /// Its sessions.
    sessions: u64,
    /// Whether it drains.
    draining: bool,
}

/// The nodes that serve an object, and why.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Explained {
    /// The object.
    object: String,
    /// `stored`, `live` or `pushed`.
    kind: &'static str,
    /// Rule that assigns it.
    assignment: String,
    /// Revision of the view.
    revision: u64,
    /// Number of dispensers that were compared.
    dispensers: usize,
    /// Those that were compared, the best one first.
    candidates: Vec<CandidateStatus>,
    /// Nodes that keep its first bytes.
    homes: Vec<String>,
    /// Bits a second of one stream of it; null for live streams, and where it can't be opened.
    rate_bps: Option<u64>,
    /// Room for a stream of it at each of the candidates, and at the storages that it needs: the stream fits a candidate if that and
    /// all storages have room. Only what is limited is booked.
    book: Vec<RoomStatus>,
    /// The same as a sentence.
    text: String,
}

/// A node that was compared.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct CandidateStatus {
    name: String,
    standing: String,
    load_bps: u64,
    bound_bps: u64,
    score: f64,
}

/// Room for a stream at a node or a storage.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct RoomStatus {
    /// `node:NAME`, `storage:PLACE`, or `storage:PLACE/STORE` for a store of a striping group.
    resource: String,
    /// Bits a second that the stream needs of it.
    wanted_bps: u64,
    /// The most bits a second that are booked of it while the stream plays.
    booked_bps: u64,
    /// Bits a second that can be booked of it; null where it is not limited.
    bound_bps: Option<u64>,
    /// Bits a second that are free; null where it is not limited.
    free_bps: Option<u64>,
    /// Whether the stream fits.
    fits: bool,
}

impl RoomStatus {
    fn of(room: &Room) -> Self {
        Self {
            resource: room.resource.to_string(),
            wanted_bps: room.wanted.bps(),
            booked_bps: room.booked.bps(),
            bound_bps: room.bound.map(|bound| bound.bps()),
            free_bps: room.free().map(|free| free.bps()),
            fits: room.fits(),
        }
    }
}

impl Cluster {
    /// The state of this node, and the nodes of the last view.
    pub(crate) fn status(&self) -> ClusterStatus {
        let view = self.view();
        let membership = match self.state.membership().borrow().clone() {
            Membership::Joining => "joining".to_owned(),
            Membership::Member => "member".to_owned(),
            Membership::Lost => "lost".to_owned(),
            Membership::Taken { by } => format!("name taken by {by}"),
        };
        let etcd = match self.state.link() {
            Link::New => EtcdStatus { state: "new", ..EtcdStatus::default() },
            Link::Following => EtcdStatus { state: "following", ..EtcdStatus::default() },
            Link::Away { since, error } => {
                EtcdStatus { state: "away", seconds: Some(since.elapsed().as_secs()), error: Some(error.to_string()) }
            }
        };
        ClusterStatus {
            node: Some(self.name().to_string()),
            incarnation: format!("{:x}", self.incarnation),
            membership,
            draining: self.is_draining(),
            etcd,
            revision: view.revision(),
            assignment: self.settings.assignment.to_string(),
            nodes: view.nodes().iter().map(|node| self.shown(node)).collect(),
            booked: self.all_booked().into_iter().map(|(name, rate)| (name.to_string(), rate.bps())).collect(),
            problems: view.problems().iter().map(ToString::to_string).collect(),
            problem_count: view.problem_count(),
        }
    }

    fn shown(&self, node: &Node) -> NodeStatus {
        NodeStatus {
            name: node.name.to_string(),
            is_self: node.name == *self.name(),
            http: node.addresses.http.as_deref().map(str::to_owned),
            rtsp: node.addresses.rtsp.as_deref().map(str::to_owned),
            roles: node.roles.iter().map(|role| role.to_string()).collect(),
            capacity_bps: node.capacity.bps(),
            load_bps: node.load.rate.bps(),
            sessions: u64::from(node.load.sessions),
            draining: node.draining,
        }
    }

    /// Explains which nodes serve an object, which are the homes of its first bytes, and whether a stream fits; `demand` is that of one
    /// stream, where it is known.
    pub(crate) fn explain(&self, key: &ObjectKey, start: Start, demand: Option<&Demand>) -> Explained {
        let assumed = assumed();
        let (answer, book) = {
            let mut loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
            // One look at the books, so that nodes with room are those that the stream fits.
            let rooms = self.rooms(demand.unwrap_or(&assumed));
            let answer = self.answer_in(&mut loads, (key, start), &rooms, false);
            let book = rooms.all(answer.candidates.iter().map(|candidate| &candidate.name));
            (answer, book)
        };
        let view = self.view();
        let homes = homes(&view, key, RangeGroup::of(0), 2);
        let candidate = |candidate: &Candidate| CandidateStatus {
            name: candidate.name.to_string(),
            standing: candidate.standing.to_string(),
            load_bps: candidate.load.bps(),
            bound_bps: candidate.bound.bps(),
            score: candidate.score,
        };
        Explained {
            object: key.to_string(),
            kind: match start {
                Start::Live => "live",
                Start::Pushed => "pushed",
                Start::Stored | Start::Follows => "stored",
            },
            assignment: if start == Start::Live { "sosd".to_owned() } else { self.settings.assignment.to_string() },
            revision: view.revision(),
            dispensers: answer.compared,
            candidates: answer.candidates.iter().map(candidate).collect(),
            homes: homes.iter().map(|node| node.name.to_string()).collect(),
            rate_bps: demand.map(|demand| demand.rate.bps()),
            book: book.iter().map(RoomStatus::of).collect(),
            text: answer.to_string(),
        }
    }
}
