//! Metrics of the cluster.

use millpond_cluster::{ChangeKind, View};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use std::sync::atomic::AtomicU64;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProtocolLabels {
    protocol: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ChangeLabels {
    change: &'static str,
}

/// Changes of nodes, as the nodes that watch them notice them.
const WATCHED: [&str; 2] = ["unreachable", "reachable"];

/// The metrics of the cluster. All are 0 where the server is no node of one.
#[derive(Clone, Debug)]
pub(crate) struct ClusterMetrics {
    nodes: Gauge,
    problems: Gauge,
    changes: Family<ChangeLabels, Counter>,
    differences: Gauge,
    /// Nodes that this one watches, and that do not answer.
    pub(super) unreachable_nodes: Gauge,
    homes_failing: Gauge,
    /// Seconds by which this machine's clock is ahead of most nodes.
    pub(super) clock_offset: Gauge<f64, AtomicU64>,
    /// 1 while the keys are followed.
    pub(super) following: Gauge,
    /// 1 while this node is registered.
    pub(super) member: Gauge,
    /// Leases that ended against the node's will.
    pub(super) lost_leases: Counter,
    /// Changes of keys that were asked of etcd.
    pub(super) puts: Counter,
    /// Requests to etcd that failed.
    pub(super) failures: Counter,
    /// Answers at addresses of `cluster-nodes` that no node has made.
    pub(super) forged: Counter,
    /// Viewers redirected by HTTP.
    pub(super) http: Counter,
    /// Viewers redirected by RTSP.
    pub(super) rtsp: Counter,
    /// Requests passed on to other nodes.
    pub(super) passed: Counter,
    /// Replies that another node went on with.
    pub(super) resumed: Counter,
    /// Streams that found no bandwidth for their whole playback.
    pub(super) refused: Counter,
    /// Nodes that were assigned and could not be reached.
    pub(super) unreachable: Counter,
}

impl ClusterMetrics {
    /// Registers the metrics.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let redirects = Family::<ProtocolLabels, Counter>::default();
        let of = |protocol| redirects.get_or_create_owned(&ProtocolLabels { protocol });
        let changes = Family::<ChangeLabels, Counter>::default();
        for change in ChangeKind::ALL.map(ChangeKind::as_str).into_iter().chain(WATCHED) {
            drop(changes.get_or_create(&ChangeLabels { change }));
        }
        let metrics = Self {
            nodes: Gauge::default(),
            problems: Gauge::default(),
            changes,
            differences: Gauge::default(),
            homes_failing: Gauge::default(),
            unreachable_nodes: Gauge::default(),
            clock_offset: Gauge::default(),
            following: Gauge::default(),
            member: Gauge::default(),
            lost_leases: Counter::default(),
            puts: Counter::default(),
            failures: Counter::default(),
            forged: Counter::default(),
            http: of("http"),
            rtsp: of("rtsp"),
            passed: Counter::default(),
            resumed: Counter::default(),
            refused: Counter::default(),
            unreachable: Counter::default(),
        };
        registry.register("cluster_nodes", "Nodes of the cluster in the last view", metrics.nodes.clone());
        let help = "Keys below the cluster's prefix that are not nodes";
        registry.register("cluster_problems", help, metrics.problems.clone());
        let help = "Changes of other nodes that this node noticed";
        registry.register("cluster_changes", help, metrics.changes.clone());
        let help = "Settings of the server and places that are not the same on all nodes, at most 64";
        registry.register("cluster_differences", help, metrics.differences.clone());
        let help = "Nodes that this node watches and that do not answer";
        registry.register("cluster_unreachable_nodes", help, metrics.unreachable_nodes.clone());
        let help = "Homes of slices that fail for this node, counted for each place";
        registry.register("cluster_homes_failing", help, metrics.homes_failing.clone());
        let help = "Seconds by which the clock of this machine is ahead of those of most nodes";
        registry.register("cluster_clock_offset_seconds", help, metrics.clock_offset.clone());
        let help = "1 while changes in etcd reach this node, 0 while it uses its last view";
        registry.register("cluster_following", help, metrics.following.clone());
        registry.register("cluster_member", "1 while this node is registered in the cluster", metrics.member.clone());
        let help = "Leases of this node that ended before it left";
        registry.register("cluster_lost_leases", help, metrics.lost_leases.clone());
        registry.register("cluster_puts", "Changes of keys that this node requested from etcd", metrics.puts.clone());
        registry.register("cluster_etcd_failures", "Requests to etcd that failed", metrics.failures.clone());
        let help = "Answers at addresses of cluster-nodes that were ignored: no node with cluster-secret had made them";
        registry.register("cluster_forged_answers", help, metrics.forged.clone());
        registry.register("cluster_redirects", "Viewers that were sent to another node", redirects);
        let help = "Requests that were passed on to the node of their object";
        registry.register("cluster_passed", help, metrics.passed.clone());
        let help = "Replies that another node continued after the sending node had failed";
        registry.register("cluster_resumed", help, metrics.resumed.clone());
        let help = "Streams refused because their node or storage lacks bandwidth for their whole playback";
        registry.register("cluster_refused", help, metrics.refused.clone());
        let help = "Times that the next node was chosen because an assigned node could not be reached";
        registry.register("cluster_unreachable", help, metrics.unreachable.clone());
        metrics
    }

    /// Counts a change of another node.
    pub(super) fn changed(&self, change: &'static str) {
        self.changes.get_or_create(&ChangeLabels { change }).inc();
    }

    /// Notes the number of homes that fail.
    pub(super) fn homes(&self, failing: usize) {
        self.homes_failing.set(i64::try_from(failing).unwrap_or(i64::MAX));
    }

    /// Notes a new view.
    pub(super) fn view(&self, view: &View) {
        self.nodes.set(i64::try_from(view.nodes().len()).unwrap_or(i64::MAX));
        self.problems.set(i64::try_from(view.problem_count()).unwrap_or(i64::MAX));
        self.differences.set(i64::try_from(view.differences().len()).unwrap_or(i64::MAX));
    }
}
