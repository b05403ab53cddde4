//! The results of a run of a fleet.

use serde::Serialize;

/// The results of a run of [`run_fleet`](super::run_fleet).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct FleetOutcome {
    /// Nodes at the start.
    pub nodes: usize,
    /// Name of the assignment.
    pub assignment: String,
    /// Streams that were started; those that started again after a failure count again.
    pub streams: u64,
    /// Most streams at the same time.
    pub most_streams: usize,
    /// Streams that no node had room for.
    pub refused: u64,
    /// Largest load of a node over the mean, each in shares of their capacity, at any time after the start.
    pub most_over_mean: f64,
    /// Largest load of a node over its bound.
    pub most_over_bound: f64,
    /// Decisions a second of one thread, for assets as viewers ask for them.
    pub decisions_per_second: f64,
    /// The same for assets that nobody has asked for before.
    pub first_decisions_per_second: f64,
    /// Bytes of all registrations and their keys.
    pub view_bytes: u64,
    /// Share of the streams that a session of the same node was ahead of, within the caching window.
    pub led_share: f64,
    /// Share of the viewers' bytes that came from the viewer's own node or another one.
    pub cluster_share: f64,
    /// Bytes that the origin sent.
    pub origin_bytes: u64,
    /// Those over the bytes that any viewer read, each counted once.
    pub origin_ratio: f64,
    /// The same for the asset that the crowd came to.
    pub crowd_origin_ratio: f64,
    /// Viewers of the crowd.
    pub crowd_viewers: u64,
    /// Dispensers that served the crowd.
    pub crowd_dispensers: usize,
    /// Nodes that were killed, and nodes that joined.
    pub changed_nodes: usize,
    /// Share of the assets whose first dispenser changed when nodes left, over the share of their capacity.
    pub moved_leaving: f64,
    /// The same when nodes joined.
    pub moved_joining: f64,
    /// Share of the streams that play from the first dispenser of their asset's order, and from one of the first three.
    pub first_share: f64,
    /// See `first_share`.
    pub three_share: f64,
    /// Bookings that failed because others had booked the node meanwhile.
    pub lost_transactions: u64,
    /// Streams that lost their node.
    pub cut: u64,
    /// Longest time until such a stream went on, in seconds.
    pub longest_cut: f64,
    /// Requests that went to dead nodes.
    pub dead_tries: u64,
}
