//! Live streams that run at one node: the other nodes send viewers there.
//!
//! A node writes two lists under its lease, while such streams run: those that are pushed to it (RTMP, ANNOUNCE, PUT, transport streams), and
//! those whose source it asks itself. The latter stay where they are when a node returns that would own them. A third list tells which of them it
//! has taken over from a node that did not answer.

use super::{Cluster, RegistryError, entries::Entries, takeovers::TOOK};
use millpond_cluster::{Answer, Candidate, NodeName, ObjectKey, Standing};
use millpond_etcd::{LeaseId, Operation, Transaction};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::time::sleep;

/// Interval between looks at the streams of this node.
const LOOK: Duration = Duration::from_secs(1);
/// Most names of a node, and most bytes of its value. Viewers of further streams must ask the node itself.
pub(super) const MOST: (usize, usize) = (512, 64 << 10);

/// Folder of the keys that list streams which are pushed, and of those that list streams whose source the node asks.
const PUSHED: &str = "live/";
pub(super) const ASKED: &str = "own/";

/// The nodes of each stream, by the text of its key, in the order of their names.
pub(super) type Holders = HashMap<String, Vec<NodeName>>;

/// The live streams that run at this node, as texts of their keys.
#[derive(Debug, Default)]
pub(crate) struct HeldStreams {
    /// Streams that are pushed to it.
    pub(crate) pushed: Vec<String>,
    /// Streams and channels whose source it asks itself.
    pub(crate) asked: Vec<String>,
}

/// Reads the names of a node's streams.
fn read(value: &[u8]) -> Option<Vec<String>> {
    if value.len() > MOST.1 {
        return None;
    }
    serde_json::from_slice::<Vec<String>>(value).ok().filter(|names| names.len() <= MOST.0)
}

/// Writes the names of a node's streams, as many as fit.
fn write(names: &[String]) -> String {
    let mut bytes = 2;
    let fits = |name: &&String| {
        // Each byte may need six as JSON.
        bytes += name.len() * 6 + 3;
        bytes <= MOST.1
    };
    let names: Vec<_> = names.iter().take(MOST.0).take_while(fits).collect();
    serde_json::to_string(&names).unwrap_or_else(|_| "[]".to_owned())
}

impl Cluster {
    /// Takes over the names of the nodes' streams.
    pub(super) fn observe_streams(&self, entries: &Entries) {
        self.pushed.send_replace(Arc::new(self.holders(entries, PUSHED)));
        self.observe_askers(entries);
    }

    /// Takes over which nodes ask the sources of live streams.
    pub(super) fn observe_askers(&self, entries: &Entries) {
        // A node that has taken a stream over must not count as one that has not.
        self.observe_takeovers(entries);
        self.asked.send_replace(Arc::new(self.holders(entries, ASKED)));
    }

    fn holders(&self, entries: &Entries, folder: &str) -> Holders {
        let below = format!("{}{folder}", self.settings.prefix);
        let mut holders = Holders::new();
        for pair in entries.below(below.as_bytes()) {
            let node = std::str::from_utf8(&pair.key).ok().and_then(|key| key.strip_prefix(&below)?.split('/').next());
            let Some((node, names)) = node.and_then(|node| Some((node.parse::<NodeName>().ok()?, read(&pair.value)?)))
            else {
                tracing::debug!(key = %String::from_utf8_lossy(&pair.key), "a key of a node's streams can't be read");
                continue;
            };
            for name in names {
                let nodes: &mut Vec<_> = holders.entry(name).or_default();
                // Two runs of a node may have keys.
                if nodes.last() != Some(&node) {
                    nodes.push(node.clone());
                }
            }
        }
        holders
    }

    /// Whether another node has a pushed stream.
    pub(crate) fn has_pushed(&self, key: &ObjectKey) -> bool {
        self.pushed.borrow().get(&key.to_string()).is_some_and(|nodes| nodes.first() != Some(self.name()))
    }

    /// The nodes that ask the source of a live stream themselves. Of several, one that has taken the stream over from the others is the only one.
    pub(super) fn asking(&self, key: &ObjectKey) -> Vec<NodeName> {
        self.asking_of(&key.to_string())
    }

    /// The same, by the text of the stream's key.
    pub(super) fn asking_of(&self, name: &str) -> Vec<NodeName> {
        let listed = self.asked.borrow().get(name).cloned().unwrap_or_default();
        // Whether this node asks the source itself, its own list tells earlier than etcd.
        let own = self.asks.borrow().contains(name).then(|| self.name().clone());
        self.newest(name, listed.into_iter().filter(|node| node != self.name()).chain(own).collect())
    }

    /// The node of a pushed stream, as an answer: the first by name. Empty where no node has it.
    pub(super) fn pushed_to(&self, key: &ObjectKey) -> Answer {
        let node = self.pushed.borrow().get(&key.to_string()).and_then(|nodes| nodes.first().cloned());
        let candidate = |name| {
            let (score, load, bound) = Default::default();
            Candidate { name, score, standing: Standing::Room, load, bound }
        };
        Answer { candidates: node.into_iter().map(candidate).collect(), compared: self.view().nodes().len() }
    }

    /// Tells the other nodes which streams run at this one. `read` lists them.
    pub(crate) async fn tell_streams(self: Arc<Self>, read: impl Fn() -> HeldStreams + Send) {
        let mut told = [None, None, None];
        loop {
            sleep(LOOK).await;
            let HeldStreams { pushed, asked } = read();
            self.asks.send_replace(asked.iter().cloned().collect());
            let lease = *self.bookings.lease().borrow();
            let Some(lease) = lease else { continue };
            // Nodes must know that a stream was taken over when they hear that this one asks its source.
            let lists = [(PUSHED, write(&pushed)), (TOOK, self.told_takeovers(&asked)), (ASKED, write(&asked))];
            for (told, (folder, list)) in told.iter_mut().zip(lists) {
                self.tell(told, folder, (lease, list)).await;
            }
        }
    }

    /// Writes a list, where it differs from the one that was told last.
    async fn tell(&self, told: &mut Option<(LeaseId, String)>, folder: &str, now: (LeaseId, String)) {
        // A node without streams needs no key.
        let is_known = told.as_ref().map_or(matches!(&*now.1, "[]" | "{}"), |told| *told == now);
        if is_known {
            return;
        }
        match self.put_streams(folder, &now).await {
            Ok(()) => *told = Some(now),
            Err(error) => {
                tracing::debug!(%error, folder, "the names of this node's streams are not written");
                self.metrics.failures.inc();
            }
        }
    }

    async fn put_streams(&self, folder: &str, (lease, value): &(LeaseId, String)) -> Result<(), RegistryError> {
        let key = format!("{}{folder}{}/{:x}", self.settings.prefix, self.name(), self.incarnation).into_bytes();
        let put = Operation::Put { key, value: value.clone().into_bytes(), lease: Some(*lease) };
        self.metrics.puts.inc();
        self.registry.commit(&Transaction { conditions: Vec::new(), changes: vec![put] }).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded() {
        let names: Vec<_> = (0..2000).map(|n| format!("cams/{n}")).collect();
        assert_eq!(read(write(&names).as_bytes()).unwrap(), names[..MOST.0]);
        let long = vec!["x".repeat(5000); 10];
        let kept = read(write(&long).as_bytes()).unwrap();
        assert!(!kept.is_empty() && kept.len() < 10);
        assert!(read(b"{").is_none() && read(&[b' '; MOST.1 + 1]).is_none());
    }
}
