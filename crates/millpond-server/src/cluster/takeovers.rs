//! Live streams that a node has taken over from another one, which did not answer.
//!
//! The other node may only have paused. Then two nodes ask one source, and go on in one run. The one that took the stream over last counts: so
//! the paused node gives way, whatever the order of nodes is.

use super::{
    Cluster,
    entries::Entries,
    holders::{ASKED, MOST},
    registry::RegistryError,
};
use millpond_cluster::{NodeName, ObjectKey};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, MutexGuard, PoisonError},
};

/// Folder of the keys that tell when a node took streams over.
pub(super) const TOOK: &str = "took/";
/// Milliseconds for which a stream counts as taken over before this node has its source.
const OPENING: u64 = 60_000;
/// Most keys of nodes that are read after a pause.
const MOST_KEYS: usize = 10_000;

/// Times in milliseconds since the Unix epoch, by the texts of keys of streams.
pub(super) type Times = HashMap<String, u64>;

/// The streams that nodes have taken over.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Takeovers(HashMap<NodeName, Times>);

impl Takeovers {
    /// Reads those of the cluster's keys.
    pub(super) fn read(entries: &Entries, prefix: &str) -> Self {
        let below = format!("{prefix}{TOOK}");
        let mut all = HashMap::<NodeName, Times>::new();
        for pair in entries.below(below.as_bytes()) {
            let node = std::str::from_utf8(&pair.key).ok().and_then(|key| key.strip_prefix(&below)?.split('/').next());
            let Some((node, times)) = node.and_then(|node| Some((node.parse().ok()?, read(&pair.value)?))) else {
                tracing::debug!(key = %String::from_utf8_lossy(&pair.key), "a key of streams that were taken over can't be read");
                continue;
            };
            // Two runs of a node may have keys.
            all.entry(node).or_default().extend(times);
        }
        Self(all)
    }

    /// When a node took a stream over; 0 where it did not.
    fn at(&self, node: &NodeName, stream: &str) -> u64 {
        self.0.get(node).and_then(|times| times.get(stream)).copied().unwrap_or(0)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Reads the times of a node.
fn read(value: &[u8]) -> Option<Times> {
    if value.len() > MOST.1 {
        return None;
    }
    serde_json::from_slice::<Times>(value).ok().filter(|times| times.len() <= MOST.0)
}

impl Cluster {
    pub(super) fn taken(&self) -> MutexGuard<'_, Times> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that this node takes a stream over, because the node that had it does not answer. From now on it counts before that one.
    pub(crate) fn takes_over(&self, key: &ObjectKey) {
        let name = key.to_string();
        let nodes = self.asked.borrow().get(&name).cloned().unwrap_or_default();
        let before = nodes.iter().map(|node| self.took.borrow().at(node, &name)).max().unwrap_or(0);
        let now = self.time_of_takeovers().max(before.saturating_add(1));
        self.taken().insert(name, now);
    }

    fn time_of_takeovers(&self) -> u64 {
        u64::try_from(self.wall.runs.now().as_millis()).unwrap_or(u64::MAX)
    }

    /// Of nodes that ask the source of a stream, those that count: the one that took it over last, else all.
    pub(super) fn newest(&self, stream: &str, nodes: Vec<NodeName>) -> Vec<NodeName> {
        let took = self.took.borrow();
        if nodes.len() < 2 || (took.is_empty() && self.taken().is_empty()) {
            return nodes;
        }
        let at = |node: &NodeName| match node == self.name() {
            true => self.taken().get(stream).copied().unwrap_or(0),
            false => took.at(node, stream),
        };
        let newest = nodes.iter().map(at).max().unwrap_or(0);
        nodes.into_iter().filter(|node| at(node) == newest).collect()
    }

    /// Whether nodes have taken streams over that others may still have.
    pub(crate) fn has_takeovers(&self) -> bool {
        !self.took.borrow().is_empty()
    }

    /// Whether another node has taken a stream over, and has it.
    pub(crate) fn is_taken_over(&self, key: &ObjectKey) -> bool {
        let asking = self.asking(key);
        let name = key.to_string();
        !asking.contains(self.name()) && asking.iter().any(|node| self.took.borrow().at(node, &name) > 0)
    }

    /// The times of this node's streams, as they are told. Streams that it has no more are forgotten.
    pub(super) fn told_takeovers(&self, asked: &[String]) -> String {
        let (now, asked) = (self.time_of_takeovers(), asked.iter().take(MOST.0).collect::<HashSet<_>>());
        let mut taken = self.taken();
        taken.retain(|name, at| asked.contains(name) || now.saturating_sub(*at) < OPENING);
        let told: HashMap<_, _> = taken.iter().filter(|(name, _)| asked.contains(name)).collect();
        let text = serde_json::to_string(&told).unwrap_or_default();
        // Streams that are not told count by the order of nodes.
        if text.is_empty() || text.len() > MOST.1 { "{}".to_owned() } else { text }
    }

    /// Reads which nodes ask the sources of live streams, after a pause of this process.
    pub(super) async fn read_askers(&self) -> Result<(), RegistryError> {
        let mut pairs = Vec::new();
        for folder in [ASKED, TOOK] {
            let folder = format!("{}{folder}", self.settings.prefix).into_bytes();
            pairs.extend(self.registry.range(&folder, MOST_KEYS).await?.pairs);
        }
        let mut entries = Entries::new(&self.settings.prefix);
        entries.replace(pairs, 0);
        self.observe_askers(&entries);
        Ok(())
    }

    /// Takes over which streams nodes have taken over.
    pub(super) fn observe_takeovers(&self, entries: &Entries) {
        self.took.send_replace(Arc::new(Takeovers::read(entries, &self.settings.prefix)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_etcd::KeyValue;

    #[test]
    fn times_are_read_within_bounds() {
        let pair = |key: &str, value: &str| KeyValue {
            key: key.as_bytes().to_vec(),
            value: value.as_bytes().to_vec(),
            revision: 1,
            created: 1,
        };
        let mut entries = Entries::new("/m/");
        let many: Times = (0..=MOST.0).map(|n| (format!("cams/{n}"), 1)).collect();
        let pairs = [
            ("/m/took/a/1f", r#"{"cams/door":5}"#.to_owned()),
            ("/m/took/a/2f", r#"{"cams/gate":7}"#.to_owned()),
            ("/m/took/b/1", r#"["cams/door"]"#.to_owned()),
            ("/m/took/c/1", r#"{"cams/door":-1}"#.to_owned()),
            ("/m/took/d/1", serde_json::to_string(&many).unwrap()),
        ];
        entries.replace(pairs.iter().map(|(key, value)| pair(key, value)).collect(), 1);
        let all = Takeovers::read(&entries, "/m/");
        let at = |node: &str, stream: &str| all.at(&node.parse().unwrap(), stream);
        assert_eq!((at("a", "cams/door"), at("a", "cams/gate"), at("a", "cams/yard")), (5, 7, 0));
        assert_eq!((at("b", "cams/door"), at("c", "cams/door"), at("d", "cams/1")), (0, 0, 0));
        assert!(!all.is_empty() && Takeovers::read(&Entries::new("/m/"), "/m/").is_empty());
    }
}
