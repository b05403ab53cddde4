//! etcd's semantics in memory: revisions, transactions, leases, watches and compaction, behind a network that is late and loses messages.

use super::super::registry::RegistryError;
use millpond_etcd::{Compare, EtcdError, KeyEvent, KeyValue, LeaseId, Operation, Range, Revision, Transaction};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

/// Time limit of a request, as the client of etcd has it.
const LIMIT: Duration = Duration::from_secs(2);
/// Changes that a watch can still be told of.
const HISTORY: usize = 2000;

/// A fault of the registry itself, which the invariants must find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mutant {
    /// None: it does as etcd does.
    #[default]
    None,
    /// Transactions are carried out whatever their conditions are.
    ForgetsConditions,
    /// Leases never end.
    ForgetsLeases,
    /// Watches leave out some changes, and say nothing.
    LosesChanges,
    /// A lease ends, and its keys stay.
    KeepsKeys,
    /// Keys of purges are deleted.
    LosesPurges,
}

/// The keys of an etcd.
#[derive(Debug, Default)]
pub(super) struct Keys {
    revision: Revision,
    all: BTreeMap<Vec<u8>, (KeyValue, Option<LeaseId>)>,
    /// Time to live of each lease, and its end.
    leases: BTreeMap<i64, (Duration, Duration)>,
    last_lease: i64,
    changes: Vec<KeyEvent>,
    compacted: Revision,
    mutant: Mutant,
}

fn revision_of(event: &KeyEvent) -> Revision {
    match event {
        KeyEvent::Put(pair) => pair.revision,
        KeyEvent::Delete { revision, .. } => *revision,
    }
}

impl Keys {
    /// The values below a prefix.
    pub(super) fn below(&self, prefix: &[u8]) -> Vec<KeyValue> {
        let all = self.all.range(prefix.to_vec()..).take_while(|(key, _)| key.starts_with(prefix));
        all.map(|(_, (pair, _))| pair.clone()).collect()
    }

    fn holds(&self, condition: &Compare) -> bool {
        match condition {
            Compare::Absent(key) => !self.all.contains_key(key),
            Compare::NoneBelow(prefix) => self.below(prefix).is_empty(),
            Compare::Unchanged(key, revision) => self.all.get(key).map_or(0, |(pair, _)| pair.revision) == *revision,
        }
    }

    fn commit(&mut self, transaction: &Transaction) -> Result<Option<Revision>, EtcdError> {
        let holds = transaction.conditions.iter().all(|condition| self.holds(condition));
        if !holds && self.mutant != Mutant::ForgetsConditions {
            return Ok(None);
        }
        for change in &transaction.changes {
            if let Operation::Put { lease: Some(LeaseId(id)), .. } = change
                && !self.leases.contains_key(id)
            {
                let message = "requested lease not found".to_owned();
                return Err(EtcdError::Refused {
                    member: "simulated".to_owned(),
                    code: millpond_etcd::code::NOT_FOUND,
                    message,
                });
            }
        }
        self.revision += 1;
        for change in &transaction.changes {
            match change {
                Operation::Put { key, value, lease } => {
                    let created = self.all.get(key).map_or(self.revision, |(pair, _)| pair.created);
                    let pair = KeyValue { key: key.clone(), value: value.clone(), revision: self.revision, created };
                    self.changes.push(KeyEvent::Put(pair.clone()));
                    self.all.insert(key.clone(), (pair, *lease));
                }
                Operation::Delete(key) => self.delete(key),
            }
        }
        Ok(Some(self.revision))
    }

    fn delete(&mut self, key: &[u8]) {
        if self.all.remove(key).is_some() {
            self.changes.push(KeyEvent::Delete { key: key.to_vec(), revision: self.revision });
        }
    }

    fn end(&mut self, id: i64) {
        self.leases.remove(&id);
        if self.mutant == Mutant::KeepsKeys {
            return;
        }
        let of_lease = |(_, lease): &(KeyValue, Option<LeaseId>)| *lease == Some(LeaseId(id));
        let keys: Vec<_> = self.all.iter().filter(|(_, entry)| of_lease(entry)).map(|(key, _)| key.clone()).collect();
        if !keys.is_empty() {
            self.revision += 1;
        }
        keys.iter().for_each(|key| self.delete(key));
    }

    /// Ends the leases that are over.
    fn expire(&mut self, now: Duration) {
        if self.mutant == Mutant::ForgetsLeases {
            return;
        }
        let over: Vec<_> = self.leases.iter().filter(|(_, (_, end))| *end <= now).map(|(id, _)| *id).collect();
        over.into_iter().for_each(|id| self.end(id));
    }

    fn compact(&mut self, kept: usize) {
        let excess = self.changes.len().saturating_sub(kept);
        for event in self.changes.drain(..excess) {
            self.compacted = self.compacted.max(revision_of(&event));
        }
    }
}

/// An etcd that all nodes share.
#[derive(Clone, Debug)]
pub(super) struct Store {
    keys: Arc<Mutex<Keys>>,
    changed: Arc<Notify>,
    /// Moment until which no member answers.
    down: Arc<Mutex<Instant>>,
    began: Instant,
}

impl Store {
    pub(super) fn new(mutant: Mutant) -> Self {
        let keys = Arc::new(Mutex::new(Keys { mutant, ..Keys::default() }));
        let began = Instant::now();
        Self { keys, changed: Arc::default(), down: Arc::new(Mutex::new(began)), began }
    }

    pub(super) fn keys(&self) -> MutexGuard<'_, Keys> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.expire(self.began.elapsed());
        keys
    }

    /// Ends leases, and wakes the watches. To be called from time to time.
    pub(super) fn tick(&self) {
        self.keys().compact(HISTORY);
        self.changed.notify_waiters();
    }

    /// Forgets the changes so far: watches that are behind must begin anew.
    pub(super) fn compact(&self) {
        self.keys().compact(0);
    }

    /// Answers nobody for some time.
    pub(super) fn fails_for(&self, time: Duration) {
        *self.down.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + time;
    }

    pub(super) fn is_down(&self) -> bool {
        Instant::now() < *self.down.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes the keys of purges, where that is the mutant.
    pub(super) fn mutate(&self) {
        let mut keys = self.keys();
        if keys.mutant == Mutant::LosesPurges {
            keys.revision += 1;
            let purges: Vec<_> = keys.all.keys().filter(|key| key.starts_with(b"/m/purge/")).cloned().collect();
            purges.iter().for_each(|key| keys.delete(key));
        }
    }
}

/// The way from a node to etcd.
#[derive(Debug, Default)]
pub(super) struct Way {
    /// Longest delay of a message.
    pub(super) delay: Duration,
    /// Whether nothing passes.
    pub(super) is_cut: bool,
    /// Share of the messages that are lost.
    pub(super) loss: f64,
}

/// The client of a node.
#[derive(Clone, Debug)]
pub(in super::super) struct SimulatedEtcd {
    pub(super) store: Store,
    pub(super) way: Arc<Mutex<Way>>,
}

impl SimulatedEtcd {
    fn timed_out() -> RegistryError {
        EtcdError::TimedOut { member: "simulated".to_owned(), limit: LIMIT }.into()
    }

    /// The delay of a message; `None` where it is lost.
    fn delay(&self) -> Option<Duration> {
        let way = self.way.lock().unwrap_or_else(PoisonError::into_inner);
        let is_lost = way.is_cut || self.store.is_down() || fastrand::f64() < way.loss;
        (!is_lost).then(|| way.delay.mul_f64(fastrand::f64()))
    }

    /// Carries a request to etcd and its reply back. Either may be lost.
    async fn ask<T>(&self, request: impl FnOnce(&mut Keys, Duration) -> T) -> Result<T, RegistryError> {
        let Some(delay) = self.delay() else {
            sleep(LIMIT).await;
            return Err(Self::timed_out());
        };
        sleep(delay).await;
        let reply = {
            let now = self.store.began.elapsed();
            request(&mut self.store.keys(), now)
        };
        self.store.changed.notify_waiters();
        let Some(delay) = self.delay() else {
            sleep(LIMIT).await;
            return Err(Self::timed_out());
        };
        sleep(delay).await;
        Ok(reply)
    }

    pub(in super::super) async fn range(&self, prefix: &[u8], most: usize) -> Result<Range, RegistryError> {
        self.ask(|keys, _| {
            let mut pairs = keys.below(prefix);
            let is_cut = pairs.len() > most;
            pairs.truncate(most);
            Range { pairs, revision: keys.revision, is_cut, cluster: "1".to_owned() }
        })
        .await
    }

    pub(in super::super) async fn commit_at(
        &self,
        transaction: &Transaction,
    ) -> Result<Option<Revision>, RegistryError> {
        Ok(self.ask(|keys, _| keys.commit(transaction)).await??)
    }

    pub(in super::super) async fn grant(&self, ttl: Duration) -> Result<(LeaseId, Duration), RegistryError> {
        let grant = |keys: &mut Keys, now: Duration| {
            keys.last_lease += 1;
            keys.leases.insert(keys.last_lease, (ttl, now + ttl));
            (LeaseId(keys.last_lease), ttl)
        };
        self.ask(grant).await
    }

    pub(in super::super) async fn keep_alive(&self, LeaseId(id): LeaseId) -> Result<Option<Duration>, RegistryError> {
        let renew = |keys: &mut Keys, now: Duration| {
            let (ttl, end) = keys.leases.get_mut(&id)?;
            *end = now + *ttl;
            Some(*ttl)
        };
        self.ask(renew).await
    }

    pub(in super::super) async fn revoke(&self, LeaseId(id): LeaseId) -> Result<(), RegistryError> {
        self.ask(|keys, _| keys.end(id)).await
    }

    pub(in super::super) async fn watch(&self, prefix: &[u8], from: Revision) -> Result<SimulatedWatch, RegistryError> {
        self.ask(|_, _| {}).await?;
        Ok(SimulatedWatch { etcd: self.clone(), prefix: prefix.to_vec(), from })
    }
}

/// A watch of a node.
#[derive(Debug)]
pub(in super::super) struct SimulatedWatch {
    etcd: SimulatedEtcd,
    prefix: Vec<u8>,
    from: Revision,
}

impl SimulatedWatch {
    /// Waits for the next changes. While the way is cut there are none, and no error either, as where a member hangs.
    pub(in super::super) async fn next(&mut self) -> Result<(Vec<KeyEvent>, Revision), RegistryError> {
        loop {
            let changed = self.etcd.store.changed.clone();
            let changed = changed.notified();
            if let Some(delay) = self.etcd.delay() {
                sleep(delay).await;
                let keys = self.etcd.store.keys();
                if self.from <= keys.compacted {
                    let (member, revision) = ("simulated".to_owned(), keys.compacted + 1);
                    return Err(EtcdError::Compacted { member, revision }.into());
                }
                let is_new = |event: &&KeyEvent| revision_of(event) >= self.from;
                let is_below = |event: &&KeyEvent| match event {
                    KeyEvent::Put(pair) => pair.key.starts_with(&self.prefix),
                    KeyEvent::Delete { key, .. } => key.starts_with(&self.prefix),
                };
                let mut events: Vec<_> = keys.changes.iter().filter(is_new).filter(is_below).cloned().collect();
                let (at, is_loser) = (keys.revision, keys.mutant == Mutant::LosesChanges);
                drop(keys);
                if !events.is_empty() {
                    if is_loser && fastrand::u8(..) < 64 {
                        events.pop();
                    }
                    self.from = at + 1;
                    return Ok((events, at));
                }
            }
            changed.await;
        }
    }
}
