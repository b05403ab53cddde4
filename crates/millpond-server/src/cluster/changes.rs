//! Changes of the nodes: in the log, as metrics, as events, and for the console.

use super::Cluster;
use crate::events::Kind;
use millpond_cluster::{Change, ChangeKind, NodeName, View};
use serde::Serialize;
use serde_json::json;
use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};
use utoipa::ToSchema;

/// Most lines of the log for one view. At a start of etcd, all nodes of a large cluster may change at once.
const LINES: usize = 32;
/// Most changes that are kept for the console.
const MOST: usize = 64;

/// A change of another node, as this one noticed it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct NoticedChange {
    /// Time of the notice, in seconds since 1970.
    time: f64,
    /// Name of the node.
    node: String,
    /// `joined`, `left`, `lost`, `restarted`, `draining`, `resumed`, `unreachable` or `reachable`.
    change: &'static str,
}

/// The last changes of other nodes.
#[derive(Debug, Default)]
pub(super) struct LastChanges(Mutex<VecDeque<NoticedChange>>);

impl LastChanges {
    fn add(&self, node: &NodeName, change: &'static str) {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_front(NoticedChange { time, node: node.to_string(), change });
        all.truncate(MOST);
    }

    /// The changes, the newest one first.
    pub(super) fn all(&self) -> Vec<NoticedChange> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl Cluster {
    /// Counts and keeps a change of another node.
    pub(super) fn notice(&self, node: &NodeName, change: &'static str) {
        self.metrics.changed(change);
        self.last_changes.add(node, change);
    }

    /// Tells of the changes from a view to the next one. Each node logs and counts them; one node emits the event of each.
    pub(super) fn tell_changes(&self, changes: &[Change], old: &View, new: &View) {
        let noticed = || changes.iter().filter(|change| !change.is_known);
        for change in noticed() {
            self.notice(&change.node, change.kind.as_str());
        }
        for Change { node, kind, .. } in noticed().take(LINES) {
            match kind {
                ChangeKind::Joined => tracing::info!(%node, "a node has joined the cluster"),
                ChangeKind::Left => tracing::info!(%node, "a node has left the cluster"),
                ChangeKind::Lost => tracing::warn!(%node, "a node is lost: its lease ended without a drain"),
                ChangeKind::Restarted => tracing::info!(%node, "a node has started again"),
                ChangeKind::Draining => tracing::info!(%node, "a node drains"),
                ChangeKind::Resumed => tracing::info!(%node, "a node takes work again"),
            }
        }
        let more = noticed().count().saturating_sub(LINES);
        if more > 0 {
            tracing::info!(more, "more nodes have changed");
        }
        for change in changes.iter().filter(|change| change.tells) {
            let name = change.node.as_str();
            let node = new.node(name).or_else(|| old.node(name));
            let address = node.and_then(|node| node.addresses.http.as_deref());
            let version = node.and_then(|node| node.version.as_deref());
            self.events.emit(event(change.kind), name, json!({ "address": address, "version": version }));
        }
    }
}

fn event(kind: ChangeKind) -> Kind {
    match kind {
        ChangeKind::Joined => Kind::NodeJoined,
        ChangeKind::Left => Kind::NodeLeft,
        ChangeKind::Lost => Kind::NodeLost,
        ChangeKind::Restarted => Kind::NodeRestarted,
        ChangeKind::Draining => Kind::NodeDraining,
        ChangeKind::Resumed => Kind::NodeResumed,
    }
}
