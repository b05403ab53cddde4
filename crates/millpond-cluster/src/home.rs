//! Homes of slices: the nodes that read a range of an object from the origin for all others.

use super::{Node, ObjectKey, View, assignment::Best, hash};

/// A range of an object that has one home: number [`RangeGroup::BYTES`] bytes are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RangeGroup(u64);

impl RangeGroup {
    /// Bytes of a group: 16 MiB. Slices of 512 KiB come in runs of 32, which one flight reads.
    pub const BYTES: u64 = 16 << 20;

    /// The group of a byte of an object.
    pub const fn of(offset: u64) -> Self {
        Self(offset / Self::BYTES)
    }

    /// The offsets of its bytes.
    pub const fn bytes(self) -> std::ops::Range<u64> {
        let start = self.0.saturating_mul(Self::BYTES);
        start..start.saturating_add(Self::BYTES)
    }
}

/// The homes of a range group, at most `count`, in the order in which they are asked. The second one keeps hot slices, for the case that
/// the first one is gone. They are storage nodes that do not drain. Empty where there is none.
pub fn homes<'a>(view: &'a View, key: &ObjectKey, group: RangeGroup, count: usize) -> Vec<&'a Node> {
    let object = hash::pair(key.hash(), group.0.wrapping_add(1));
    let mut best = Best::new(count);
    for storage in view.storages() {
        best.offer(hash::pair(object, storage.hash), storage.weight, storage.place);
    }
    best.into_iter().map(|(_, place)| &view.nodes()[place]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bitrate, Roles};
    use std::collections::HashMap;

    fn view(names: impl IntoIterator<Item = u32>) -> View {
        let node = |number: u32| Node::new(format!("n{number}").parse().unwrap(), Bitrate::from_mbps(1000));
        View::of(1, names.into_iter().map(node))
    }

    fn all_homes(view: &View) -> HashMap<(u32, u64), String> {
        let groups = (0..200).flat_map(|object| (0..20).map(move |group| (object, group)));
        let home = |(object, group): (u32, u64)| {
            let key = ObjectKey::new("films", &format!("{object}.mp4"));
            let found = homes(view, &key, RangeGroup::of(group * RangeGroup::BYTES), 2);
            assert!(found.len() == 2 && found[0].name != found[1].name);
            ((object, group), found[0].name.to_string())
        };
        groups.map(home).collect()
    }

    #[test]
    fn groups_spread_and_few_move() {
        let ten = all_homes(&view(0..10));
        let mut counts: HashMap<&str, u32> = HashMap::new();
        ten.values().for_each(|home| *counts.entry(home).or_default() += 1);
        assert!(counts.len() == 10 && counts.values().all(|count| (320..480).contains(count)), "{counts:?}");
        let eleven = all_homes(&view(0..11));
        let moved: Vec<_> = ten.iter().filter(|(group, home)| &eleven[group] != *home).collect();
        assert!(moved.iter().all(|(group, _)| eleven[group] == "n10"));
        assert!((moved.len() as f64) < 1.3 / 11.0 * 4000.0, "{}", moved.len());
    }

    #[test]
    fn only_storage_nodes_that_stay_are_homes() {
        let mut nodes = view(0..3).nodes().to_vec();
        nodes[0].draining = true;
        nodes[1].roles = Roles::NONE;
        let found = |nodes: &[Node]| {
            let view = View::of(1, nodes.to_vec());
            homes(&view, &ObjectKey::new("", "a"), RangeGroup::of(0), 2).into_iter().cloned().collect::<Vec<_>>()
        };
        assert_eq!(found(&nodes), [nodes[2].clone()]);
        nodes[2].draining = true;
        assert!(found(&nodes).is_empty());
    }
}
