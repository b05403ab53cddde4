//! The view: the nodes of a cluster, as one of them knows them.

use super::{
    Node, NodeDifference, NodeError, NodeName, Prints, Role,
    class::{Agreement, classes, compared},
    difference::differences,
    hash,
};
use std::sync::Arc;

/// Most nodes of a view. Further ones are a [`Problem`].
const MOST_NODES: usize = 16_384;
const _: () = assert!(MOST_NODES <= 1 << 16, "orders number dispensers by 16 bits");
/// Most problems that a view keeps; others are counted.
const MOST_PROBLEMS: usize = 64;
/// Most bytes of a key that a problem names.
const LONGEST_KEY: usize = 256;

/// A key and its value in etcd.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The whole key.
    pub key: &'a str,
    /// The value.
    pub value: &'a [u8],
    /// The revision at which the key was made (etcd's `create_revision`).
    pub created: u64,
}

/// The nodes of a cluster at one revision. It never changes: a later revision is another view.
#[derive(Clone, Debug, Default)]
pub struct View {
    revision: u64,
    members: Vec<Member>,
    nodes: Vec<Node>,
    storages: Vec<Storage>,
    /// Names of the nodes' zones, in order.
    zones: Vec<Arc<str>>,
    differences: Vec<NodeDifference>,
    standpoint: Option<Standpoint>,
    /// Number of the zone of the node that sees the view.
    own_zone: Option<usize>,
    problems: Vec<Problem>,
    problem_count: usize,
}

/// The node that sees a view, and the prints of the classes that it must compare with its own.
#[derive(Clone, Debug)]
struct Standpoint {
    own: Arc<Prints>,
    others: Vec<Option<Arc<Prints>>>,
}

/// Facts of a node in a view beside its registration.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// Its run.
    pub(crate) incarnation: u64,
    created: u64,
    /// Hash of its name.
    pub(crate) hash: u64,
    /// Number of its [class](classes).
    pub(crate) class: usize,
    /// Number of its zone.
    pub(crate) zone: Option<usize>,
}

/// A node that slices may have as their home, packed: a search for homes looks at all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Storage {
    /// Hash of its name.
    pub(crate) hash: u64,
    /// Its capacity.
    pub(crate) weight: f64,
    /// Its place among the nodes.
    pub(crate) place: usize,
    /// Number of its [class](classes).
    pub(crate) class: usize,
    /// Number of its zone.
    pub(crate) zone: Option<usize>,
}

/// An entry that is no node of the view.
#[derive(Debug, Clone)]
pub struct Problem {
    /// Its key; the beginning of a long one.
    pub key: String,
    /// The fault of the entry.
    pub kind: ProblemKind,
}

/// The fault of an entry.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ProblemKind {
    /// The key has another form than [`node_key`] gives.
    #[error("expected a key of the form nodes/NAME/INCARNATION")]
    Key,
    /// The value is no registration.
    #[error("{0}")]
    Value(Arc<NodeError>),
    /// The registration has another name than its key.
    #[error("the key names another node than the registration, {0}")]
    Name(NodeName),
    /// Two nodes have one name. The one that registered last is in the view.
    #[error("another node registered under this name later, as incarnation {by:x}")]
    Displaced {
        /// Incarnation of the node in the view.
        by: u64,
    },
    /// The cluster has a secret, and the registration no signature of it.
    #[error("{}", unsigned(.0.as_ref()))]
    Unsigned(Option<NodeName>),
    /// The node is one of another cluster.
    #[error("a node of the cluster {0:?}: give one of both clusters another cluster-prefix")]
    Foreign(Arc<str>),
    /// There are too many nodes.
    #[error("more than {MOST_NODES} nodes")]
    TooMany,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.key.escape_debug(), self.kind)
    }
}

/// Describes a registration without the secret's signature, by the name in its key.
fn unsigned(name: Option<&NodeName>) -> String {
    let words = "the registration is not signed with this node's secret";
    match name {
        Some(name) => {
            format!(
                "{words}: is node {name} one of yours? Then set cluster-secret there to a file with the same secret"
            )
        }
        None => words.to_owned(),
    }
}

/// The key of a node's registration: `PREFIXnodes/NAME/INCARNATION`. The incarnation tells runs of a node apart, and two nodes
/// with one name; it is random, or the number of the node's lease.
pub fn node_key(prefix: &str, name: &NodeName, incarnation: u64) -> String {
    format!("{prefix}nodes/{name}/{incarnation:x}")
}

impl View {
    /// Notes an entry whose signature is wrong or missing. It is no entry of the view.
    pub fn distrust(&mut self, key: &str) {
        let name = key.rsplit('/').nth(1).and_then(|name| name.parse().ok());
        self.report(key, ProblemKind::Unsigned(name));
    }

    /// The view of `entries`, all those whose keys begin with `PREFIXnodes/`, at a revision of etcd. What is wrong with an entry is
    /// one of [`problems`](Self::problems); the other entries count.
    pub fn read<'a>(prefix: &str, revision: u64, entries: impl IntoIterator<Item = Entry<'a>>) -> Self {
        let mut view = Self { revision, ..Self::default() };
        let mut found: Vec<(Node, Member, &str)> = Vec::new();
        for entry in entries {
            match read_entry(prefix, entry) {
                Ok(_) if found.len() >= 2 * MOST_NODES => view.report(entry.key, ProblemKind::TooMany),
                Ok((node, member)) => found.push((node, member, entry.key)),
                Err(problem) => view.report(entry.key, problem),
            }
        }
        // Of one name the entry that was made last comes first.
        let rank = |member: &Member| std::cmp::Reverse((member.created, member.incarnation));
        found.sort_by(|(one, first, _), (two, second, _)| {
            one.name.cmp(&two.name).then_with(|| rank(first).cmp(&rank(second)))
        });
        for (node, member, key) in found {
            match (view.nodes.last(), view.members.last()) {
                (Some(last), Some(by)) if last.name == node.name => {
                    let by = by.incarnation;
                    view.report(key, ProblemKind::Displaced { by });
                }
                _ if view.nodes.len() == MOST_NODES => view.report(key, ProblemKind::TooMany),
                _ => {
                    view.nodes.push(node);
                    view.members.push(member);
                }
            }
        }
        view.completed()
    }

    /// A view of registrations that come from elsewhere than etcd. Of nodes with one name the last counts.
    pub fn of(revision: u64, nodes: impl IntoIterator<Item = Node>) -> Self {
        let nodes: std::collections::BTreeMap<_, _> =
            nodes.into_iter().map(|node| (node.name.clone(), node)).take(MOST_NODES).collect();
        let nodes: Vec<_> = nodes.into_values().collect();
        let members = nodes.iter().map(|node| Member::new(node, 0, revision)).collect();
        Self { revision, members, nodes, ..Self::default() }.completed()
    }

    /// The view without nodes of other clusters than `cluster`, which become problems. Nodes that state no cluster stay.
    #[must_use]
    pub fn within(mut self, cluster: Option<&str>) -> Self {
        let is_foreign = |node: &Node| node.cluster.as_deref().is_some_and(|id| cluster.is_some_and(|own| own != id));
        if !self.nodes.iter().any(is_foreign) {
            return self;
        }
        let members = std::mem::take(&mut self.members);
        for (node, member) in std::mem::take(&mut self.nodes).into_iter().zip(members) {
            match node.cluster.clone().filter(|_| is_foreign(&node)) {
                Some(id) => self.report(&node_key("", &node.name, member.incarnation), ProblemKind::Foreign(id)),
                None => {
                    self.nodes.push(node);
                    self.members.push(member);
                }
            }
        }
        self.completed()
    }

    /// The view of the node `own`, which gives work of a place only to nodes with its own settings of the place, and prefers the nodes of its
    /// zone. Its settings count as it has them, though the registration may be older.
    #[must_use]
    pub fn seen_by(mut self, own: &Node) -> Self {
        let registered = self.position(own.name.as_str()).map(|at| &mut self.nodes[at].prints);
        if let Some(prints) = registered.filter(|prints| **prints != own.prints) {
            prints.clone_from(&own.prints);
            self = self.completed();
        }
        let others: Vec<_> = classes(&self.nodes).1.into_iter().map(|node| compared(own, node)).collect();
        let is_needed = others.iter().any(Option::is_some);
        self.standpoint = own.prints.clone().filter(|_| is_needed).map(|own| Standpoint { own, others });
        self.own_zone = own.zone.as_deref().and_then(|zone| self.zone_number(zone));
        self
    }

    /// The revision of etcd that it shows.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The nodes, by name.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node with a name.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.position(name).map(|position| &self.nodes[position])
    }

    /// The incarnation of the node with a name.
    pub fn incarnation(&self, name: &str) -> Option<u64> {
        self.position(name).map(|position| self.members[position].incarnation)
    }

    /// The nodes that watch the node of a name, which may have left: at most `count` others, the first one first. Names are on a ring by their
    /// hash, and the next ones on it watch. So each node watches few, and neighbours by name, such as those of a rack, do not depend
    /// on each other.
    pub fn watchers(&self, name: &str, count: usize) -> Vec<&NodeName> {
        let at = hash::bytes(name.as_bytes());
        self.nearest(name, count, |hash| hash.wrapping_sub(at))
    }

    /// The node that tells others of a change of the node of a name: the one that registered first; `None` where no other one is left. A
    /// node that has just come does not know what was before.
    pub fn teller(&self, name: &str) -> Option<&NodeName> {
        let others = self.nodes.iter().zip(&self.members).filter(|(node, _)| node.name.as_str() != name);
        others.map(|(node, member)| (member.created, &node.name)).min().map(|(_, name)| name)
    }

    /// The nodes that the node of a name watches, where each has `count` [watchers](Self::watchers).
    pub fn watched(&self, name: &str, count: usize) -> Vec<&NodeName> {
        let at = hash::bytes(name.as_bytes());
        self.nearest(name, count, |hash| at.wrapping_sub(hash))
    }

    /// The nodes of the least distances from the node of a name, without that itself.
    fn nearest(&self, name: &str, count: usize, distance: impl Fn(u64) -> u64) -> Vec<&NodeName> {
        let others = self.nodes.iter().zip(&self.members).filter(|(node, _)| node.name.as_str() != name);
        let mut others: Vec<_> = others.map(|(node, member)| (distance(member.hash), &node.name)).collect();
        others.sort_unstable();
        others.truncate(count);
        others.into_iter().map(|(_, name)| name).collect()
    }

    /// The nodes that new work of a role may be given to, by name.
    pub fn taking(&self, role: Role) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(move |node| node.takes(role))
    }

    /// Settings that are not the same on all nodes.
    pub fn differences(&self) -> &[NodeDifference] {
        &self.differences
    }

    /// Entries that are no nodes of the view; the first of them where they are many.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Number of all entries that are no nodes of the view.
    pub fn problem_count(&self) -> usize {
        self.problem_count
    }

    /// The nodes that new work of a role may be given to, each with the facts beside its registration.
    pub(crate) fn members_taking(&self, role: Role) -> impl Iterator<Item = (&Member, &Node)> {
        self.members.iter().zip(&self.nodes).filter(move |(_, node)| node.takes(role))
    }

    /// The nodes that may be homes of slices.
    pub(crate) fn storages(&self) -> &[Storage] {
        &self.storages
    }

    /// The number of a zone; `None` where no node is in it.
    pub(crate) fn zone_number(&self, zone: &str) -> Option<usize> {
        self.zones.binary_search_by(|known| known.as_ref().cmp(zone)).ok()
    }

    /// The number of the zone of the node that sees the view.
    pub(crate) fn own_zone(&self) -> Option<usize> {
        self.own_zone
    }

    /// The nodes that may be given work of a place.
    pub(crate) fn agreement(&self, place: &str) -> Agreement {
        let Some(Standpoint { own, others }) = &self.standpoint else { return Agreement::default() };
        Agreement::new(others.iter().map(|other| other.as_ref().is_none_or(|other| own.agrees(other, place))))
    }

    /// The view with what follows from its nodes.
    fn completed(mut self) -> Self {
        let (of, _) = classes(&self.nodes);
        self.members.iter_mut().zip(of).for_each(|(member, class)| member.class = class);
        let zones: std::collections::BTreeSet<_> = self.nodes.iter().filter_map(|node| node.zone.clone()).collect();
        self.zones = zones.into_iter().collect();
        let of: Vec<_> =
            self.nodes.iter().map(|node| node.zone.as_deref().and_then(|zone| self.zone_number(zone))).collect();
        self.members.iter_mut().zip(of).for_each(|(member, zone)| member.zone = zone);
        self.differences = differences(&self.nodes);
        let all = self.members.iter().zip(&self.nodes).enumerate();
        let storages = all.filter(|(_, (_, node))| node.takes(Role::Storage)).map(|(place, (member, node))| Storage {
            hash: member.hash,
            weight: node.capacity.bps() as f64,
            place,
            class: member.class,
            zone: member.zone,
        });
        self.storages = storages.collect();
        self
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.nodes.binary_search_by(|node| node.name.as_str().cmp(name)).ok()
    }

    fn report(&mut self, key: &str, kind: ProblemKind) {
        self.problem_count += 1;
        if self.problems.len() < MOST_PROBLEMS {
            let end = (0..=LONGEST_KEY.min(key.len())).rev().find(|end| key.is_char_boundary(*end)).unwrap_or(0);
            self.problems.push(Problem { key: key[..end].into(), kind });
        }
    }
}

impl Member {
    fn new(node: &Node, incarnation: u64, created: u64) -> Self {
        Self { incarnation, created, hash: hash::bytes(node.name.as_str().as_bytes()), class: 0, zone: None }
    }
}

fn read_entry(prefix: &str, entry: Entry<'_>) -> Result<(Node, Member), ProblemKind> {
    let parts = entry.key.strip_prefix(prefix).and_then(|rest| rest.strip_prefix("nodes/")?.split_once('/'));
    let (name, incarnation) = parts.ok_or(ProblemKind::Key)?;
    let name: NodeName = name.parse().map_err(|_| ProblemKind::Key)?;
    let number = u64::from_str_radix(incarnation, 16).map_err(|_| ProblemKind::Key)?;
    if entry.key != node_key(prefix, &name, number) {
        return Err(ProblemKind::Key);
    }
    let node = Node::from_json(entry.value).map_err(|error| ProblemKind::Value(error.into()))?;
    if node.name != name {
        return Err(ProblemKind::Name(node.name));
    }
    let member = Member::new(&node, number, entry.created);
    Ok((node, member))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bitrate, Print};

    fn node(name: &str) -> Node {
        Node::new(name.parse().unwrap(), Bitrate::from_mbps(100))
    }

    #[test]
    fn one_bad_entry_spoils_no_view() {
        let good = node("a").to_json();
        let entry = |key, value, created| Entry { key, value, created };
        let long = format!("/m/{}", "ä".repeat(1000));
        let view = View::read(
            "/m/",
            9,
            [
                entry("/m/nodes/a/1f", good.as_bytes(), 3),
                entry("/m/nodes/b/1", good.as_bytes(), 3),
                entry("/m/nodes/c/1", b"{\"name\":\"c\"", 3),
                entry("/m/nodes/c/01", good.as_bytes(), 3),
                entry("/m/nodes/c", good.as_bytes(), 3),
                entry("/other", good.as_bytes(), 3),
                entry(&long, b"", 3),
            ],
        );
        assert_eq!((view.revision(), view.nodes(), view.incarnation("a")), (9, &[node("a")][..], Some(0x1f)));
        assert_eq!(view.problem_count(), 6);
        let told: Vec<_> = view.problems().iter().map(ToString::to_string).collect();
        assert_eq!(told[0], "/m/nodes/b/1: the key names another node than the registration, a");
        assert!(told[1].starts_with("/m/nodes/c/1: EOF while parsing"), "{}", told[1]);
        assert!(told[2..5].iter().all(|told| told.ends_with("expected a key of the form nodes/NAME/INCARNATION")));
        assert!(told[5].len() < 2 * LONGEST_KEY);
    }

    #[test]
    fn of_two_nodes_with_one_name_the_later_counts() {
        let old = node("a").to_json();
        let new = Node { draining: true, ..node("a") }.to_json();
        let entries = [("/m/nodes/a/ff", &old, 4), ("/m/nodes/a/2", &new, 6)];
        for order in [[0, 1], [1, 0]] {
            let entries = order.map(|at| {
                let (key, value, created) = entries[at];
                Entry { key, value: value.as_bytes(), created }
            });
            let view = View::read("/m/", 1, entries);
            assert!(view.node("a").unwrap().draining && view.incarnation("a") == Some(2) && view.nodes().len() == 1);
            assert_eq!(view.problems()[0].key, "/m/nodes/a/ff");
            assert!(matches!(view.problems()[0].kind, ProblemKind::Displaced { by: 2 }));
        }
    }

    #[test]
    fn each_node_watches_those_that_it_is_a_watcher_of() {
        for count in [1_usize, 2, 3, 50] {
            let view = View::of(1, (0..count).map(|number| node(&format!("edge-{number}"))));
            for name in view.nodes().iter().map(|node| node.name.as_str()) {
                let watchers = view.watchers(name, 3);
                assert_eq!(watchers.len(), 3.min(count - 1));
                assert!(
                    watchers.iter().all(|watcher| view.watched(watcher.as_str(), 3).iter().any(|n| n.as_str() == name))
                );
            }
            assert_eq!(view.watchers("gone", 3).len(), 3.min(count));
        }
    }

    #[test]
    fn the_node_that_registered_first_tells() {
        let created = [("a", 9), ("b", 4), ("c", 7)];
        let written =
            created.map(|(name, created)| (node_key("/m/", &node(name).name, 1), node(name).to_json(), created));
        let entries =
            written.iter().map(|(key, value, created)| Entry { key, value: value.as_bytes(), created: *created });
        let view = View::read("/m/", 9, entries);
        let tellers = ["a", "b", "c", "gone"].map(|name| view.teller(name).unwrap().as_str());
        assert_eq!(tellers, ["b", "c", "b", "b"]);
        assert_eq!(View::of(1, [node("a")]).teller("a"), None);
    }

    #[test]
    fn nodes_of_other_clusters_are_problems() {
        let of = |name: &str, cluster: Option<&str>| Node { cluster: cluster.map(Into::into), ..node(name) };
        let nodes = [of("a", Some("east")), of("b", Some("west")), of("c", None)];
        let names = |view: &View| view.nodes().iter().map(|node| node.name.to_string()).collect::<String>();
        let view = View::of(1, nodes.clone()).within(Some("east"));
        assert_eq!((names(&view).as_str(), view.problem_count(), view.storages().len()), ("ac", 1, 2));
        let told = view.problems()[0].to_string();
        assert_eq!(told, "nodes/b/0: a node of the cluster \"west\": give one of both clusters another cluster-prefix");
        assert_eq!(names(&View::of(1, nodes).within(None)), "abc");
    }

    #[test]
    fn a_node_sees_itself_as_it_is() {
        let of = |name: &str, text: &str| {
            let prints = Prints::new(Print::of(["4s"]), [("films".to_owned(), Print::of([text]))].into());
            Node { version: Some("1".into()), prints: Some(prints.into()), ..node(name) }
        };
        let view = View::of(1, [of("a", "old"), of("b", "new")]);
        assert_eq!(view.differences().len(), 1);
        // The registration of this node is older than its settings.
        let seen = view.clone().seen_by(&of("a", "new"));
        assert!(seen.differences().is_empty() && seen.agreement("films").is_of_all());
        let seen = view.seen_by(&of("a", "old"));
        let class = |name: &str| seen.members[seen.position(name).unwrap()].class;
        let agreement = seen.agreement("films");
        assert!(agreement.has(class("a")) && !agreement.has(class("b")) && seen.agreement("other").is_of_all());
    }

    #[test]
    fn a_view_is_bounded() {
        let named: Vec<_> = (0..MOST_NODES + 100).map(|number| node(&format!("n{number}"))).collect();
        let keys: Vec<_> = named.iter().map(|node| (node_key("/", &node.name, 1), node.to_json())).collect();
        let entries = keys.iter().map(|(key, value)| Entry { key, value: value.as_bytes(), created: 1 });
        let view = View::read("/", 1, entries);
        assert_eq!((view.nodes().len(), view.problem_count()), (MOST_NODES, 100));
        assert_eq!(view.problems().len(), MOST_PROBLEMS);
        assert!(view.nodes().iter().all(|node| view.node(node.name.as_str()) == Some(node)));
    }
}
