//! The cluster that this server is a node of.
//!
//! [`Cluster`] has the last view of the nodes, and chooses the node that serves a request. Its tasks keep the node registered in a registry,
//! such as etcd, and follow the other nodes. Nothing that serves viewers waits for the registry: without it, all goes on with the last view. A process that has paused is
//! the exception: it reads the purges of meanwhile, for three seconds at most, before it serves again.

mod addresses;
mod bookings;
mod changes;
mod clocks;
mod cluster_id;
mod copies;
mod differences;
mod entries;
mod holders;
mod home_states;
mod home_waits;
mod homes;
mod join;
mod load_meter;
mod measured;
mod membership;
mod metrics;
mod node_api;
mod node_tls;
mod passage;
mod purges;
mod reach;
mod registration;
mod registry;
mod rooms;
mod secret;
mod settings;
#[cfg(test)]
mod simulation;
mod state;
mod status;
mod steering;
mod takeovers;
mod viewers;
mod watchers;

pub(crate) use addresses::{NodeListeners, addresses, node_host};
pub(crate) use bookings::{Booked, limit_of};
pub(crate) use clocks::CLOCK_HEADER;
pub(crate) use holders::HeldStreams;
pub(crate) use homes::{LaterCluster, PlaceHomes};
pub(crate) use join::{JoinError, Tasks};
pub(crate) use load_meter::{Counted, LoadMeter, PlaceRead};
pub(crate) use metrics::ClusterMetrics;
pub(crate) use node_api::{ApiAnswer, ApiCall, ApiFailure, NODE_API, NODE_HEADER, NodeApi};
pub(crate) use node_tls::{RELAY, open as open_node_tls};
pub(crate) use passage::{MOVED, PassedBytes, PassedRequest};
pub(crate) use purges::{PurgeFailure, PurgeReport, PurgedCache};
pub(crate) use registry::{
    AskedQuestion, GOSSIP, GossipQuestion, PASS_HEADER, PROOF_HEADER, ProvedAnswer, RegistryError,
};
pub use settings::ClusterSettings;
pub(crate) use status::{ClusterStatus, Explained};
pub(crate) use steering::{ListedNodes, MARK, Protocol, Start, marked};

use crate::events::Events;
use bookings::Bookings;
use home_states::HomeStates;
use home_waits::HomeWaits;
use millpond_access::NodeAddresses;
use millpond_cluster::{
    Addresses, Assignment, Bitrate, Clocks, Ledger, Limits, Load, Loads, Node, NodeName, Prints, View, Witness,
};
use millpond_etcd::{EtcdClient, Operation, Transaction};
use millpond_utc::WallClock;
use node_api::NodeCalls;
use node_tls::TowardsNodes;
use purges::Purges;
use reach::Reach;
use registry::{Registry, StaticRegistry};
use secret::ClusterSecret;
use state::{Membership, State};
use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{sync::watch, time::Instant};

/// Weight of a node that states neither a weight nor its bandwidth.
const ASSUMED_MBPS: u64 = 1000;

/// Wall clocks of a node, which the cluster corrects.
#[derive(Clone, Debug)]
pub(crate) struct WallClocks {
    /// The clock of the machine.
    pub(crate) system: WallClock,
    /// The clock of bookings, which goes on evenly.
    pub(crate) bookings: WallClock,
    /// The clock that numbers runs of live streams.
    pub(crate) runs: WallClock,
}

impl Default for WallClocks {
    fn default() -> Self {
        Self { system: WallClock::system(), bookings: WallClock::steady(), runs: WallClock::system() }
    }
}

/// The cluster, as its node sees it.
#[derive(Debug)]
pub(crate) struct Cluster {
    settings: ClusterSettings,
    /// The node without its load and its prints.
    own: Node,
    /// Prints of the settings in force; `None` before there are some.
    prints: watch::Sender<Option<Arc<Prints>>>,
    /// Tells this run of the node from others of the same name.
    incarnation: u64,
    registry: Registry,
    views: watch::Sender<Arc<View>>,
    /// Loads of the view's dispensers. A lock, held for one assignment, and while the view is replaced.
    loads: Mutex<Loads>,
    rule: Box<dyn Assignment>,
    reach: Reach,
    events: Arc<Events>,
    /// Finds changes of the nodes. A lock, held while a new view is read.
    witness: Mutex<Witness>,
    last_changes: changes::LastChanges,
    /// Addresses of the nodes of the view.
    addresses: Arc<NodeAddresses>,
    homes: HomeStates,
    /// Ranges that this node awaits from homes.
    home_waits: HomeWaits,
    /// The client by which requests are passed on to other nodes.
    nodes: millpond_outbound::Client,
    /// TLS towards other nodes; `None` where the system's authorities are trusted.
    towards_nodes: Option<TowardsNodes>,
    bookings: Bookings,
    /// The secret of the nodes, where they have one.
    secret: Option<ClusterSecret>,
    /// Nodes that streams are pushed to.
    pushed: watch::Sender<Arc<holders::Holders>>,
    /// Nodes that ask the sources of live streams.
    asked: watch::Sender<Arc<holders::Holders>>,
    /// Live streams whose source this node asks itself.
    asks: watch::Sender<HashSet<String>>,
    /// Live streams that nodes have taken over from others.
    took: watch::Sender<Arc<takeovers::Takeovers>>,
    /// Those that this node has taken over, by the texts of their keys, and when. A lock, held for a look or a change.
    taken: Mutex<takeovers::Times>,
    purges: Purges,
    calls: NodeCalls,
    state: State,
    metrics: ClusterMetrics,
    /// Streams that were assigned, for round robin.
    turns: AtomicU64,
    /// Whether this server leaves. Turns true once.
    leaves: watch::Sender<bool>,
    /// Whether an operator asked this node to drain.
    is_asked: AtomicBool,
    /// Whether this server accepts connections.
    is_serving: AtomicBool,
    /// Differences of the nodes' clocks. A lock, held for a look or a change.
    clocks: Mutex<Clocks>,
    /// Whether this node's clock was wrong when they were compared last.
    has_wrong_clock: AtomicBool,
    wall: WallClocks,
    /// Milliseconds after the start of the server since which nodes have shared its time of bookings; less than 0 where that was before.
    shared_since: AtomicI64,
    clock: Instant,
}

impl Cluster {
    /// Creates the cluster of a node; nothing is asked of etcd yet. `addresses` are the node's, and it corrects
    /// `clocks` by those of other nodes.
    ///
    /// # Errors
    /// A file or certificate of the settings can't be used.
    pub(crate) fn new(
        settings: &ClusterSettings,
        addresses: Addresses,
        metrics: ClusterMetrics,
        events: Arc<Events>,
        clocks: WallClocks,
    ) -> Result<Arc<Self>, String> {
        let incarnation = fastrand::u64(1..);
        let registry = match settings.nodes.is_empty() {
            true => Registry::Etcd(EtcdClient::new(settings.client_options()?)?),
            false => Registry::Static(StaticRegistry::new(settings.name()?, incarnation, &settings.prefix, true)),
        };
        Self::of_registry((registry, incarnation), (settings, addresses), (metrics, events), clocks)
    }

    /// The same, with a registry and the number of this run.
    fn of_registry(
        (registry, incarnation): (Registry, u64),
        (settings, addresses): (&ClusterSettings, Addresses),
        (metrics, events): (ClusterMetrics, Arc<Events>),
        clocks: WallClocks,
    ) -> Result<Arc<Self>, String> {
        let name = settings.name()?;
        let weight = settings.weight.or(settings.mbps).unwrap_or(ASSUMED_MBPS);
        let (capacity, roles) = (Bitrate::from_mbps(weight), settings.roles);
        // Only what the operator states is a limit.
        let [node, storage, store] =
            [settings.mbps, settings.storage_mbps, settings.store_mbps].map(|mbps| mbps.map(Bitrate::from_mbps));
        let bookings =
            Bookings::new(Ledger::new(name.clone(), Limits { node, storage, store }), clocks.bookings.clone());
        let witness = Mutex::new(Witness::new(name.clone()));
        let version = Some(env!("CARGO_PKG_VERSION").into());
        let source = addresses::source(settings);
        let cluster = settings.id.as_deref().map(Into::into);
        let zone = settings.zone.as_deref().map(Into::into);
        let own = Node { addresses, roles, limit: node, version, source, cluster, zone, ..Node::new(name, capacity) };
        let towards_nodes = TowardsNodes::open(settings)?;
        let nodes = passage::client(towards_nodes.as_ref())?;
        let (view, clock) = (Arc::new(View::default()), Instant::now());
        Ok(Arc::new(Self {
            settings: settings.clone(),
            own,
            prints: watch::Sender::default(),
            incarnation,
            registry,
            loads: Mutex::new(Loads::new(view.clone())),
            views: watch::Sender::new(view),
            rule: settings.assignment.rule(),
            reach: Reach::new(nodes.clone(), clock),
            events,
            witness,
            last_changes: changes::LastChanges::default(),
            addresses: Arc::default(),
            homes: HomeStates::default(),
            home_waits: HomeWaits::default(),
            nodes,
            towards_nodes,
            bookings,
            secret: settings.secret.as_deref().map(ClusterSecret::open).transpose()?,
            pushed: watch::Sender::default(),
            asked: watch::Sender::default(),
            asks: watch::Sender::default(),
            took: watch::Sender::default(),
            taken: Mutex::default(),
            purges: Purges::default(),
            calls: NodeCalls::default(),
            state: State::default(),
            metrics,
            turns: AtomicU64::new(0),
            leaves: watch::Sender::new(false),
            is_asked: AtomicBool::new(false),
            is_serving: AtomicBool::new(false),
            clocks: Mutex::default(),
            has_wrong_clock: AtomicBool::new(false),
            wall: clocks,
            shared_since: AtomicI64::new(clocks::NEVER),
            clock,
        }))
    }

    /// The node's name.
    pub(crate) fn name(&self) -> &NodeName {
        &self.own.name
    }

    /// A pass for requests to other nodes, where they have a secret.
    pub(crate) fn pass(&self) -> Option<Arc<str>> {
        self.secret.as_ref()?.pass()
    }

    /// Whether a token is the pass of another node.
    pub(crate) fn admits_node(&self, token: &str) -> bool {
        self.secret.as_ref().is_some_and(|secret| secret.admits(token))
    }

    /// Whether nodes prove that they are nodes: by passes, or by certificates at listeners of their own.
    pub(crate) fn nodes_have_proof(&self) -> bool {
        self.secret.is_some() || self.has_node_listener()
    }

    /// The addresses of the nodes, which limits of clients do not count.
    pub(crate) fn addresses(&self) -> &Arc<NodeAddresses> {
        &self.addresses
    }

    /// Whether this node asks others at their listeners for nodes.
    pub(crate) fn has_node_listener(&self) -> bool {
        self.settings.node_listen.is_some()
    }

    /// The last view.
    pub(crate) fn view(&self) -> Arc<View> {
        self.views.borrow().clone()
    }

    /// Time since the start.
    fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Notes that the server accepts connections: from now on the node takes work.
    pub(crate) fn serves(&self) {
        self.shares_its_time();
        self.is_serving.store(true, Ordering::Relaxed);
        // The task that registers the node wakes.
        self.leaves.send_modify(|_| {});
    }

    /// Whether the node takes no new work.
    pub(crate) fn is_draining(&self) -> bool {
        *self.leaves.borrow() || self.is_asked.load(Ordering::Relaxed) || !self.is_serving.load(Ordering::Relaxed)
    }

    /// The reason for which balancers should send new viewers to other nodes, while the server itself could serve; `None` where there is
    /// none.
    pub(crate) fn is_out_of_service(&self) -> Option<&'static str> {
        match &*self.state.membership().borrow() {
            Membership::Taken { .. } => Some("another node of the cluster has this node's name"),
            _ if self.is_asked.load(Ordering::Relaxed) => Some("an operator drains this node"),
            _ if *self.leaves.borrow() => Some("this node leaves the cluster"),
            _ => None,
        }
    }

    /// The node as it is published.
    fn published(&self, load: Load) -> Node {
        let purged = Some(self.purges.applied());
        Node { draining: self.is_draining(), purged, load, ..self.own_node() }
    }

    /// Replaces the view.
    fn set_view(&self, view: View) {
        let mut loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        self.put_view(&mut loads, view);
    }

    /// The same, where the loads are locked: of a new view and new settings of this node, both count.
    fn put_view(&self, loads: &mut Loads, view: View) {
        let view = Arc::new(view.seen_by(&self.own_node()));
        let booked = self.booked_of_nodes(&view);
        loads.update(view.clone(), self.now());
        booked.iter().for_each(|(name, rate)| loads.at_least(name, *rate));
        self.metrics.view(&view);
        self.addresses.set(view.nodes().iter().flat_map(addresses::sources));
        self.views.send_replace(view);
    }

    /// Asks a node to drain, or to take work again.
    ///
    /// # Errors
    /// The registry does not answer, or refuses.
    pub(crate) async fn drain(&self, node: &NodeName, drains: bool) -> Result<(), RegistryError> {
        let key = entries::drain_key(&self.settings.prefix, node);
        let change = match drains {
            true => Operation::Put { key, value: b"{}".to_vec(), lease: None },
            false => Operation::Delete(key),
        };
        self.registry.commit(&Transaction { conditions: Vec::new(), changes: vec![change] }).await.map(drop)
    }

    /// Stops taking work, and waits until the other nodes can know it, at most a second.
    pub(crate) async fn retire(&self) {
        /// Time for the other nodes to hear of it.
        const HEARD: Duration = Duration::from_millis(200);
        self.leaves.send_replace(true);
        let mut views = self.views.subscribe();
        let is_known = |view: &Arc<View>| view.node(self.name().as_str()).is_none_or(|node| node.draining);
        let known = views.wait_for(is_known);
        if tokio::time::timeout(Duration::from_secs(1), known).await.is_ok() {
            tokio::time::sleep(HEARD).await;
        }
    }
}
