//! The view: the nodes of a cluster, as one of them knows them.

use super::{Node, NodeError, NodeName, Role, hash};

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
    problems: Vec<Problem>,
    problem_count: usize,
}

/// Facts of a node in a view beside its registration.
#[derive(Clone, Debug)]
struct Member {
    incarnation: u64,
    created: u64,
    hash: u64,
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
    Value(std::sync::Arc<NodeError>),
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
    #[error("the registration is not signed with the cluster's secret")]
    Unsigned,
    /// There are too many nodes.
    #[error("more than {MOST_NODES} nodes")]
    TooMany,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.key.escape_debug(), self.kind)
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
        self.report(key, ProblemKind::Unsigned);
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
        view.with_storages()
    }

    /// A view of registrations that come from elsewhere than etcd. Of nodes with one name the last counts.
    pub fn of(revision: u64, nodes: impl IntoIterator<Item = Node>) -> Self {
        let nodes: std::collections::BTreeMap<_, _> =
            nodes.into_iter().map(|node| (node.name.clone(), node)).take(MOST_NODES).collect();
        let nodes: Vec<_> = nodes.into_values().collect();
        let members = nodes.iter().map(|node| Member::new(node, 0, revision)).collect();
        Self { revision, members, nodes, ..Self::default() }.with_storages()
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

    /// The nodes that new work of a role may be given to, by name.
    pub fn taking(&self, role: Role) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(move |node| node.takes(role))
    }

    /// Entries that are no nodes of the view; the first of them where they are many.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Number of all entries that are no nodes of the view.
    pub fn problem_count(&self) -> usize {
        self.problem_count
    }

    /// The nodes that new work of a role may be given to, each with the hash of its name.
    pub(crate) fn hashed(&self, role: Role) -> impl Iterator<Item = (u64, &Node)> {
        let hashes = self.members.iter().map(|member| member.hash);
        hashes.zip(&self.nodes).filter(move |(_, node)| node.takes(role))
    }

    /// The nodes that may be homes of slices.
    pub(crate) fn storages(&self) -> &[Storage] {
        &self.storages
    }

    fn with_storages(mut self) -> Self {
        let all = self.members.iter().zip(&self.nodes).enumerate();
        let storages = all.filter(|(_, (_, node))| node.takes(Role::Storage)).map(|(place, (member, node))| Storage {
            hash: member.hash,
            weight: node.capacity.bps() as f64,
            place,
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
        Self { incarnation, created, hash: hash::bytes(node.name.as_str().as_bytes()) }
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
    use crate::Bitrate;

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
