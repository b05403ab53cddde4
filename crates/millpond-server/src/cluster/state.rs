//! This node's registration and its connection to the registry.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};
use tokio::{sync::watch, time::Instant};

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
    /// Its prefix in the registry belongs to another cluster.
    Foreign {
        /// Id of its own cluster.
        own: String,
        /// Id of the other one.
        id: String,
        /// The prefix.
        prefix: String,
    },
}

impl fmt::Display for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Joining => f.write_str("joining"),
            Self::Member => f.write_str("member"),
            Self::Lost => f.write_str("lost"),
            Self::Taken { by } => write!(f, "name taken by {by}"),
            Self::Foreign { own, id, prefix } => write!(
                f,
                "foreign: the prefix {prefix} belongs to the cluster {id:?}, and this node is one of {own:?}. It joins nothing and serves alone: \
                 set another cluster-prefix, or cluster-id = {id:?}. Where no node of {id:?} is left, delete the key {prefix}cluster-id"
            ),
        }
    }
}

/// This node's registration and its connection to the registry. Changes are logged.
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
    pub(super) fn follows(&self, nodes: usize, registry: &str) {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        match &*link {
            Link::Following => {}
            Link::New => tracing::info!(nodes, "the cluster's nodes are known"),
            Link::Away { since, .. } => {
                tracing::info!(nodes, away = ?since.elapsed(), "{registry} answers again: the nodes are followed");
            }
        }
        *link = Link::Following;
    }

    /// Notes that a registry does not answer.
    pub(super) fn is_away(&self, error: &dyn std::fmt::Display, registry: &str) {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        let since = match &*link {
            Link::Away { since, .. } => *since,
            Link::New | Link::Following => {
                tracing::warn!(%error, "{registry} does not answer: the last view of the cluster is used");
                Instant::now()
            }
        };
        *link = Link::Away { since, error: error.to_string() };
    }

    /// Whether the prefix belongs to another cluster.
    pub(super) fn is_foreign(&self) -> bool {
        matches!(&*self.membership.borrow(), Membership::Foreign { .. })
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
                foreign @ Membership::Foreign { .. } => tracing::error!("{foreign}"),
            }
        }
    }
}
