//! Joining the cluster at the start, and leaving it at the end.

use super::{
    Cluster, LoadMeter, PurgedCache,
    registry::Registry,
    state::{Link, Membership},
};
use millpond_connections::tls;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};

/// Time for the registry to answer at the start. Without an answer the server serves alone, and joins when it answers.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time for applying the purges that this node missed.
const CATCH_UP: Duration = Duration::from_secs(60);
/// Interval between looks whether they are applied.
const LOOK: Duration = Duration::from_millis(20);

/// Why a node can't join.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JoinError {
    /// Another node has its name.
    #[error("the node {by} of the cluster has the name {name:?} too: choose another one with --node")]
    Taken {
        /// The name.
        name: String,
        /// Address of the other node.
        by: String,
    },
}

/// The tasks of a node. [`leave`](Self::leave) ends them.
#[derive(Debug)]
pub(crate) struct Tasks {
    stop: watch::Sender<bool>,
    registers: JoinHandle<()>,
}

impl Tasks {
    /// Revokes the node's lease, and ends the tasks.
    pub(crate) async fn leave(self) {
        self.stop.send_replace(true);
        let _ = self.registers.await;
    }
}

impl Cluster {
    /// Starts the tasks that register the node and follow the others. Returns when the node is registered, or the registry has not answered
    /// for a while.
    ///
    /// # Errors
    /// Another node has the name, and keeps its lease alive.
    pub(crate) async fn join(self: &Arc<Self>, meter: LoadMeter, cache: PurgedCache) -> Result<Tasks, JoinError> {
        self.purges.set_cache(cache);
        let (stop, stopped) = watch::channel(false);
        let registers = tokio::spawn(self.clone().register(meter, stopped.clone()));
        tokio::spawn(self.clone().follow(stopped.clone()));
        if let Registry::Static(registry) = &self.registry {
            tokio::spawn(self.clone().follow_peers(registry.clone(), stopped.clone()));
            tokio::spawn(self.clone().watch_listing(stopped.clone()));
        }
        tokio::spawn(self.clone().book_measured(stopped.clone()));
        tokio::spawn(self.clone().watch_nodes(stopped.clone()));
        tokio::spawn(self.clone().notice_pauses(stopped.clone()));
        tokio::spawn(self.clone().tidy_purges(stopped.clone()));
        if let Some(towards) = &self.towards_nodes {
            tokio::spawn(tls::watch_nodes(towards.tls().clone(), stopped.clone()));
        }
        tokio::spawn(self.clone().keep_books(stopped));
        let tasks = Tasks { stop, registers };
        let mut membership = self.state.membership();
        let mut end = Instant::now() + PATIENCE;
        let mut taken = None;
        loop {
            let now = membership.borrow_and_update().clone();
            match now {
                Membership::Member => {
                    self.catch_up().await;
                    self.compare_clocks_first().await;
                    return Ok(tasks);
                }
                // A node of another cluster serves alone.
                Membership::Foreign { .. } => return Ok(tasks),
                Membership::Taken { by } if taken.is_none() => {
                    // The lease of a node that is dead ends meanwhile.
                    end = Instant::now() + self.settings.lease + PATIENCE;
                    taken = Some(by);
                }
                _ => {}
            }
            tokio::select! {
                _ = membership.changed() => {}
                () = sleep_until(end) => break,
            }
        }
        let now = membership.borrow().clone();
        match now {
            Membership::Taken { by } => {
                tasks.leave().await;
                Err(JoinError::Taken { name: self.name().to_string(), by })
            }
            _ => {
                tracing::warn!("{} does not answer: this node serves alone until it does", self.registry.name());
                Ok(tasks)
            }
        }
    }

    /// Waits until the purges that this node missed are applied, while the registry answers.
    async fn catch_up(&self) {
        let end = Instant::now() + CATCH_UP;
        while !self.purges.is_current() && Instant::now() < end {
            if matches!(self.state.link(), Link::Away { since, .. } if since.elapsed() > PATIENCE) {
                break;
            }
            sleep(LOOK).await;
        }
        if !self.purges.is_current() {
            tracing::warn!(
                "the purges of the cluster can't be read: this node serves what it has cached until they can"
            );
        }
    }
}
