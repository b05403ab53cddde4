//! Differences of the settings of nodes, for operators.

use super::{Node, NodeName, Print, Prints};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::Arc,
};

/// Most differences that are found.
const MOST: usize = 64;
/// Most nodes that a list of a difference names.
const MOST_NAMED: usize = 64;

/// Settings that are not the same on all nodes of one version of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeDifference {
    /// The settings.
    pub subject: DifferingSettings,
    /// Version of the nodes. Nodes of other versions are not compared with them.
    pub version: Arc<str>,
    /// Nodes that have other settings than most of those that have the place; the first ones by name where they are many.
    pub differing: Vec<NodeName>,
    /// Nodes that lack the place; the first ones by name where they are many.
    pub lacking: Vec<NodeName>,
}

/// The settings of a difference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DifferingSettings {
    /// Those of the server that form the output of all places.
    Server,
    /// The settings of all places together: a node with more than 64 places registers one print for all.
    Places,
    /// Those of one place.
    Place(String),
}

impl fmt::Display for DifferingSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server => f.write_str("settings of the server"),
            Self::Places => f.write_str("the places"),
            Self::Place(name) if name.is_empty() => f.write_str("the place without a name, or lists of channels"),
            Self::Place(name) => write!(f, "place {name}"),
        }
    }
}

impl fmt::Display for NodeDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |names: &[NodeName]| names.iter().map(NodeName::as_str).collect::<Vec<_>>().join(", ");
        write!(f, "{}:", self.subject)?;
        if !self.differing.is_empty() {
            write!(f, " other settings at {}", names(&self.differing))?;
        }
        if !self.lacking.is_empty() {
            let comma = if self.differing.is_empty() { "" } else { ";" };
            write!(f, "{comma} missing at {}", names(&self.lacking))?;
        }
        Ok(())
    }
}

/// Nodes by their prints.
type Alike<'a> = HashMap<&'a Prints, Vec<&'a NodeName>>;

/// The differences of nodes, by version and subject. Nodes that state no prints or no version, such as those of older programs, are compared with nobody.
pub(crate) fn differences(nodes: &[Node]) -> Vec<NodeDifference> {
    let mut versions: BTreeMap<&Arc<str>, Alike<'_>> = BTreeMap::new();
    for node in nodes {
        let (Some(version), Some(prints)) = (&node.version, &node.prints) else { continue };
        versions.entry(version).or_default().entry(&**prints).or_default().push(&node.name);
    }
    let each = versions.into_iter().flat_map(|(version, groups)| of_version(version, groups));
    each.take(MOST).collect()
}

fn of_version<'a>(version: &'a Arc<str>, groups: Alike<'a>) -> impl Iterator<Item = NodeDifference> + 'a {
    let are_by_name = groups.keys().all(|prints| prints.each().is_some());
    let mut subjects = vec![DifferingSettings::Server];
    match are_by_name {
        _ if groups.len() < 2 => subjects.clear(),
        true => {
            let names = groups.keys().filter_map(|prints| prints.each()).flat_map(BTreeMap::keys);
            let names: BTreeSet<_> = names.collect();
            subjects.extend(names.into_iter().cloned().map(DifferingSettings::Place));
        }
        false => subjects.push(DifferingSettings::Places),
    }
    subjects.into_iter().filter_map(move |subject| {
        let print = |prints: &Prints| match &subject {
            DifferingSettings::Server => Some(prints.server()),
            DifferingSettings::Places => Some(prints.whole()),
            DifferingSettings::Place(name) => prints.each()?.get(name).copied(),
        };
        let all: Vec<_> = groups.iter().map(|(prints, names)| (print(prints), &names[..])).collect();
        let (differing, lacking) = apart(&all)?;
        Some(NodeDifference { subject, version: version.clone(), differing, lacking })
    })
}

/// The nodes whose print is not that of most, and those without one; `None` where all have the same. Of prints that equally many nodes have,
/// the lowest counts: so all nodes name the same ones.
fn apart(all: &[(Option<Print>, &[&NodeName])]) -> Option<(Vec<NodeName>, Vec<NodeName>)> {
    let mut counts: BTreeMap<Print, usize> = BTreeMap::new();
    for (print, names) in all {
        print.iter().for_each(|print| *counts.entry(*print).or_default() += names.len());
    }
    let usual =
        counts.iter().max_by_key(|(print, count)| (**count, std::cmp::Reverse(**print))).map(|(print, _)| *print);
    let of = |is_meant: &dyn Fn(Option<Print>) -> bool| {
        let meant = all.iter().filter(|(print, _)| is_meant(*print)).flat_map(|(_, names)| names.iter());
        let mut names: Vec<NodeName> = meant.map(|name| (*name).clone()).collect();
        names.sort_unstable();
        names.truncate(MOST_NAMED);
        names
    };
    let (differing, lacking) = (of(&|print| print.is_some() && print != usual), of(&|print| print.is_none()));
    (!differing.is_empty() || !lacking.is_empty()).then_some((differing, lacking))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bitrate;
    use proptest::prelude::*;

    fn node(name: &str, version: &str, server: &str, places: &[(&str, &str)]) -> Node {
        let places = places.iter().map(|(name, text)| ((*name).to_owned(), Print::of([*text]))).collect();
        let prints = Some(Prints::new(Print::of([server]), places).into());
        Node { version: Some(version.into()), prints, ..Node::new(name.parse().unwrap(), Bitrate::from_mbps(1)) }
    }

    fn told(nodes: &[Node]) -> Vec<String> {
        differences(nodes).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn nodes_are_named_by_what_differs() {
        let same = [("films", "s3"), ("cams", "2s")];
        let nodes = [
            node("a", "1", "4s", &same),
            node("b", "1", "4s", &[("films", "s3"), ("cams", "4s"), ("", "own")]),
            node("c", "1", "6s", &same),
            node("d", "1", "4s", &[("films", "s3"), ("cams", "2s")]),
            // It is compared with nobody.
            node("e", "2", "9s", &[("films", "gs")]),
            Node { prints: None, ..node("f", "1", "9s", &[]) },
            Node { version: None, ..node("g", "1", "9s", &[]) },
        ];
        assert_eq!(
            told(&nodes),
            [
                "settings of the server: other settings at c",
                "the place without a name, or lists of channels: missing at a, c, d",
                "place cams: other settings at b"
            ]
        );
        assert_eq!(told(&nodes[..1]), [""; 0]);
        let lacks =
            [node("a", "1", "x", &same), node("b", "1", "x", &same[1..]), node("c", "1", "x", &[("films", "gs")])];
        // Of two prints that equally many nodes have, one is named.
        assert_eq!(told(&lacks).len(), 2);
        assert_eq!(told(&lacks[..2]), ["place films: missing at b"]);
        let both = told(&lacks)[1].clone();
        assert!(both.starts_with("place films: other settings at ") && both.ends_with("; missing at b"), "{both}");
    }

    #[test]
    fn many_places_are_compared_as_one() {
        let names: Vec<_> = (0..70).map(|number| format!("p{number}")).collect();
        let all: Vec<_> = names.iter().map(|name| (name.as_str(), "x")).collect();
        let nodes = [node("a", "1", "x", &all), node("b", "1", "x", &all), node("c", "1", "x", &all[..60])];
        assert_eq!(told(&nodes), ["the places: other settings at c"]);
    }

    #[test]
    fn differences_are_bounded() {
        let places: Vec<Vec<String>> =
            (0..200).map(|node| (0..40).map(|place| format!("p{node}-{place}")).collect()).collect();
        let nodes = places.iter().enumerate().map(|(number, names)| {
            let names: Vec<_> = names.iter().map(|name| (name.as_str(), "x")).collect();
            node(&format!("n{number:03}"), "1", "x", &names)
        });
        let nodes: Vec<_> = nodes.collect();
        let found = differences(&nodes);
        assert_eq!((found.len(), found[0].lacking.len()), (MOST, MOST_NAMED));
    }

    proptest! {
        /// All nodes name the same ones, whatever the order in which they read them, and never all of those with a place.
        #[test]
        fn the_order_of_nodes_does_not_count(
            texts in proptest::collection::vec((0_u8..3, proptest::option::of(0_u8..3)), 1..12),
            turn in 0_usize..12,
        ) {
            let made = |(number, (server, place)): (usize, &(u8, Option<u8>))| {
                let place = place.map(|text| text.to_string());
                let places: Vec<_> = place.iter().map(|text| ("films", text.as_str())).collect();
                node(&format!("n{number}"), "1", &server.to_string(), &places)
            };
            let nodes: Vec<_> = texts.iter().enumerate().map(made).collect();
            let mut turned = nodes.clone();
            turned.rotate_left(turn % nodes.len());
            let found = differences(&nodes);
            prop_assert_eq!(&differences(&turned), &found);
            for difference in found {
                let count = |server: bool| texts.iter().filter(|(_, place)| server || place.is_some()).count();
                let with = count(difference.subject == DifferingSettings::Server);
                prop_assert!(difference.differing.len() < with);
            }
        }
    }
}
