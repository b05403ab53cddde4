//! Changes of a cluster's nodes, and the node that tells of each.

use super::{NodeName, View};
use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    time::Duration,
};

/// Time after which it is not told anew that a node has left, where the node that should tell has left too. It is more than the
/// longest lease: nodes of one rack leave within that.
const TOLD_ANEW: Duration = Duration::from_secs(90);
/// Most departures that are remembered for that.
const MOST_GONE: usize = 256;

/// A kind of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// A node takes work for the first time.
    Joined,
    /// A node has left after it drained.
    Left,
    /// A node has left without a drain: it died, or was cut off from etcd.
    Lost,
    /// Another run of a node has its name.
    Restarted,
    /// A node takes no new work.
    Draining,
    /// A node takes work again.
    Resumed,
}

impl ChangeKind {
    /// All kinds.
    pub const ALL: [Self; 6] = [Self::Joined, Self::Left, Self::Lost, Self::Restarted, Self::Draining, Self::Resumed];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Joined => "joined",
            Self::Left => "left",
            Self::Lost => "lost",
            Self::Restarted => "restarted",
            Self::Draining => "draining",
            Self::Resumed => "resumed",
        }
    }
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A change of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Name of the node.
    pub node: NodeName,
    /// Its kind.
    pub kind: ChangeKind,
    /// Whether this node tells others of it. One node does, so that nobody hears of it once from each node.
    pub tells: bool,
    /// Whether this node has noticed it before: the node that should have told has left.
    pub is_known: bool,
}

/// Finds the changes between the views of a node, and those that the node tells.
///
/// All nodes with the same views name the same teller: [`View::teller`] has the rule.
#[derive(Debug)]
pub struct Witness {
    own: NodeName,
    /// Nodes that began as draining, because they do not serve yet, and what is told when they take work.
    beginning: BTreeMap<NodeName, Option<ChangeKind>>,
    /// The last departures.
    gone: VecDeque<Gone>,
}

#[derive(Debug)]
struct Gone {
    node: NodeName,
    kind: ChangeKind,
    teller: Option<NodeName>,
    at: Duration,
}

impl Witness {
    /// The witness at the node `own`. It has seen nothing.
    pub fn new(own: NodeName) -> Self {
        Self { own, beginning: BTreeMap::new(), gone: VecDeque::new() }
    }

    /// Returns the changes from a view to the next one, which comes at `now`, a time since any moment. The nodes of the first view were
    /// there before: they are no changes. A node is told nothing of itself.
    pub fn observe(&mut self, old: &View, new: &View, now: Duration) -> Vec<Change> {
        let mut changes = self.told_anew(new, now);
        if old.revision() == 0 {
            return changes;
        }
        let kinds = self.arrivals(old, new).into_iter().chain(self.departures(old, new));
        for (node, kind) in kinds.collect::<Vec<_>>() {
            let teller = new.teller(node.as_str()).cloned();
            if matches!(kind, ChangeKind::Left | ChangeKind::Lost) {
                self.gone.push_back(Gone { node: node.clone(), kind, teller: teller.clone(), at: now });
            }
            changes.push(Change { node, kind, tells: teller.as_ref() == Some(&self.own), is_known: false });
        }
        while self.gone.len() > MOST_GONE {
            self.gone.pop_front();
        }
        changes
    }

    /// Departures that this node tells in place of one that has left.
    fn told_anew(&mut self, new: &View, now: Duration) -> Vec<Change> {
        self.gone.retain(|gone| now.saturating_sub(gone.at) < TOLD_ANEW && new.node(gone.node.as_str()).is_none());
        let mut changes = Vec::new();
        for gone in &mut self.gone {
            if gone.teller.as_ref().is_some_and(|teller| new.node(teller.as_str()).is_some()) {
                continue;
            }
            gone.teller = new.teller(gone.node.as_str()).cloned();
            if gone.teller.as_ref() == Some(&self.own) {
                changes.push(Change { node: gone.node.clone(), kind: gone.kind, tells: true, is_known: true });
            }
        }
        changes
    }

    /// Changes of nodes that are in the new view.
    fn arrivals(&mut self, old: &View, new: &View) -> Vec<(NodeName, ChangeKind)> {
        let mut found = Vec::new();
        for node in new.nodes().iter().filter(|node| node.name != self.own) {
            let name = node.name.as_str();
            let before = old.node(name);
            let is_same_run = old.incarnation(name) == new.incarnation(name);
            let kind = match before {
                None if node.draining => {
                    self.beginning.insert(node.name.clone(), Some(ChangeKind::Joined));
                    None
                }
                None => Some(ChangeKind::Joined),
                Some(_) if !is_same_run => {
                    if node.draining {
                        self.beginning.insert(node.name.clone(), None);
                    }
                    Some(ChangeKind::Restarted)
                }
                Some(before) if before.draining && !node.draining => {
                    self.beginning.remove(&node.name).unwrap_or(Some(ChangeKind::Resumed))
                }
                Some(before) if !before.draining && node.draining => Some(ChangeKind::Draining),
                Some(_) => None,
            };
            found.extend(kind.map(|kind| (node.name.clone(), kind)));
        }
        found
    }

    /// Changes of nodes that are not in the new view.
    fn departures(&mut self, old: &View, new: &View) -> Vec<(NodeName, ChangeKind)> {
        let gone = old.nodes().iter().filter(|node| node.name != self.own && new.node(node.name.as_str()).is_none());
        let gone: Vec<_> = gone.collect();
        let kind = |draining| if draining { ChangeKind::Left } else { ChangeKind::Lost };
        // Nodes that never took work were not told, and are not missed.
        let was_told = |name: &NodeName| self.beginning.get(name) != Some(&Some(ChangeKind::Joined));
        let found = gone.iter().filter(|node| was_told(&node.name));
        let found = found.map(|node| (node.name.clone(), kind(node.draining))).collect();
        for node in gone {
            self.beginning.remove(&node.name);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bitrate, Entry, Node, node_key};

    /// A view of nodes: name, run, and whether each drains.
    fn view(revision: u64, nodes: &[(&str, u64, bool)]) -> View {
        let written: Vec<_> = nodes
            .iter()
            .map(|(name, run, draining)| {
                let node = Node { draining: *draining, ..Node::new(name.parse().unwrap(), Bitrate::from_mbps(100)) };
                (node_key("/m/", &node.name, *run), node.to_json())
            })
            .collect();
        View::read(
            "/m/",
            revision,
            written.iter().map(|(key, value)| Entry { key, value: value.as_bytes(), created: 1 }),
        )
    }

    fn told(changes: &[Change]) -> Vec<(&str, &str)> {
        changes.iter().map(|change| (change.node.as_str(), change.kind.as_str())).collect()
    }

    #[test]
    fn nodes_join_when_they_take_work_and_leave_as_they_do() {
        let mut witness = Witness::new("a".parse().unwrap());
        let mut at = 0;
        let mut views = vec![View::default()];
        let mut next = |nodes: &[(&str, u64, bool)]| {
            at += 1;
            views.push(view(at, nodes));
            let [.., old, new] = &views[..] else { unreachable!() };
            let changes = witness.observe(old, new, Duration::from_secs(at));
            told(&changes).into_iter().map(|(node, kind)| format!("{node} {kind}")).collect::<Vec<_>>().join(", ")
        };
        let a = ("a", 1, false);
        assert_eq!(next(&[a, ("b", 1, false)]), "", "they were there before");
        assert_eq!(next(&[a, ("b", 1, false), ("c", 1, true)]), "", "it does not serve yet");
        assert_eq!(next(&[a, ("b", 1, false), ("c", 1, false)]), "c joined");
        assert_eq!(next(&[a, ("b", 1, true), ("c", 1, false)]), "b draining");
        assert_eq!(next(&[a, ("b", 1, false), ("c", 1, false)]), "b resumed");
        assert_eq!(next(&[a, ("b", 2, true), ("c", 1, true)]), "b restarted, c draining");
        assert_eq!(next(&[a, ("b", 2, false)]), "c left", "a run that begins to serve is no news");
        assert_eq!(next(&[a, ("d", 1, true)]), "b lost");
        assert_eq!(next(&[a]), "", "a node that never took work");
        assert_eq!(next(&[("a", 2, true)]), "", "nothing of itself");
    }

    #[test]
    fn one_node_tells_of_each_change() {
        let names = ["a", "b", "c", "d", "e"];
        let all: Vec<_> = names.map(|name| (name, 1, false)).into();
        let before = view(1, &all);
        for lost in names {
            let after = view(2, &all.iter().copied().filter(|(name, ..)| *name != lost).collect::<Vec<_>>());
            let tellers = names.iter().filter(|own| **own != lost).filter(|own| {
                let changes = Witness::new(own.parse().unwrap()).observe(&before, &after, Duration::ZERO);
                assert_eq!(told(&changes), [(lost, "lost")]);
                changes[0].tells
            });
            assert_eq!(tellers.count(), 1, "{lost}");
        }
    }

    #[test]
    fn departures_are_told_also_where_their_teller_is_gone() {
        let names = ["a", "b", "c", "d", "e"];
        let without = |revision, gone: &[&str]| {
            let left = names.iter().filter(|name| !gone.contains(name)).map(|name| (*name, 1, false));
            view(revision, &left.collect::<Vec<_>>())
        };
        let (first, second) = (without(1, &[]), without(2, &["a"]));
        // The node that should tell of the first one dies in the same rack, and has told nobody.
        let teller = second.teller("a").unwrap().clone();
        let third = without(3, &["a", teller.as_str()]);
        let mut tellers = 0;
        for own in names.iter().filter(|own| **own != "a" && **own != teller.as_str()) {
            let mut witness = Witness::new(own.parse().unwrap());
            assert!(!witness.observe(&first, &second, Duration::ZERO)[0].tells);
            let changes = witness.observe(&second, &third, Duration::from_secs(5));
            let anew = changes.iter().filter(|change| change.node.as_str() == "a");
            tellers += anew.inspect(|change| assert!(change.tells && change.is_known)).count();
            // It is told once.
            let fourth = without(4, &["a", teller.as_str()]);
            assert!(witness.observe(&third, &fourth, Duration::from_secs(6)).is_empty());
        }
        assert_eq!(tellers, 1);
    }
}
