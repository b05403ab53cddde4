//! The slice caches of nodes in regions, and the ways of slices between them.

use millpond_cluster::{HomeRoute, Node, ObjectKey, RangeGroup, View};
use millpond_store::Cache;
use std::collections::{HashMap, HashSet};

/// The farthest place from which a read was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    /// The viewer's node.
    Node,
    /// Another node of its region.
    Region,
    /// A node of another region.
    Cluster,
    Origin,
}

/// The caches of all nodes, in range groups.
pub(super) struct RegionCaches {
    caches: Vec<Cache<(usize, u64), ()>>,
    /// The nodes, each with its region.
    nodes: Vec<(Node, usize)>,
    /// Numbers of nodes by name.
    numbers: HashMap<String, usize>,
    /// Groups that were read.
    seen: HashSet<(usize, u64)>,
    /// Groups that the origin sent.
    origin: u64,
    /// Groups by region of the sender and of the receiver.
    between: Vec<Vec<u64>>,
    /// Reads by their way.
    reads: [u64; 4],
}

impl RegionCaches {
    /// The caches of nodes in regions, each of `bytes`.
    pub(super) fn new(nodes: Vec<(Node, usize)>, bytes: u64) -> Self {
        let count = nodes.iter().map(|(_, region)| region + 1).max().unwrap_or(0);
        Self {
            caches: nodes.iter().map(|_| Cache::new(bytes)).collect(),
            numbers: nodes.iter().enumerate().map(|(number, (node, _))| (node.name.to_string(), number)).collect(),
            nodes,
            seen: HashSet::new(),
            origin: 0,
            between: vec![vec![0; count]; count],
            reads: [0; 4],
        }
    }

    /// A viewer of a node reads a group of an asset.
    pub(super) fn read(&mut self, node: usize, (asset, key): (usize, &ObjectKey), group: u64, view: &View) {
        self.seen.insert((asset, group));
        let way = self.fetch(node, (asset, key), group, view);
        self.reads[way as usize] += 1;
    }

    /// Brings a group to a node, as its route says. A home that misses has a route of its own, which ends at the origin.
    fn fetch(&mut self, node: usize, (asset, key): (usize, &ObjectKey), group: u64, view: &View) -> Way {
        if self.caches[node].get(&(asset, group)).is_some() {
            return Way::Node;
        }
        let range = RangeGroup::of(group.saturating_mul(RangeGroup::BYTES));
        let (own, region) = &self.nodes[node];
        let route = HomeRoute::of(view, (&own.name, own.zone.as_deref()), key, range);
        let to = *region;
        let way = match route.zone.or(route.cluster) {
            None => {
                self.origin += 1;
                Way::Origin
            }
            Some(home) => {
                let at = self.numbers[home.name.as_str()];
                let way = self.fetch(at, (asset, key), group, view);
                let from = self.nodes[at].1;
                if from == to {
                    way.max(Way::Region)
                } else {
                    self.between[from][to] += 1;
                    way.max(Way::Cluster)
                }
            }
        };
        self.caches[node].insert((asset, group), (), RangeGroup::BYTES);
        way
    }

    /// A node loses its memory of slices.
    pub(super) fn kill(&mut self, node: usize) {
        self.caches[node].clear();
    }

    /// Bytes that the origin sent.
    pub(super) fn origin_bytes(&self) -> u64 {
        self.origin * RangeGroup::BYTES
    }

    /// Groups that the origin sent over groups that were read.
    pub(super) fn origin_ratio(&self) -> f64 {
        self.origin as f64 / self.seen.len().max(1) as f64
    }

    /// Bytes by region of the sender and of the receiver.
    pub(super) fn between(&self) -> Vec<Vec<u64>> {
        self.between.iter().map(|row| row.iter().map(|groups| groups * RangeGroup::BYTES).collect()).collect()
    }

    /// Share of the reads that were answered from no farther than a way.
    pub(super) fn share(&self, way: Way) -> f64 {
        let all: u64 = self.reads.iter().sum();
        self.reads[..=way as usize].iter().sum::<u64>() as f64 / all.max(1) as f64
    }
}
