//! Homes of slices: the nodes that read a range of an object from the origin for all others.

use super::{Node, NodeName, ObjectKey, View, assignment::Best, hash, view::Storage};

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
/// the first one is gone. They are storage nodes that do not drain, with the settings of the node that sees the view. Empty where there is none.
pub fn homes<'a>(view: &'a View, key: &ObjectKey, group: RangeGroup, count: usize) -> Vec<&'a Node> {
    chosen(view, key, group, count, |_| true)
}

/// The home of a range group in a zone: that of the zone's storage nodes whose score is largest. Where the home of the cluster is in the
/// zone, it is that. `None` where the zone has no storage node.
pub fn zone_home<'a>(view: &'a View, key: &ObjectKey, group: RangeGroup, zone: &str) -> Option<&'a Node> {
    let zone = view.zone_number(zone)?;
    chosen(view, key, group, 1, |storage| storage.zone == Some(zone)).first().copied()
}

fn chosen<'a>(
    view: &'a View,
    key: &ObjectKey,
    group: RangeGroup,
    count: usize,
    is_meant: impl Fn(&Storage) -> bool,
) -> Vec<&'a Node> {
    let object = hash::pair(key.hash(), group.0.wrapping_add(1));
    let agreement = view.agreement(key.place());
    let mut best = Best::new(count);
    for storage in view.storages().iter().filter(|storage| agreement.has(storage.class) && is_meant(storage)) {
        best.offer(hash::pair(object, storage.hash), storage.weight, storage.place);
    }
    best.into_iter().map(|(_, place)| &view.nodes()[place]).collect()
}

/// The nodes that a node asks for a range group before the origin: first the home of its zone, then the home of the cluster.
///
/// The home of a zone asks the home of the cluster, and that asks nobody. So each group crosses the border of a zone once, and the origin
/// sends it once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HomeRoute<'a> {
    /// The home of the node's zone. It may be the home of the cluster too.
    pub zone: Option<&'a Node>,
    /// The home of the cluster, where that is none of the zone.
    pub cluster: Option<&'a Node>,
}

impl<'a> HomeRoute<'a> {
    /// The route of the node `own` in a zone, or in none.
    pub fn of(view: &'a View, (own, zone): (&NodeName, Option<&str>), key: &ObjectKey, group: RangeGroup) -> Self {
        let is_other = |home: &&Node| home.name != *own;
        let Some(cluster) = homes(view, key, group, 1).first().copied().filter(is_other) else {
            return Self::default();
        };
        let zone = zone.and_then(|zone| zone_home(view, key, group, zone));
        Self { zone: zone.filter(is_other), cluster: Some(cluster).filter(|home| zone != Some(*home)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bitrate, Roles};
    use proptest::prelude::*;
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

    /// Nodes in zones of three, and one without a zone.
    fn zoned(count: u32) -> Vec<Node> {
        let mut nodes = view(0..count).nodes().to_vec();
        for (number, node) in nodes.iter_mut().enumerate().skip(1) {
            node.zone = Some(format!("z{}", number % 3).into());
        }
        nodes
    }

    fn groups() -> impl Iterator<Item = (ObjectKey, RangeGroup)> {
        let key = |object: u64| ObjectKey::new("films", &format!("{object}.mp4"));
        (0..2000).map(move |number| (key(number / 4), RangeGroup(number % 4)))
    }

    #[test]
    fn zone_homes_spread_evenly_and_a_lost_zone_moves_only_its_own() {
        let nodes = zoned(31);
        let with = View::of(1, nodes.clone());
        let without = View::of(2, nodes.into_iter().filter(|node| node.zone.as_deref() != Some("z2")));
        let mut counts: HashMap<String, u32> = HashMap::new();
        for (key, group) in groups() {
            let cluster = homes(&with, &key, group, 1)[0];
            for zone in ["z0", "z1", "z2"] {
                let home = zone_home(&with, &key, group, zone).unwrap();
                assert_eq!(home.zone.as_deref(), Some(zone));
                assert!(cluster.zone != home.zone || cluster == home, "the home of the cluster is that of its zone");
                *counts.entry(home.name.to_string()).or_default() += 1;
                let after = zone_home(&without, &key, group, zone);
                assert_eq!(after.map(|home| &home.name), (zone != "z2").then_some(&home.name));
            }
            let after = homes(&without, &key, group, 1)[0];
            assert!(after.name == cluster.name || cluster.zone.as_deref() == Some("z2"));
        }
        // Each of ten nodes of a zone has its share of 2,000 groups, and the node without a zone has none.
        assert!(counts.len() == 30 && counts.values().all(|count| (140..260).contains(count)), "{counts:?}");
        assert!(zone_home(&with, &ObjectKey::new("", "a"), RangeGroup::of(0), "z7").is_none());
    }

    #[test]
    fn a_route_ends_at_the_origin_after_two_homes() {
        let view = View::of(1, zoned(13));
        let (mut crossed, mut read) = (0, 0);
        for (key, group) in groups() {
            let route = |node: &'_ Node| HomeRoute::of(&view, (&node.name, node.zone.as_deref()), &key, group);
            let home = homes(&view, &key, group, 1)[0];
            for node in view.nodes() {
                let HomeRoute { zone, cluster } = route(node);
                assert!(zone.is_none_or(|home| home.zone == node.zone && home != node));
                assert!(cluster.is_none_or(|found| found == home && found.zone != node.zone));
                match zone.or(cluster) {
                    None => {
                        assert_eq!(node, home);
                        read += 1;
                    }
                    // The home of a zone asks the home of the cluster.
                    Some(asked) if asked != home => {
                        assert_eq!(route(asked), HomeRoute { zone: None, cluster: Some(home) })
                    }
                    Some(_) => assert_eq!(route(home), HomeRoute::default()),
                }
                crossed += u32::from(zone.is_none() && cluster.is_some());
            }
        }
        assert_eq!(read, 2000, "the origin sends each group once");
        // Three zones and the node without one: all but that of the home ask once.
        assert_eq!(crossed, 3 * 2000);
    }

    #[test]
    fn without_zones_the_home_of_the_cluster_is_asked() {
        let view = view(0..5);
        for (key, group) in groups().take(100) {
            let home = homes(&view, &key, group, 1)[0];
            for node in view.nodes() {
                let expected = HomeRoute { zone: None, cluster: Some(home).filter(|home| *home != node) };
                // A zone in which nobody is changes nothing.
                for zone in [None, Some("z1")] {
                    assert_eq!(HomeRoute::of(&view, (&node.name, zone), &key, group), expected);
                }
            }
        }
        let nobody = View::of(1, []);
        let own = "a".parse().unwrap();
        let route = HomeRoute::of(&nobody, (&own, Some("z1")), &ObjectKey::new("", "a"), RangeGroup::of(0));
        assert_eq!(route, HomeRoute::default());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever the nodes are, a route has two homes at most, and the last of them is the home of the cluster. Nodes that leave a
        /// zone change no home of another zone.
        #[test]
        fn routes_end_and_zones_depend_on_their_own_nodes_alone(
            nodes in proptest::collection::vec((1_u64..20, 0_u32..5, 0_u32..6, 0_u32..4), 1..40),
            object in 0_u32..1000,
            lost in 0_u32..4,
        ) {
            let zone = |number: u32| Some(format!("z{number}").into()).filter(|_| number < 4);
            let node = |(number, (weight, of, drains, role)): (usize, &(u64, u32, u32, u32))| Node {
                zone: zone(*of),
                draining: *drains == 0,
                roles: if *role == 0 { Roles::NONE } else { Roles::ALL },
                ..Node::new(format!("n{number}").parse().unwrap(), Bitrate::from_mbps(weight * 100))
            };
            let nodes: Vec<Node> = nodes.iter().enumerate().map(node).collect();
            let (key, group) = (ObjectKey::new("films", &object.to_string()), RangeGroup(3));
            let view = View::of(1, nodes.clone());
            let home = homes(&view, &key, group, 1).first().copied();
            for node in view.nodes() {
                let (mut at, mut steps) = (node, 0);
                loop {
                    let HomeRoute { zone, cluster } = HomeRoute::of(&view, (&at.name, at.zone.as_deref()), &key, group);
                    let Some(next) = zone.or(cluster) else { break };
                    prop_assert!(cluster.is_none_or(|cluster| Some(cluster) == home));
                    (at, steps) = (next, steps + 1);
                    prop_assert!(steps <= 2);
                }
                prop_assert!(home.is_none_or(|home| home == at));
            }
            let lost = zone(lost);
            let after = View::of(2, nodes.into_iter().filter(|node| node.zone != lost));
            for zone in (0..4).filter_map(zone).filter(|zone| Some(zone) != lost.as_ref()) {
                let of = |view: &View| zone_home(view, &key, group, &zone).map(|home| home.name.clone());
                prop_assert_eq!(of(&view), of(&after));
            }
        }
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
