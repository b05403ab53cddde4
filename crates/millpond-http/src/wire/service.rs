//! State that all connections share: front end, timeouts, budget and the count of connections.

use super::{budget::ReplyBudget, front_end::FrontEnd};
use arc_swap::ArcSwap;
use millpond_connections::{ConnectionTimeouts, Slots};
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;

/// Time for cut connections to end.
const CUT_GRACE: Duration = Duration::from_secs(1);

/// Most connections of other nodes. Strangers at their listener take no connection of viewers.
const MOST_OF_NODES: usize = 1024;

/// State that all connections share.
pub struct Service<F: FrontEnd> {
    /// Front end of the configuration in force.
    front: ArcSwap<F>,
    /// Timeouts of connections.
    timeouts: ArcSwap<ConnectionTimeouts>,
    /// Memory for replies in progress.
    pub(super) budget: Arc<ReplyBudget>,
    /// One slot per possible connection.
    pub(super) connections: Arc<Slots>,
    /// One slot per possible connection of another node.
    pub(super) node_connections: Arc<Slots>,
    /// Becomes true when connections end at once.
    pub(super) cut: watch::Sender<bool>,
}

impl<F: FrontEnd> Service<F> {
    /// Creates the state for `most_connections` connections.
    pub fn new(front: Arc<F>, most_connections: usize, timeouts: ConnectionTimeouts) -> Self {
        let budget = ReplyBudget::new(front.memory());
        let connections = Slots::of_connections(most_connections);
        let node_connections = Slots::of_connections(MOST_OF_NODES);
        let (front, timeouts) = (ArcSwap::new(front), ArcSwap::from_pointee(timeouts));
        Self { front, timeouts, budget, connections, node_connections, cut: watch::Sender::new(false) }
    }

    /// Returns the front end that answers the next request.
    pub fn front(&self) -> Arc<F> {
        self.front.load_full()
    }

    /// Returns the timeouts of a connection from now on.
    pub fn timeouts(&self) -> ConnectionTimeouts {
        **self.timeouts.load()
    }

    /// Changes front end, timeouts and the limit of connections. Requests in progress end with the front end that they began
    /// with.
    pub fn reconfigure(&self, front: Arc<F>, most_connections: usize, timeouts: ConnectionTimeouts) {
        self.connections.set_most(most_connections);
        self.timeouts.store(Arc::new(timeouts));
        self.front.store(front);
    }

    /// Returns the limit of connections.
    pub fn most_connections(&self) -> usize {
        self.connections.most()
    }

    /// Waits until every connection has ended.
    pub async fn drained(&self) {
        self.connections.empty().await;
        self.node_connections.empty().await;
    }

    /// Ends every connection at once, and waits until each has logged its last response.
    pub async fn cut(&self) {
        self.front().cut();
        let _ = self.cut.send(true);
        let _ = tokio::time::timeout(CUT_GRACE, self.drained()).await;
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> usize {
        self.connections.taken() + self.node_connections.taken()
    }
}
