//! Facts and counters of an origin, which wrappers hand on.

use std::time::Duration;

use crate::schedule::LinkLanes;

/// Facts of an origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OriginFacts {
    /// Whether requests need no network. Metadata is then trusted for a shorter time.
    pub is_local: bool,
    /// Whether an object appears only when it is complete, as in buckets. Files of other origins may grow while they
    /// are written.
    pub stores_whole: bool,
    /// Whether the path of each object has its version, so that the object never changes. Slices on the disk are then used without a
    /// request to the origin.
    pub has_versions_in_paths: bool,
    /// Whether sibling caches, or homes, are asked before it.
    pub has_neighbours: bool,
    /// Amount that can be read at the same time, where objects are striped over several stores.
    pub lanes: Option<Lanes>,
}

/// Counters of an origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OriginCounts {
    /// Repeated requests.
    pub retries: u64,
    /// Requests to sibling caches, if there are any.
    pub neighbours: Option<NeighbourStats>,
    /// Requests to the stores of its striping group; empty without one.
    pub stripes: Vec<StripeStoreStats>,
    /// Reads of maps of striped objects that have no checksums.
    pub unchecked_maps: u64,
}

/// Counters of requests to siblings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NeighbourStats {
    /// Requests that a sibling answered with bytes.
    pub hits: u64,
    /// Requests that no sibling could answer.
    pub misses: u64,
    /// Failures and timeouts of siblings.
    pub failures: u64,
    /// Bytes of bodies that siblings sent.
    pub bytes: u64,
    /// Those of homes in other zones.
    pub zone_bytes: u64,
    /// Requests that reads made besides their first one: for parts with other homes, and for the version of an object.
    pub further: u64,
}

/// Counters of one store of a striping group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StripeStoreStats {
    /// Name of the store.
    pub store: String,
    /// Requests for units.
    pub requests: u64,
    /// Bytes of units.
    pub bytes: u64,
    /// Requests that failed, after further attempts.
    pub failures: u64,
    /// Reads whose bytes differed from their checksum.
    pub damaged_reads: u64,
    /// Damaged units that were replaced by a good copy.
    pub repaired_units: u64,
    /// Requests under way.
    pub in_flight: u64,
    /// Whether it is left alone after a failure.
    pub is_resting: bool,
}

/// Work that the stores of a striping group share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// Units that are read at the same time.
    pub units: usize,
    /// Length of a unit in bytes.
    pub unit: u64,
    /// Number of stores.
    pub stores: usize,
    /// Longest silence of a store before another copy of its unit is read; `None` if units have no copies.
    pub patience: Option<Duration>,
}

impl Lanes {
    /// Returns the properties of the lanes for the planner. The number of slices equals the number of units.
    pub(crate) fn link(&self) -> LinkLanes {
        let stores = self.stores.max(1) as f64;
        let (spare, patience) = match self.patience {
            Some(patience) => (1.0 - 1.0 / stores, patience.as_secs_f64()),
            None => (1.0, 0.0),
        };
        LinkLanes { slices: self.units, row: self.unit.saturating_mul(self.stores as u64), spare, patience }
    }
}
