//! Watching other nodes: each node is probed once a second by three others, whether viewers ask for it or not.

use super::Cluster;
use crate::events::Kind;
use futures_util::future::join_all;
use millpond_cluster::{Node, NodeName, View};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::watch, time::sleep};

/// Number of nodes that watch a node. One of them may be cut off from it.
const WATCHERS: usize = 3;
/// Interval between probes.
const INTERVAL: Duration = Duration::from_secs(1);

/// A node that does not answer.
#[derive(Debug)]
struct Missed {
    address: Arc<str>,
    /// Whether this node has emitted the event.
    is_told: bool,
}

impl Cluster {
    /// Probes the nodes that this one watches, and addresses that did not answer, until `stop` turns true.
    pub(super) async fn watch_nodes(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let (mut missed, mut told) = (BTreeMap::new(), BTreeMap::new());
        loop {
            tokio::select! {
                () = sleep(INTERVAL) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            let view = self.view();
            let watched = view.watched(self.name().as_str(), WATCHERS).into_iter();
            let watched = watched.filter_map(|name| view.node(name.as_str()));
            // A node that drains may end, and one that begins does not listen yet.
            let watched: Vec<&Node> = watched.filter(|node| !node.draining).collect();
            let addresses: BTreeSet<&str> = view.nodes().iter().flat_map(addresses).map(|base| &**base).collect();
            self.reach.keep(|base| addresses.contains(base));
            self.homes.keep(|home| addresses.contains(home), &self.metrics);
            let mut probed: BTreeSet<Arc<str>> =
                watched.iter().filter_map(|node| probed_address(node).cloned()).collect();
            if self.settings.node_listen.is_some() {
                probed.extend(watched.iter().filter_map(|node| node.addresses.nodes.clone()));
            }
            probed.extend(self.reach.unusable());
            join_all(probed.iter().map(|base| self.reach.again(base))).await;
            self.compare(&view, &watched, &mut missed);
            self.compare_clocks(&view);
            self.tell_certificates(&view, &mut told);
        }
    }

    /// Tells which of the watched nodes have stopped to answer, and which answer again.
    fn compare(&self, view: &View, watched: &[&Node], missed: &mut BTreeMap<NodeName, Missed>) {
        // Nodes that have left are told as such.
        missed.retain(|name, _| watched.iter().any(|node| node.name == *name));
        for node in watched {
            let Some(address) = probed_address(node) else { continue };
            let is_teller = view.watchers(node.name.as_str(), 1).first() == Some(&self.name());
            match (self.reach.is_down(address), missed.contains_key(&node.name)) {
                (Some(true), false) => {
                    tracing::warn!(node = %node.name, %address, "a node does not answer");
                    self.notice(&node.name, "unreachable");
                    missed.insert(node.name.clone(), Missed { address: address.clone(), is_told: false });
                }
                (Some(false), true) => {
                    tracing::info!(node = %node.name, %address, "a node answers again");
                    self.notice(&node.name, "reachable");
                    let is_told = missed.remove(&node.name).is_some_and(|missed| missed.is_told);
                    if is_told {
                        self.events.emit(Kind::NodeReachable, node.name.as_str(), json!({ "address": &**address }));
                    }
                }
                _ => {}
            }
            // The node that tells may have left meanwhile.
            if let Some(missed) = missed.get_mut(&node.name).filter(|missed| is_teller && !missed.is_told) {
                missed.is_told = true;
                self.events.emit(Kind::NodeUnreachable, node.name.as_str(), json!({ "address": &*missed.address }));
            }
        }
        self.metrics.unreachable_nodes.set(i64::try_from(missed.len()).unwrap_or(i64::MAX));
    }

    /// Whether a node answers, as far as this one has probed it.
    pub(super) fn is_reachable(&self, node: &Node) -> Option<bool> {
        probed_address(node).and_then(|address| self.reach.is_down(address)).map(|is_down| !is_down)
    }
}

fn addresses(node: &Node) -> impl Iterator<Item = &Arc<str>> {
    node.addresses.http.iter().chain(&node.addresses.rtsp).chain(&node.addresses.nodes)
}

/// The address by which a node is watched.
pub(super) fn probed_address(node: &Node) -> Option<&Arc<str>> {
    addresses(node).next()
}
