//! This node's registration and its connection to etcd.

use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};
use tokio::sync::watch;

/// Whether the keys of the cluster are followed.
#[derive(Clone, Debug)]
pub(super) enum Link {
    /// They have never been read.
    New,
    /// They are followed.
    Following,
    /// The last view is used.
    Away {
        /// Since when.
        since: Instant,
        /// The last error.
        error: String,
    },
}

/// Whether the node is one of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Membership {
    /// It has not registered yet.
    Joining,
    /// It is registered.
    Member,
    /// It has no valid lease.
    Lost,
    /// Another node has its name.
    Taken {
        /// Address of that node.
        by: String,
    },
}

/// This node's registration and its connection to etcd. Changes are logged.
#[derive(Debug)]
pub(super) struct State {
    /// A lock, held for a look or a change.
    link: Mutex<Link>,
    membership: watch::Sender<Membership>,
}

impl Default for State {
    fn default() -> Self {
        Self { link: Mutex::new(Link::New), membership: watch::Sender::new(Membership::Joining) }
    }
}

impl State {
    /// The state of following the keys.
    pub(super) fn link(&self) -> Link {
        self.link.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that the keys are followed.
    pub(super) fn follows(&self, nodes: usize) {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        match &*link {
            Link::Following => {}
            Link::New => tracing::info!(nodes, "the cluster's nodes are known"),
            Link::Away { since, .. } => {
                tracing::info!(nodes, away = ?since.elapsed(), "etcd answers again: the nodes are followed");
            }
        }
        *link = Link::Following;
    }

    /// Notes that etcd does not answer.
    pub(super) fn is_away(&self, error: &dyn std::fmt::Display) {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        let since = match &*link {
            Link::Away { since, .. } => *since,
            Link::New | Link::Following => {
                tracing::warn!(%error, "etcd does not answer: the last view of the cluster is used");
                Instant::now()
            }
        };
        *link = Link::Away { since, error: error.to_string() };
    }

    /// Whether the node is one of the cluster.
    pub(super) fn membership(&self) -> watch::Receiver<Membership> {
        self.membership.subscribe()
    }

    /// Notes whether the node is one of the cluster.
    pub(super) fn set_membership(&self, new: Membership) {
        let changes = self.membership.send_if_modified(|old| {
            let changes = *old != new;
            *old = new.clone();
            changes
        });
        if changes {
            match new {
                Membership::Joining => {}
                Membership::Member => tracing::info!("this node is registered in the cluster"),
                Membership::Lost => tracing::warn!("this node's lease is over: it registers again"),
                Membership::Taken { by } => {
                    tracing::error!(by, "another node has this node's name: this node is not in the cluster");
                }
            }
        }
    }
}
