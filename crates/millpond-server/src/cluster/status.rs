//! The cluster as operators see it.

use super::{
    Cluster, Start, changes::NoticedChange, differences::DifferenceStatus, home_states::FailingHome,
    registry::PeerStatus, state::Link, steering::assumed,
};
use millpond_cluster::{Candidate, Demand, Node, ObjectKey, RangeGroup, Room, View, homes, zone_home};
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
    /// `joining`, `member`, `lost`, or why the node can't join.
    membership: String,
    /// Id of the cluster; null where this node states none.
    cluster_id: Option<String>,
    /// Time after which a silent node is removed from the cluster.
    lease_seconds: f64,
    /// Whether this node drains.
    draining: bool,
    /// `etcd`, or `cluster-nodes` where the nodes have a registry of their own.
    registry: String,
    /// The connection to etcd; `following` with `cluster-nodes`.
    etcd: EtcdStatus,
    /// Milliseconds by which the clock of this machine is ahead of those of most nodes.
    clock_ahead_ms: i64,
    /// The nodes of `cluster-nodes`, and whether they answer this one.
    peers: Vec<PeerStatus>,
    /// Whether this node is missing in `cluster-nodes` of all nodes that answer it: they hear of none of its drains and purges.
    unlisted: bool,
    /// Revision of the view.
    revision: u64,
    /// Rule that assigns assets to nodes.
    assignment: String,
    /// The nodes.
    nodes: Vec<NodeStatus>,
    /// Homes of slices that fail: this node reads from the origin instead.
    failing_homes: Vec<FailingHome>,
    /// Settings that are not the same on all nodes. Nodes that differ send each other no viewers of that, and are no homes of it.
    differences: Vec<DifferenceStatus>,
    /// The last changes of other nodes, the newest one first.
    changes: Vec<NoticedChange>,
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
    /// Number of its run, hexadecimal.
    incarnation: String,
    /// Its URL of HTTP.
    http: Option<String>,
    /// Its URL of RTSP.
    rtsp: Option<String>,
    /// Its URL for other nodes; null where it has no such listener.
    node_url: Option<String>,
    /// Its zone; null where it is in none.
    zone: Option<String>,
    /// Its roles.
    roles: Vec<String>,
    /// Its weight: bits a second, to which its share of all assets is in proportion.
    capacity_bps: u64,
    /// Bits a second that can be booked of it; null where that is not limited.
    limit_bps: Option<u64>,
    /// Bits a second that it sends.
    load_bps: u64,
    /// Its sessions.
    sessions: u64,
    /// Whether it drains.
    draining: bool,
    /// Version of its program; null where it is older than these fields.
    version: Option<String>,
    /// Number of the last purge that it has applied; null where its version knows no purges.
    purged: Option<u64>,
    /// Milliseconds by which its clock is ahead of this node's; null where this node has not compared them.
    clock_ahead_ms: Option<i64>,
    /// Whether it answers probes of this node; null where this node has not probed it.
    reachable: Option<bool>,
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
    /// Zone of this node, whose nodes with room come first; null where it is in none.
    zone: Option<String>,
    /// Revision of the view.
    revision: u64,
    /// Number of dispensers that were compared.
    dispensers: usize,
    /// Those that were compared, the best one first.
    candidates: Vec<CandidateStatus>,
    /// Nodes that keep its first bytes.
    homes: Vec<String>,
    /// Node that keeps them for this node's zone; null where that has no storage node.
    zone_home: Option<String>,
    /// Bits a second of one stream of it; null for live streams, where it can't be opened, and where nothing is booked.
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
    /// Its name.
    name: String,
    /// Its zone; null where it is in none.
    zone: Option<String>,
    /// `has room`, `above its bound` or `full`: nodes with room come first, and full ones last.
    standing: String,
    /// Bits a second that it was counted with.
    load_bps: u64,
    /// Bits a second up to which it gets streams.
    bound_bps: u64,
    /// Its score for the object, by hash and capacity: the largest comes first among nodes of one standing, those of this node's zone
    /// apart. 0 with `rr`.
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
        let membership = self.state.membership().borrow().to_string();
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
            cluster_id: self.settings.id.clone(),
            lease_seconds: self.settings.lease.as_secs_f64(),
            draining: self.is_draining(),
            registry: if self.registry.has_one_order() { "etcd" } else { "cluster-nodes" }.to_owned(),
            etcd,
            clock_ahead_ms: self.own_clock_ahead(),
            peers: self.peers(),
            unlisted: self.is_unlisted(),
            revision: view.revision(),
            assignment: self.settings.assignment.to_string(),
            nodes: view.nodes().iter().map(|node| self.shown(&view, node)).collect(),
            failing_homes: self.homes.failing(),
            differences: view.differences().iter().map(DifferenceStatus::of).collect(),
            changes: self.last_changes.all(),
            booked: self.all_booked().into_iter().map(|(name, rate)| (name.to_string(), rate.bps())).collect(),
            problems: view.problems().iter().map(ToString::to_string).collect(),
            problem_count: view.problem_count(),
        }
    }

    fn shown(&self, view: &View, node: &Node) -> NodeStatus {
        NodeStatus {
            name: node.name.to_string(),
            is_self: node.name == *self.name(),
            incarnation: view.incarnation(node.name.as_str()).map(|run| format!("{run:x}")).unwrap_or_default(),
            http: node.addresses.http.as_deref().map(str::to_owned),
            rtsp: node.addresses.rtsp.as_deref().map(str::to_owned),
            node_url: node.addresses.nodes.as_deref().map(str::to_owned),
            zone: node.zone.as_deref().map(str::to_owned),
            roles: node.roles.iter().map(|role| role.to_string()).collect(),
            capacity_bps: node.capacity.bps(),
            limit_bps: node.bookable(self.settings.mbps.is_some()).map(|limit| limit.bps()),
            load_bps: node.load.rate.bps(),
            sessions: u64::from(node.load.sessions),
            draining: node.draining,
            version: node.version.as_deref().map(str::to_owned),
            purged: node.purged,
            clock_ahead_ms: self.clock_ahead(node),
            reachable: self.is_reachable(node),
        }
    }

    /// Explains which nodes serve an object, which are the homes of its first bytes, and whether a stream fits; `demand` is that of one
    /// stream, where it is known.
    pub(crate) fn explain(&self, key: &ObjectKey, start: Start, demand: Option<&Demand>) -> Explained {
        let assumed = assumed();
        let (answer, book) = {
            let mut loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
            loads.advance(self.now());
            // One look at the books, so that nodes with room are those that the stream fits.
            let rooms = self.rooms(demand.unwrap_or(&assumed));
            let answer = self.answer_in(&mut loads, (key, start), &rooms, false);
            let book = rooms.all(answer.candidates.iter().map(|candidate| &candidate.name));
            (answer, book)
        };
        let view = self.view();
        let homes = homes(&view, key, RangeGroup::of(0), 2);
        let zone_home = self.own.zone.as_deref().and_then(|zone| zone_home(&view, key, RangeGroup::of(0), zone));
        let candidate = |candidate: &Candidate| CandidateStatus {
            name: candidate.name.to_string(),
            zone: view.node(candidate.name.as_str()).and_then(|node| node.zone.as_deref()).map(str::to_owned),
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
            zone: self.own.zone.as_deref().map(str::to_owned),
            revision: view.revision(),
            dispensers: answer.compared,
            candidates: answer.candidates.iter().map(candidate).collect(),
            homes: homes.iter().map(|node| node.name.to_string()).collect(),
            zone_home: zone_home.map(|node| node.name.to_string()),
            rate_bps: demand.map(|demand| demand.rate.bps()),
            book: book.iter().map(RoomStatus::of).collect(),
            text: answer.to_string(),
        }
    }
}
