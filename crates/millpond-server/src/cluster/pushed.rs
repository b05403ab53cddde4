//! Streams that are pushed to one node (RTMP, ANNOUNCE, PUT, transport streams): the other nodes send viewers there.
//!
//! A node writes the names of such streams, while they run, as one key under its lease.

use super::{Cluster, entries::Entries};
use millpond_cluster::{Answer, Candidate, NodeName, ObjectKey, Standing};
use millpond_etcd::{EtcdError, LeaseId, Operation, Transaction};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::time::sleep;

/// Interval between looks at the streams of this node.
const LOOK: Duration = Duration::from_secs(1);
/// Most names of a node, and most bytes of its value. Viewers of further streams must ask the node itself.
const MOST: (usize, usize) = (512, 64 << 10);

/// The node of each pushed stream, by the text of its key.
pub(super) type Pushed = HashMap<String, NodeName>;

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
    /// Takes over the names of the other nodes' streams. Where two nodes have one, the first by name counts.
    pub(super) fn observe_pushed(&self, entries: &Entries) {
        let below = format!("{}live/", self.settings.prefix);
        let mut pushed = Pushed::new();
        for pair in entries.below(below.as_bytes()) {
            let node = std::str::from_utf8(&pair.key).ok().and_then(|key| key.strip_prefix(&below)?.split('/').next());
            let Some((node, names)) = node.and_then(|node| Some((node.parse::<NodeName>().ok()?, read(&pair.value)?)))
            else {
                tracing::debug!(key = %String::from_utf8_lossy(&pair.key), "a key of pushed streams can't be read");
                continue;
            };
            for name in names {
                pushed.entry(name).or_insert_with(|| node.clone());
            }
        }
        self.pushed.send_replace(Arc::new(pushed));
    }

    /// Whether another node has a pushed stream.
    pub(crate) fn has_pushed(&self, key: &ObjectKey) -> bool {
        self.pushed.borrow().get(&key.to_string()).is_some_and(|node| node != self.name())
    }

    /// The node of a pushed stream, as an answer. Empty where no node has it.
    pub(super) fn pushed_to(&self, key: &ObjectKey) -> Answer {
        let node = self.pushed.borrow().get(&key.to_string()).cloned();
        let candidate = |name| {
            let (score, load, bound) = Default::default();
            Candidate { name, score, standing: Standing::Room, load, bound }
        };
        Answer { candidates: node.into_iter().map(candidate).collect(), compared: self.view().nodes().len() }
    }

    /// Tells the other nodes which streams are pushed to this one. `read` lists the texts of their keys.
    pub(crate) async fn tell_pushed(self: Arc<Self>, read: impl Fn() -> Vec<String> + Send) {
        let mut told: Option<(LeaseId, String)> = None;
        loop {
            sleep(LOOK).await;
            let lease = *self.bookings.lease().borrow();
            let Some(lease) = lease else { continue };
            let now = (lease, write(&read()));
            // A node without streams needs no key.
            let is_known = told.as_ref().map_or(now.1 == "[]", |told| *told == now);
            if is_known {
                continue;
            }
            match self.put_pushed(&now).await {
                Ok(()) => told = Some(now),
                Err(error) => {
                    tracing::debug!(%error, "the names of pushed streams are not written");
                    self.metrics.failures.inc();
                }
            }
        }
    }

    async fn put_pushed(&self, (lease, value): &(LeaseId, String)) -> Result<(), EtcdError> {
        let key = format!("{}live/{}/{:x}", self.settings.prefix, self.name(), self.incarnation).into_bytes();
        let put = Operation::Put { key, value: value.clone().into_bytes(), lease: Some(*lease) };
        self.metrics.puts.inc();
        self.client.commit(&Transaction { conditions: Vec::new(), changes: vec![put] }).await.map(drop)
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
