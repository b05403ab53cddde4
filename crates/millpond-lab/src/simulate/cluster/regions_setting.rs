//! The regions of a simulated fleet, and its load.

use millpond_cluster::Bitrate;
use std::time::Duration;

/// The choices of a run of [`run_regions`](super::run_regions).
#[derive(Clone, Debug, PartialEq)]
pub struct RegionsSetting {
    /// Regions, at least two. The last one is lost at half time.
    pub regions: usize,
    /// Nodes of all regions, each with all roles.
    pub nodes: usize,
    /// Whether each region is a zone of the cluster.
    pub zoned: bool,
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
    /// Bandwidth of a node.
    pub capacity: Bitrate,
    /// Bytes of each node's slice cache.
    pub cache: u64,
    /// How often nodes publish their load.
    pub published: Duration,
    /// How long the run lasts.
    pub lasts: Duration,
    /// Seed of random numbers.
    pub seed: u64,
}

impl Default for RegionsSetting {
    fn default() -> Self {
        Self {
            regions: 3,
            nodes: 300,
            zoned: true,
            assets: 1_000_000,
            length: Duration::from_secs(1800),
            skew: 0.9,
            viewers: 64,
            watched: Duration::from_secs(300),
            rate: Bitrate::from_mbps(4),
            capacity: Bitrate::from_mbps(512),
            cache: 256 << 30,
            published: Duration::from_secs(5),
            lasts: Duration::from_secs(600),
            seed: 1,
        }
    }
}

impl RegionsSetting {
    /// Time within which the first viewers come.
    pub(super) const WARM: Duration = Duration::from_secs(60);

    /// When the last region is lost.
    pub(super) fn lost(&self) -> Duration {
        self.lasts / 2
    }
}
