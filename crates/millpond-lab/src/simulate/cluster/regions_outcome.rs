//! The results of a run of regions.

use serde::Serialize;

/// The results of a run of [`run_regions`](super::run_regions).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RegionsOutcome {
    /// Regions at the start.
    pub regions: usize,
    /// Nodes at the start.
    pub nodes: usize,
    /// Whether each region was a zone.
    pub zoned: bool,
    /// Streams that were started; those that started again after the loss count again.
    pub streams: u64,
    /// Streams that no node had room for.
    pub refused: u64,
    /// Bytes that viewers were sent.
    pub viewer_bytes: u64,
    /// Those that nodes of other regions than the viewer's sent.
    pub abroad_bytes: u64,
    /// Bytes that the origin sent.
    pub origin_bytes: u64,
    /// Those over the bytes that any viewer read, each counted once.
    pub origin_ratio: f64,
    /// Bytes of slices that nodes of one region sent to nodes of another one: a row for each sender.
    pub between: Vec<Vec<u64>>,
    /// Share of the reads that the viewer's own node had in its cache.
    pub node_share: f64,
    /// Share of the reads that it had, or a node of its region.
    pub region_share: f64,
    /// Share of the reads that any node had.
    pub cluster_share: f64,
    /// Streams that lost their node with the last region.
    pub cut: u64,
    /// Share of the assets whose first dispenser changed for the first region, when the last one was lost.
    pub moved_assets: f64,
    /// Share of the range groups of which a node of the first region asks another home since.
    pub moved_homes: f64,
    /// Largest load of a node over the mean of all, while all regions are there.
    pub most_over_mean: f64,
    /// The same after the loss.
    pub most_over_mean_after: f64,
    /// Decisions a second of one thread, for assets as viewers ask for them.
    pub decisions_per_second: f64,
    /// The same for assets that nobody has asked for before.
    pub first_decisions_per_second: f64,
}

impl RegionsOutcome {
    /// Bytes of slices that crossed the borders of regions.
    pub fn crossed(&self) -> u64 {
        self.between.iter().flatten().sum()
    }

    /// Share of the viewers' bytes that nodes of other regions sent.
    pub fn abroad_share(&self) -> f64 {
        self.abroad_bytes as f64 / self.viewer_bytes.max(1) as f64
    }
}
