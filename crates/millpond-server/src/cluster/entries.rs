//! The keys of a cluster in etcd, as they were read last. Pure.

use super::secret::ClusterSecret;
use millpond_cluster::{Entry, NodeName, View};
use millpond_etcd::{KeyEvent, KeyValue, Revision};
use std::collections::BTreeMap;

/// Most bytes of keys and values that are kept: strangers may write under the prefix.
const MOST_BYTES: usize = 32 << 20;

/// The key by which an operator asks a node to drain.
pub(super) fn drain_key(prefix: &str, node: &NodeName) -> Vec<u8> {
    format!("{prefix}drain/{node}").into_bytes()
}

/// Folders of a cluster's keys, the most important first. Keys that strangers write elsewhere below the prefix do not count.
const FOLDERS: [&str; 7] = ["nodes/", "drain/", "purge/", "live/", "own/", "took/", "book/"];

/// The beginnings of a cluster's keys.
pub(super) fn folders(prefix: &str) -> [Vec<u8>; FOLDERS.len()] {
    FOLDERS.map(|folder| format!("{prefix}{folder}").into_bytes())
}

/// The keys of a cluster.
#[derive(Debug)]
pub(super) struct Entries {
    folders: [Vec<u8>; FOLDERS.len()],
    all: BTreeMap<Vec<u8>, KeyValue>,
    bytes: usize,
    revision: Revision,
}

impl Entries {
    /// No keys so far.
    pub(super) fn new(prefix: &str) -> Self {
        Self { folders: folders(prefix), all: BTreeMap::new(), bytes: 0, revision: 0 }
    }

    /// Replaces all keys; tells whether any differs.
    pub(super) fn replace(&mut self, pairs: Vec<KeyValue>, revision: Revision) -> bool {
        let old = std::mem::take(&mut self.all);
        self.bytes = 0;
        pairs.into_iter().for_each(|pair| self.put(pair));
        self.revision = revision;
        self.all != old
    }

    /// Applies changes.
    pub(super) fn apply(&mut self, events: Vec<KeyEvent>, revision: Revision) {
        for event in events {
            match event {
                KeyEvent::Put(pair) => self.put(pair),
                KeyEvent::Delete { key, .. } => self.remove(&key),
            }
        }
        self.revision = self.revision.max(revision);
    }

    fn put(&mut self, pair: KeyValue) {
        self.remove(&pair.key);
        let size = pair.key.len() + pair.value.len();
        let is_ours = self.folders.iter().any(|folder| pair.key.starts_with(folder));
        if is_ours && self.bytes + size <= MOST_BYTES {
            self.bytes += size;
            self.all.insert(pair.key.clone(), pair);
        }
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some(old) = self.all.remove(key) {
            self.bytes -= old.key.len() + old.value.len();
        }
    }

    /// Revision of the last change that was read.
    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    /// Whether an operator has asked a node to drain.
    pub(super) fn drains(&self, prefix: &str, node: &NodeName) -> bool {
        self.all.contains_key(&drain_key(prefix, node))
    }

    /// The keys below a prefix.
    pub(super) fn below<'a>(&'a self, prefix: &'a [u8]) -> impl Iterator<Item = &'a KeyValue> {
        self.all.range(prefix.to_vec()..).map(|(_, pair)| pair).take_while(move |pair| pair.key.starts_with(prefix))
    }

    /// The nodes. With a secret, only registrations that it signed count.
    pub(super) fn view(&self, prefix: &str, secret: Option<&ClusterSecret>) -> View {
        let nodes = format!("{prefix}nodes/").into_bytes();
        let is_trusted = |pair: &KeyValue| secret.is_none_or(|secret| secret.has_signed(&pair.key, &pair.value));
        let (trusted, others): (Vec<_>, Vec<_>) = self.below(&nodes).partition(|pair| is_trusted(pair));
        let entries = trusted.into_iter().map(|pair| Entry {
            key: text(&pair.key),
            value: &pair.value,
            created: u64::try_from(pair.created).unwrap_or(0),
        });
        let mut view = View::read(prefix, u64::try_from(self.revision).unwrap_or(0), entries);
        others.iter().for_each(|pair| view.distrust(text(&pair.key)));
        view
    }
}

/// A key as text. A key that is no text is none of ours; the view says so.
fn text(key: &[u8]) -> &str {
    std::str::from_utf8(key).unwrap_or("a key that is no text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_cluster::{Bitrate, Node, node_key};

    fn pair(key: &str, value: &str, revision: Revision) -> KeyValue {
        KeyValue { key: key.as_bytes().to_vec(), value: value.as_bytes().to_vec(), revision, created: revision }
    }

    #[test]
    fn changes_make_the_view_that_a_new_reading_makes() {
        let node = |name: &str| Node::new(name.parse().unwrap(), Bitrate::from_mbps(10));
        let put = |name: &str, revision| pair(&node_key("/m/", &node(name).name, 1), &node(name).to_json(), revision);
        let mut entries = Entries::new("/m/");
        assert!(entries.replace(vec![put("a", 1), pair("/m/nodes/garbage", "{", 2), pair("/m/drain/b", "{}", 2)], 2));
        let view = entries.view("/m/", None);
        assert_eq!((view.nodes().len(), view.problem_count(), view.revision()), (1, 1, 2));
        assert!(entries.drains("/m/", &node("b").name) && !entries.drains("/m/", &node("a").name));
        let key = node_key("/m/", &node("a").name, 1).into_bytes();
        entries.apply(vec![KeyEvent::Put(put("b", 3)), KeyEvent::Delete { key, revision: 3 }], 3);
        let view = entries.view("/m/", None);
        assert_eq!((view.nodes(), view.revision()), (&[node("b")][..], 3));
        assert!(!entries.replace(vec![put("b", 3), pair("/m/nodes/garbage", "{", 2), pair("/m/drain/b", "{}", 2)], 9));
    }

    #[test]
    fn what_strangers_write_is_bounded() {
        let mut entries = Entries::new("/m/");
        let long = "x".repeat(1 << 20);
        entries.replace((0..40).map(|n| pair(&format!("/m/nodes/{n}"), &long, n)).collect(), 40);
        assert!(entries.bytes <= MOST_BYTES && entries.all.len() == 31);
        entries.apply(vec![KeyEvent::Put(pair("/m/nodes/0", "y", 41))], 41);
        assert_eq!(entries.all.len(), 31);
        entries.apply(vec![KeyEvent::Put(pair("/m/other/0", "y", 42))], 42);
        assert_eq!(entries.all.len(), 31);
    }

    #[test]
    fn with_a_secret_only_signed_registrations_are_nodes() {
        let node = |name: &str| Node::new(name.parse().unwrap(), Bitrate::from_mbps(10));
        let secret = ClusterSecret::new(b"a secret of thirty-two bytes....").unwrap();
        let other = ClusterSecret::new(b"another secret of 32 bytes......").unwrap();
        let key = |name: &str| node_key("/m/", &node(name).name, 1);
        let signed =
            |by: &ClusterSecret, key: &str, name: &str| by.signed(key.as_bytes(), &node(name).to_json()).unwrap();
        let moved = signed(&secret, &key("a"), "a").replace("\"draining\":false", "\"draining\":true");
        let mut entries = Entries::new("/m/");
        let pairs = vec![
            pair(&key("a"), &moved, 2),
            pair(&key("b"), &signed(&secret, &key("b"), "b"), 2),
            pair(&key("c"), &node("c").to_json(), 2),
            pair(&key("d"), &signed(&other, &key("d"), "d"), 2),
            pair(&key("e"), &signed(&secret, &key("b"), "e"), 2),
        ];
        entries.replace(pairs, 2);
        let view = entries.view("/m/", Some(&secret));
        assert_eq!((view.nodes(), view.problem_count()), (&[node("b")][..], 4));
        assert!(view.problems().iter().all(|problem| problem.to_string().contains("not signed")));
        assert_eq!(entries.view("/m/", None).nodes().len(), 5, "without a secret they are all nodes");
    }
}
