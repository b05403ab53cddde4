//! The cluster that this server is a node of.
//!
//! [`Cluster`] has the last view of the nodes, and chooses the node that serves a request. Its tasks keep the node registered in etcd and
//! follow the other nodes. Nothing that serves viewers waits for etcd: without it, all goes on with the last view.

mod addresses;
mod bookings;
mod entries;
mod homes;
mod join;
mod load_meter;
mod measured;
mod membership;
mod metrics;
mod passage;
mod pushed;
mod reach;
mod registration;
mod rooms;
mod secret;
mod settings;
mod state;
mod status;
mod steering;
mod viewers;

pub(crate) use addresses::addresses;
pub(crate) use bookings::{Booked, limit_of};
pub(crate) use homes::{LaterCluster, PlaceHomes};
pub(crate) use join::{JoinError, Tasks};
pub(crate) use load_meter::{Counted, LoadMeter, PlaceRead};
pub(crate) use metrics::ClusterMetrics;
pub(crate) use passage::{PassedBytes, PassedRequest};
pub use settings::ClusterSettings;
pub(crate) use status::{ClusterStatus, Explained};
pub(crate) use steering::{MARK, Protocol, Start, marked};

use bookings::Bookings;
use millpond_cluster::{Addresses, Assignment, Bitrate, Ledger, Limits, Load, Loads, Node, NodeName, View};
use millpond_etcd::{EtcdClient, EtcdError, Operation, Transaction};
use reach::Reach;
use secret::ClusterSecret;
use state::State;
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// Bandwidth of a node that does not state it, for its share of the assets.
const ASSUMED_MBPS: u64 = 1000;

/// The cluster, as its node sees it.
#[derive(Debug)]
pub(crate) struct Cluster {
    settings: ClusterSettings,
    /// The node without its load.
    own: Node,
    /// Tells this run of the node from others of the same name.
    incarnation: u64,
    client: EtcdClient,
    views: watch::Sender<Arc<View>>,
    /// Loads of the view's dispensers. A lock, held for one assignment.
    loads: Mutex<Loads>,
    rule: Box<dyn Assignment>,
    reach: Reach,
    /// The client by which requests are passed on to other nodes.
    nodes: millpond_outbound::Client,
    bookings: Bookings,
    /// The secret of the nodes, where they have one.
    secret: Option<ClusterSecret>,
    pushed: watch::Sender<Arc<pushed::Pushed>>,
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
    clock: Instant,
}

impl Cluster {
    /// Creates the cluster of a node; nothing is asked of etcd yet. `addresses` are the node's.
    ///
    /// # Errors
    /// A file or certificate of the settings can't be used.
    pub(crate) fn new(
        settings: &ClusterSettings,
        addresses: Addresses,
        metrics: ClusterMetrics,
    ) -> Result<Arc<Self>, String> {
        let name = settings.name()?;
        let client = EtcdClient::new(settings.client_options()?)?;
        let (capacity, roles) = (Bitrate::from_mbps(settings.mbps.unwrap_or(ASSUMED_MBPS)), settings.roles);
        // Only what the operator states is a limit.
        let [node, storage, store] =
            [settings.mbps, settings.storage_mbps, settings.store_mbps].map(|mbps| mbps.map(Bitrate::from_mbps));
        let bookings = Bookings::new(Ledger::new(name.clone(), Limits { node, storage, store }));
        let own = Node { addresses, roles, ..Node::new(name, capacity) };
        let view = Arc::new(View::default());
        Ok(Arc::new(Self {
            settings: settings.clone(),
            own,
            incarnation: fastrand::u64(1..),
            client,
            loads: Mutex::new(Loads::new(view.clone())),
            views: watch::Sender::new(view),
            rule: settings.assignment.rule(),
            reach: Reach::default(),
            nodes: passage::client()?,
            bookings,
            secret: settings.secret.as_deref().map(ClusterSecret::open).transpose()?,
            pushed: watch::Sender::default(),
            state: State::default(),
            metrics,
            turns: AtomicU64::new(0),
            leaves: watch::Sender::new(false),
            is_asked: AtomicBool::new(false),
            is_serving: AtomicBool::new(false),
            clock: Instant::now(),
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
        self.is_serving.store(true, Ordering::Relaxed);
        // The task that registers the node wakes.
        self.leaves.send_modify(|_| {});
    }

    /// Whether the node takes no new work.
    pub(crate) fn is_draining(&self) -> bool {
        *self.leaves.borrow() || self.is_asked.load(Ordering::Relaxed) || !self.is_serving.load(Ordering::Relaxed)
    }

    /// The node as it is published.
    fn published(&self, load: Load) -> Node {
        Node { draining: self.is_draining(), load, ..self.own.clone() }
    }

    /// Replaces the view.
    fn set_view(&self, view: View) {
        let view = Arc::new(view);
        let booked = self.booked_of_nodes(&view);
        {
            let mut loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
            loads.update(view.clone(), self.now());
            booked.iter().for_each(|(name, rate)| loads.at_least(name, *rate));
        }
        self.metrics.view(&view);
        self.views.send_replace(view);
    }

    /// Asks a node to drain, or to take work again.
    ///
    /// # Errors
    /// etcd does not answer, or refuses.
    pub(crate) async fn drain(&self, node: &NodeName, drains: bool) -> Result<(), EtcdError> {
        let key = entries::drain_key(&self.settings.prefix, node);
        let change = match drains {
            true => Operation::Put { key, value: b"{}".to_vec(), lease: None },
            false => Operation::Delete(key),
        };
        self.client.commit(&Transaction { conditions: Vec::new(), changes: vec![change] }).await.map(drop)
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
