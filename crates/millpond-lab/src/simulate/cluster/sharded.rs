//! The sharded cache: homes of range groups.

use millpond_cluster::{ObjectKey, RangeGroup, View, homes};
use millpond_store::Cache;
use std::collections::{HashMap, HashSet};

/// Homes that are asked before the origin.
const HOMES: usize = 2;

/// The slice caches of all nodes, in range groups.
pub(super) struct ShardedCache {
    caches: Vec<Cache<(usize, u64), ()>>,
    /// Homes of groups in the current view, as they are asked for.
    homes: HashMap<(usize, u64), Vec<usize>>,
    seen: HashSet<(usize, u64)>,
    /// Groups that the origin sent, by asset.
    origin: HashMap<usize, u64>,
    /// Groups that viewers read.
    reads: u64,
}

impl ShardedCache {
    pub(super) fn new(nodes: usize, bytes: u64) -> Self {
        let caches = (0..nodes).map(|_| Cache::new(bytes)).collect();
        Self { caches, homes: HashMap::new(), seen: HashSet::new(), origin: HashMap::new(), reads: 0 }
    }

    /// The view has other nodes.
    pub(super) fn changed(&mut self) {
        self.homes.clear();
    }

    /// A viewer reads a group of an asset by way of its home. `position` gives the place of a node that is alive.
    pub(super) fn read(
        &mut self,
        (asset, key): (usize, &ObjectKey),
        group: u64,
        view: &View,
        position: impl Fn(&str) -> Option<usize>,
    ) {
        self.reads += 1;
        let found = self.homes.entry((asset, group)).or_insert_with(|| {
            let group = RangeGroup::of(group.saturating_mul(RangeGroup::BYTES));
            homes(view, key, group, HOMES).into_iter().filter_map(|node| position(node.name.as_str())).collect()
        });
        self.seen.insert((asset, group));
        let key = (asset, group);
        let mut has = found.iter().map(|home| self.caches[*home].get(&key).is_some());
        let is_first = has.next().unwrap_or(false);
        // The second home is asked where the first one misses: it was the first one before a node joined.
        if !is_first && !has.next().unwrap_or(false) {
            *self.origin.entry(asset).or_default() += 1;
        }
        if let (false, Some(home)) = (is_first, found.first()) {
            self.caches[*home].insert(key, (), RangeGroup::BYTES);
        }
    }

    /// A node loses its memory of slices.
    pub(super) fn kill(&mut self, node: usize) {
        self.caches[node].clear();
    }

    /// Bytes that the origin sent.
    pub(super) fn origin_bytes(&self) -> u64 {
        self.origin.values().sum::<u64>() * RangeGroup::BYTES
    }

    /// Groups that the origin sent over groups that were read.
    pub(super) fn origin_ratio(&self) -> f64 {
        self.origin.values().sum::<u64>() as f64 / self.seen.len().max(1) as f64
    }

    /// The same of one asset.
    pub(super) fn origin_ratio_of(&self, asset: usize) -> f64 {
        let seen = self.seen.iter().filter(|(other, _)| *other == asset).count();
        self.origin.get(&asset).copied().unwrap_or(0) as f64 / seen.max(1) as f64
    }

    /// Share of the groups that the cluster had.
    pub(super) fn cluster_share(&self) -> f64 {
        1.0 - self.origin.values().sum::<u64>() as f64 / self.reads.max(1) as f64
    }
}
