//! The registry of a cluster without a service: this node's copy of all keys. Other nodes are asked for what changed ([`super::peers`]).

use super::{RegistryError, askers::Askers, own_addresses::OwnAddresses, peers::Peers, static_changes::StaticChanges};
use crate::minutely::Minutely;
use millpond_cluster::{
    GossipChange, GossipCondition, GossipError, GossipEvent, GossipLease, GossipMap, GossipMoment, GossipOrder,
    GossipPair, GossipReply, GossipRun, GossipStamp, NodeName,
};
use millpond_etcd::{Compare, KeyEvent, KeyValue, LeaseId, Operation, Range, Revision, Transaction};
use std::{
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

/// In place of the id of etcd's members.
const NAME: &str = "cluster-nodes";
/// Time for which a reading waits for the other nodes: those that answer do so within a round trip.
const ROUND: Duration = Duration::from_secs(2);
/// Time for which their answers count as new.
const FRESH: Duration = Duration::from_millis(250);
/// Time of a round after which the log tells which nodes it waits for.
const TOLD: Duration = Duration::from_millis(300);

/// This node's copy of all keys. Its clones are one.
#[derive(Clone, Debug)]
pub(in super::super) struct StaticRegistry(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// A lock, held for a look or a change.
    map: Mutex<GossipMap>,
    /// Grows with each change, and each renewal of an own lease.
    changed: watch::Sender<u64>,
    peers: Peers,
    /// Runs that ask this node. A lock, held for a look or a change.
    askers: Mutex<Askers>,
    /// Addresses at which this node is asked. A lock, held for a look or a change.
    own: Mutex<OwnAddresses>,
    /// The message that a node of the cluster is refused.
    refusals: Minutely,
    /// The message that a reading waits for other nodes.
    waits: Minutely,
    /// Questions that this node has asked.
    questions: AtomicU64,
    /// Time at which the last round ended.
    heard: Mutex<Option<Duration>>,
    start: Instant,
}

impl StaticRegistry {
    /// An empty copy of a run of a node. `has_peers` tells whether other nodes will be asked.
    pub(in super::super) fn new(node: NodeName, incarnation: u64, prefix: &str, has_peers: bool) -> Self {
        let order = GossipOrder { folder: format!("{prefix}purge/"), except: format!("{prefix}purge/floor") };
        let map = Mutex::new(GossipMap::new(GossipRun { node, incarnation }, prefix, order));
        let (changed, peers, start) = (watch::Sender::new(0), Peers::new(has_peers), Instant::now());
        let (askers, own, refusals, waits, questions, heard) = Default::default();
        Self(Arc::new(Shared { map, changed, peers, askers, own, refusals, waits, questions, heard, start }))
    }

    /// The other nodes.
    pub(super) fn peers(&self) -> &Peers {
        &self.0.peers
    }

    /// The runs that ask this node.
    pub(super) fn askers(&self) -> MutexGuard<'_, Askers> {
        self.0.askers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The addresses at which this node is asked.
    pub(in super::super) fn own(&self) -> MutexGuard<'_, OwnAddresses> {
        self.0.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The message that a node of the cluster is refused.
    pub(super) fn refusals(&self) -> &Minutely {
        &self.0.refusals
    }

    /// The number of this node's next question.
    pub(super) fn next_question(&self) -> u64 {
        self.0.questions.fetch_add(1, Ordering::Relaxed)
    }

    /// Time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.0.start.elapsed()
    }

    /// Wakes with each change, and each renewal of an own lease.
    pub(super) fn changed(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    /// Waits until the other nodes have told what they know now, as far as they answer.
    async fn hear(&self) {
        let began = self.elapsed();
        let heard = || self.0.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = heard().is_some_and(|heard| began < heard + FRESH);
        if is_fresh {
            return;
        }
        let mut round = pin!(self.0.peers.round(began));
        if timeout(TOLD, &mut round).await.is_err() {
            let is_told = self.0.waits.is_due();
            if is_told {
                let silent = self.0.peers.silent(began);
                tracing::info!(silent, most = ?ROUND, "this node waits for answers of cluster-nodes");
            }
            if timeout(ROUND - TOLD, round).await.is_err() && is_told {
                let silent = self.0.peers.silent(began);
                tracing::info!(silent, "this node goes on without these answers of cluster-nodes");
            }
        }
        *heard() = Some(self.elapsed());
    }

    /// Reads the keys of a prefix, once the other nodes have told what they know.
    pub(super) async fn range(&self, prefix: &[u8], most: usize) -> Result<Range, RegistryError> {
        let prefix = text(prefix.to_vec())?;
        self.hear().await;
        self.tick();
        let mut map = self.map();
        let (pairs, is_cut) = map.range(&prefix, most);
        let pairs = pairs.into_iter().map(pair).collect();
        Ok(Range { pairs, revision: revision(map.sequence()), is_cut, cluster: NAME.to_owned() })
    }

    /// Makes changes if all conditions hold in this copy.
    pub(super) fn commit_at(&self, transaction: &Transaction) -> Result<Option<Revision>, RegistryError> {
        let conditions: Vec<_> = transaction.conditions.iter().map(condition).collect::<Result<_, _>>()?;
        let changes = transaction.changes.iter().map(change).collect::<Result<_, _>>()?;
        let stamp = self.map().commit(&conditions, changes, self.now())?;
        self.tell();
        Ok(stamp.map(GossipStamp::number))
    }

    /// Begins a lease.
    pub(super) fn grant(&self, ttl: Duration) -> Result<(LeaseId, Duration), RegistryError> {
        let (number, ttl) = self.map().grant(ttl, self.now())?;
        self.tell();
        Ok((LeaseId(revision(number)), ttl))
    }

    /// Renews a lease.
    pub(super) fn keep_alive(&self, LeaseId(id): LeaseId) -> Option<Duration> {
        let ttl = self.map().keep_alive(number(id), self.now());
        self.tell();
        ttl
    }

    /// Ends a lease.
    pub(super) fn revoke(&self, LeaseId(id): LeaseId) -> Result<(), RegistryError> {
        self.map().revoke(number(id), self.now())?;
        self.tell();
        Ok(())
    }

    /// Follows the keys of a prefix.
    pub(super) fn watch(&self, prefix: &[u8], from: Revision) -> Result<StaticChanges, RegistryError> {
        Ok(StaticChanges::new(self.clone(), text(prefix.to_vec())?, number(from)))
    }

    /// The changes of keys with a prefix from a number on, and the number of the last one.
    pub(super) fn changes(&self, prefix: &str, from: u64) -> Result<(Vec<KeyEvent>, u64), RegistryError> {
        let mut map = self.map();
        let at = map.sequence();
        let event = |event| match event {
            GossipEvent::Put(put) => KeyEvent::Put(pair(put)),
            GossipEvent::Delete(key) => KeyEvent::Delete { key: key.into_bytes(), revision: revision(at) },
        };
        Ok((map.changes(prefix, from)?.into_iter().map(event).collect(), at))
    }

    /// Ends leases whose time is over.
    pub(super) fn tick(&self) {
        if self.map().tick(self.now()) {
            self.tell();
        }
    }

    /// The reply to the question of a peer.
    pub(in super::super) fn reply(&self, since: u64) -> GossipReply {
        self.map().reply(since)
    }

    /// Number of the last change.
    pub(super) fn sequence(&self) -> u64 {
        self.map().sequence()
    }

    /// Number of times that replies of other nodes must be read from the beginning.
    pub(super) fn restarts(&self) -> u64 {
        self.map().restarts()
    }

    /// Notes that a lease was ended.
    pub(super) fn ended(&self, lease: GossipLease) {
        self.map().ended(lease, self.now());
        self.tell();
    }

    /// Takes over what another node tells.
    pub(in super::super) fn merge(&self, reply: GossipReply) {
        let changes = {
            let mut map = self.map();
            let before = map.sequence();
            map.merge(reply, self.now());
            map.sequence() != before
        };
        if changes {
            self.tell();
        }
    }

    fn tell(&self) {
        self.0.changed.send_modify(|changed| *changed += 1);
    }

    fn map(&self) -> MutexGuard<'_, GossipMap> {
        self.0.map.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> GossipMoment {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        GossipMoment { wall, elapsed: self.elapsed() }
    }
}

fn text(bytes: Vec<u8>) -> Result<String, GossipError> {
    String::from_utf8(bytes).map_err(|_| GossipError::NotText)
}

fn condition(compare: &Compare) -> Result<GossipCondition, GossipError> {
    Ok(match compare {
        Compare::Absent(key) => GossipCondition::Absent(text(key.clone())?),
        Compare::NoneBelow(prefix) => GossipCondition::NoneBelow(text(prefix.clone())?),
        Compare::Unchanged(key, revision) => {
            let stamp = GossipStamp::from_number(*revision).unwrap_or_default();
            GossipCondition::Unchanged(text(key.clone())?, stamp)
        }
    })
}

fn change(operation: &Operation) -> Result<GossipChange, GossipError> {
    Ok(match operation {
        Operation::Put { key, value, lease } => GossipChange::Put {
            key: text(key.clone())?,
            value: text(value.clone())?.into(),
            lease: lease.map(|LeaseId(id)| number(id)),
        },
        Operation::Delete(key) => GossipChange::Delete(text(key.clone())?),
    })
}

fn pair(pair: GossipPair) -> KeyValue {
    KeyValue {
        key: pair.key.into_bytes(),
        value: pair.value.as_bytes().to_vec(),
        revision: pair.revision.number(),
        created: pair.created.number(),
    }
}

fn revision(number: u64) -> Revision {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn number(revision: Revision) -> u64 {
    u64::try_from(revision).unwrap_or(0)
}
