//! State that all connections share: front end, timeouts, budget and the count of connections.

use super::budget::ReplyBudget;
use crate::{http::answer::Front, limits::ConnectionTimeouts};
use std::{sync::Arc, time::Duration};
use tokio::sync::{Semaphore, watch};

/// Time for cut connections to end.
const CUT_GRACE: Duration = Duration::from_secs(1);

/// State that all connections share.
pub(crate) struct Service {
    /// Front end that answers requests.
    pub(crate) front: Arc<Front>,
    /// Timeouts of each connection.
    pub(crate) timeouts: ConnectionTimeouts,
    /// Memory for replies in progress.
    pub(super) budget: Arc<ReplyBudget>,
    /// One permit per possible connection.
    pub(super) connections: Arc<Semaphore>,
    connections_most: usize,
    /// Becomes true when connections end at once.
    pub(super) cut: watch::Sender<bool>,
}

impl Service {
    /// Creates the state for at most `connections_most` connections.
    pub(crate) fn new(front: Arc<Front>, timeouts: ConnectionTimeouts, connections_most: usize) -> Self {
        let budget = ReplyBudget::new(front.store().memory());
        let connections = Arc::new(Semaphore::new(connections_most));
        Self { front, timeouts, budget, connections, connections_most, cut: watch::Sender::new(false) }
    }

    /// Waits until every connection has ended.
    pub(crate) async fn drained(&self) {
        let all = u32::try_from(self.connections_most).unwrap_or(u32::MAX);
        let _ = self.connections.acquire_many(all).await;
    }

    /// Ends every connection at once, and waits until each has logged its last response.
    pub(crate) async fn cut(&self) {
        self.front.cut();
        let _ = self.cut.send(true);
        let _ = tokio::time::timeout(CUT_GRACE, self.drained()).await;
    }

    /// Returns the number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.connections_most - self.connections.available_permits()
    }
}
