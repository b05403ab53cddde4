//! State that all connections share: front end, timeouts, budget and the count of connections.

use super::budget::ReplyBudget;
use crate::{
    http::answer::Front,
    limits::{ConnectionTimeouts, LimitSettings},
    slots::Slots,
};
use arc_swap::ArcSwap;
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;

/// Time for cut connections to end.
const CUT_GRACE: Duration = Duration::from_secs(1);

/// State that all connections share.
pub(crate) struct Service {
    /// Front end of the configuration in force.
    front: ArcSwap<Front>,
    /// Timeouts of connections.
    timeouts: ArcSwap<ConnectionTimeouts>,
    /// Memory for replies in progress.
    pub(super) budget: Arc<ReplyBudget>,
    /// One slot per possible connection.
    pub(super) connections: Arc<Slots>,
    /// Becomes true when connections end at once.
    pub(super) cut: watch::Sender<bool>,
}

impl Service {
    /// Creates the state for connections within `limits`.
    pub(crate) fn new(front: Arc<Front>, limits: &LimitSettings) -> Self {
        let budget = ReplyBudget::new(front.store().memory());
        let connections = Slots::of_connections(limits.max_connections);
        let timeouts = ArcSwap::from_pointee(limits.timeouts);
        Self { front: ArcSwap::new(front), timeouts, budget, connections, cut: watch::Sender::new(false) }
    }

    /// Returns the front end that answers the next request.
    pub(crate) fn front(&self) -> Arc<Front> {
        self.front.load_full()
    }

    /// Returns the timeouts of a connection from now on.
    pub(crate) fn timeouts(&self) -> ConnectionTimeouts {
        **self.timeouts.load()
    }

    /// Changes front end, timeouts and the limit of connections. Requests in progress end with the front end that they began
    /// with.
    pub(crate) fn reconfigure(&self, front: Arc<Front>, limits: &LimitSettings) {
        self.connections.set_most(limits.max_connections);
        self.timeouts.store(Arc::new(limits.timeouts));
        self.front.store(front);
    }

    /// Returns the limit of connections.
    #[cfg(test)]
    pub(crate) fn most_connections(&self) -> usize {
        self.connections.most()
    }

    /// Waits until every connection has ended.
    pub(crate) async fn drained(&self) {
        self.connections.empty().await;
    }

    /// Ends every connection at once, and waits until each has logged its last response.
    pub(crate) async fn cut(&self) {
        self.front().cut();
        let _ = self.cut.send(true);
        let _ = tokio::time::timeout(CUT_GRACE, self.drained()).await;
    }

    /// Returns the number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.connections.taken()
    }
}
