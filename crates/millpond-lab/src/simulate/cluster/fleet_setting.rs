//! The nodes of a simulated fleet, its load and its events.

use millpond_cluster::{AssignmentName, Bitrate};
use std::time::Duration;

/// The choices of a run of [`run_fleet`](super::run_fleet).
#[derive(Clone, Debug, PartialEq)]
pub struct FleetSetting {
    /// Nodes, all of them with all roles.
    pub nodes: usize,
    /// Managers that viewers ask, at random. Each knows the streams of the others only from the view and from bookings.
    pub managers: usize,
    /// Assets.
    pub assets: usize,
    /// Length of each asset.
    pub length: Duration,
    /// Exponent of their popularity.
    pub skew: f64,
    /// Viewers a node, on average.
    pub viewers: usize,
    /// Mean time that a viewer stays.
    pub watched: Duration,
    /// Bandwidth of a stream.
    pub rate: Bitrate,
    /// Bandwidth of a node. Every fourth node has twice that where `mixed` is set.
    pub capacity: Bitrate,
    /// Whether capacities differ.
    pub mixed: bool,
    /// Bytes of each node's slice cache.
    pub cache: u64,
    /// How streams are assigned.
    pub assignment: AssignmentName,
    /// How often nodes publish their load.
    pub published: Duration,
    /// How long a booking takes to reach the other managers.
    pub watch: Duration,
    /// How long a dead node stays in the view.
    pub lease: Duration,
    /// Share of the nodes that are killed, and that join later: at least one.
    pub changed: f64,
    /// Share of all viewers that come to one cold asset within a minute.
    pub crowd: f64,
    /// Share of the nodes that always publish a load of 0.
    pub lying: f64,
    /// Seed of random numbers.
    pub seed: u64,
}

impl Default for FleetSetting {
    fn default() -> Self {
        Self {
            nodes: 10,
            managers: 3,
            assets: 2000,
            length: Duration::from_secs(1800),
            skew: 0.9,
            viewers: 64,
            watched: Duration::from_secs(300),
            rate: Bitrate::from_mbps(4),
            capacity: Bitrate::from_mbps(512),
            mixed: false,
            cache: 256 << 30,
            assignment: AssignmentName::Sosd,
            published: Duration::from_secs(5),
            watch: Duration::from_millis(200),
            lease: Duration::from_secs(10),
            changed: 0.01,
            crowd: 0.1,
            lying: 0.0,
            seed: 1,
        }
    }
}

/// When something happens.
impl FleetSetting {
    /// Viewers have come.
    pub(super) const WARM: Duration = Duration::from_secs(90);
    /// Nodes are killed.
    pub(super) const KILL: Duration = Duration::from_secs(150);
    /// Nodes join.
    pub(super) const JOIN: Duration = Duration::from_secs(210);
    /// The crowd begins to come, for a minute.
    pub(super) const CROWD: Duration = Duration::from_secs(270);
    /// The run ends.
    pub(super) const END: Duration = Duration::from_secs(390);

    /// Number of nodes that are killed, and that join.
    pub(super) fn changed_nodes(&self) -> usize {
        let most = (self.nodes / 2).max(1);
        ((self.nodes as f64 * self.changed).round() as usize).clamp(1, most)
    }
}
