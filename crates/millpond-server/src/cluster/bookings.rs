//! Admission for the whole playback: a stream starts here only if this node and its storage have its bandwidth until it ends.
//!
//! The node that serves a stream books it. All its bookings are one key under its lease, so they end with the node and outlive the
//! node that sent the viewer. Each storage has a key, which it may share with others, and which each transaction that takes more of it compares
//! and changes: so of two nodes that take the last bandwidth at once, one reads the other's bookings and decides again.

use super::{Cluster, Counted, RegistryError, entries::Entries, viewers::HttpViewers};
use millpond_cluster::{
    Bitrate, BookingPlan, Demand, Expected, Ledger, Node, NodeName, ObjectKey, Resource, Shortage, Slot, View,
};
use millpond_etcd::{Compare, KeyValue, LeaseId, Operation, Revision, Transaction};
use millpond_utc::WallClock;
use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Notify, oneshot, watch},
    time::{Instant, sleep, timeout},
};

/// Delay of a write to etcd: streams that start within it are booked together.
const BATCH: Duration = Duration::from_millis(20);
/// Least time between two writes: so a node writes at most ten times a second, whatever its streams.
const PAUSE: Duration = Duration::from_millis(100);
/// Interval between checks for bandwidth to give back.
const TIDY: Duration = Duration::from_secs(5);
/// The same while bookings are not written, because etcd does not answer.
const RETRY: Duration = Duration::from_secs(1);
/// Attempts to write, while other nodes write.
const ATTEMPTS: u32 = 16;
/// Longest pause between two of them. It is random, and begins with some milliseconds.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// Time after which no further attempt is made: streams wait no longer than [`PATIENCE`].
const SETTLING: Duration = Duration::from_millis(1500);
/// Longest wait of a stream. Without an answer it starts, if the last bookings leave room. Later ones do not wait until etcd answers again.
const PATIENCE: Duration = Duration::from_secs(2);
/// Streams that wait to be booked. Beyond it they are admitted by the last bookings that are known.
const MOST_WAITING: usize = 10_000;
/// Keys of storages. All of them fit into one transaction: etcd takes 128 operations.
const GUARDS: u64 = 100;
/// Most keys of bookings that are read.
const MOST_KEYS: usize = 20_000;

/// The bookings of this node, and of all others.
#[derive(Debug)]
pub(super) struct Bookings {
    /// A lock, held for a decision.
    ledger: Mutex<Ledger>,
    /// The clock of the times of bookings.
    wall: WallClock,
    /// A lock, held for a push.
    waiting: Mutex<Vec<Waiting>>,
    wake: Notify,
    /// Whether the last write got no answer in time.
    is_away: AtomicBool,
    /// Revision of the bookings that were read last. A lock, held while they are taken over.
    observed: Mutex<Revision>,
    /// Revisions of the keys of storages.
    guards: Mutex<HashMap<Vec<u8>, Revision>>,
    /// The lease of this node, while it has one.
    lease: watch::Sender<Option<LeaseId>>,
    /// Viewers by HTTP.
    pub(super) viewers: HttpViewers,
    /// Bookings of streams that were sent to other nodes. A lock, held for a look.
    expected: Mutex<Expected>,
    /// Counts of bytes sent and read, with the time at which they were taken.
    pub(super) counted: watch::Sender<Option<(Counted, Duration)>>,
}

/// A stream that waits to be booked.
#[derive(Debug)]
struct Waiting {
    demand: Demand,
    answer: oneshot::Sender<Result<Slot, Shortage>>,
}

/// Bandwidth that is booked for a stream. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Booked {
    cluster: Arc<Cluster>,
    slot: Slot,
    demand: Demand,
}

impl Booked {
    /// Its bandwidth.
    pub(super) fn rate(&self) -> Bitrate {
        self.demand.rate
    }

    /// Gives the bandwidth of a stream back that was refused for another reason, and has that written at once.
    pub(crate) fn refuse(self) {
        let cluster = self.cluster.clone();
        cluster.refused(&self.demand);
        drop(self);
        cluster.bookings.wake();
    }

    /// Whether it lasts as long as a playback of the whole demand that begins now.
    pub(crate) fn lasts(&self) -> bool {
        self.cluster.bookings.ledger().lasts(&self.slot, &self.demand, self.cluster.wall.bookings.now())
    }

    /// Whether it has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.slot.is_over(self.cluster.wall.bookings.now())
    }
}

impl Drop for Booked {
    fn drop(&mut self) {
        self.cluster.bookings.ledger().give_back(&self.slot, self.demand.rate);
    }
}

/// The setting that limits what a stream lacks.
pub(crate) fn limit_of(shortage: &Shortage) -> &'static str {
    match &shortage.resource {
        Resource::Node(_) => "cluster-mbps",
        store if store.is_store() => "cluster-store-mbps",
        Resource::Storage(_) => "cluster-storage-mbps",
    }
}

impl Bookings {
    /// No bookings so far. `wall` is the clock of their times.
    pub(super) fn new(ledger: Ledger, wall: WallClock) -> Self {
        let (waiting, is_away, observed, guards, viewers) = Default::default();
        let (ledger, wake, lease) = (Mutex::new(ledger), Notify::new(), watch::Sender::new(None));
        let (expected, counted) = (Mutex::default(), watch::Sender::default());
        Self { ledger, wall, waiting, wake, is_away, observed, guards, lease, viewers, expected, counted }
    }

    /// Has bandwidth that was given back written at once.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Notes what was sent and read. A task books what is beyond the streams.
    pub(super) fn measure(&self, counted: Option<(Counted, Duration)>) {
        self.counted.send_replace(counted);
    }

    /// Bookings of streams that were sent to other nodes.
    pub(super) fn expected(&self) -> MutexGuard<'_, Expected> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lease of this node, while it has one.
    pub(super) fn lease(&self) -> watch::Receiver<Option<LeaseId>> {
        self.lease.subscribe()
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn guards(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Revision>> {
        self.guards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the lease of this node. Keys that were written under an earlier lease are gone.
    pub(super) fn set_lease(&self, lease: Option<LeaseId>) {
        let is_new = self.lease.send_if_modified(|known| {
            let is_new = *known != lease;
            *known = lease;
            is_new
        });
        if is_new {
            self.ledger().set_written(false);
            self.wake.notify_one();
        }
    }

    /// Revision of the bookings that were read last.
    pub(super) fn observed(&self) -> Revision {
        *self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was read of etcd, which has lost its later revisions: it was restored from a snapshot, or begun anew.
    pub(super) fn forget(&self) {
        let mut observed = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        *observed = 0;
        self.guards().clear();
        let mut ledger = self.ledger();
        ledger.keep_others(&BTreeSet::new());
        ledger.set_written(false);
    }

    /// Takes over the bookings of other nodes, and the revisions of the keys of storages, as they were at `revision`.
    fn observe<'a>(&self, keys: &Keys, pairs: impl Iterator<Item = &'a KeyValue>, revision: Revision) {
        let mut observed = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        // Two tasks read the keys. An older reading would remove bookings that the guards of a later one count on.
        if revision < *observed {
            return;
        }
        *observed = revision;
        let mut others = BTreeSet::new();
        for pair in pairs {
            if pair.key.starts_with(&keys.guards) {
                let mut guards = self.guards();
                let known = guards.entry(pair.key.clone()).or_default();
                *known = (*known).max(pair.revision);
            } else if pair.key.starts_with(&keys.bookings) && pair.key != keys.own {
                others.insert(pair.key.as_slice());
                let revision = u64::try_from(pair.revision).unwrap_or(0);
                if !self.ledger().set_other(&pair.key, revision, &pair.value) {
                    tracing::warn!(key = %String::from_utf8_lossy(&pair.key), "a key of bookings can't be read");
                }
            }
        }
        self.ledger().keep_others(&others);
    }
}

/// The keys of bookings.
#[derive(Debug)]
struct Keys {
    /// Beginning of the keys of nodes' bookings.
    bookings: Vec<u8>,
    /// Beginning of the keys of storages.
    guards: Vec<u8>,
    /// The key of this node's bookings.
    own: Vec<u8>,
}

impl Keys {
    /// The key that a storage shares with some others.
    fn guard(&self, storage: &str) -> Vec<u8> {
        let number = ObjectKey::new("", storage).hash() % GUARDS;
        [&self.guards[..], format!("{number:02x}").as_bytes()].concat()
    }
}

impl Cluster {
    fn keys(&self) -> Keys {
        let prefix = &self.settings.prefix;
        let bookings = format!("{prefix}book/nodes/");
        let own = format!("{bookings}{}/{:x}", self.name(), self.incarnation).into_bytes();
        Keys { bookings: bookings.into_bytes(), guards: format!("{prefix}book/storages/").into_bytes(), own }
    }

    /// Takes over the bookings that were read from etcd.
    pub(super) fn observe_bookings(&self, entries: &Entries) {
        let below = format!("{}book/", self.settings.prefix).into_bytes();
        self.bookings.observe(&self.keys(), entries.below(&below), entries.revision());
    }

    /// Booked bandwidth of the nodes of a view.
    pub(super) fn booked_of_nodes(&self, view: &View) -> Vec<(NodeName, Bitrate)> {
        let (ledger, now) = (self.bookings.ledger(), self.wall.bookings.now());
        let rate = |node: &Node| (node.name.clone(), ledger.booked(&node.name, now));
        view.nodes().iter().map(rate).filter(|(_, rate)| *rate > Bitrate::ZERO).collect()
    }

    /// Booked bandwidth of each node and storage.
    pub(super) fn all_booked(&self) -> Vec<(String, Bitrate)> {
        let all = self.bookings.ledger().all_booked(self.wall.bookings.now());
        all.into_iter().map(|(resource, rate)| (resource.to_string(), rate)).collect()
    }

    /// Whether any bandwidth is limited. Otherwise nothing is booked.
    pub(crate) fn books(&self) -> bool {
        self.bookings.ledger().is_bounded()
    }

    /// Books bandwidth for a stream until it ends, or until the result is dropped. `None` where nothing is bounded.
    ///
    /// # Errors
    /// The node or the storage lacks bandwidth.
    pub(crate) async fn book(self: &Arc<Self>, demand: Demand) -> Result<Option<Booked>, Shortage> {
        let booked = self.try_book(demand.clone()).await;
        booked.inspect_err(|shortage| {
            self.refused(&demand);
            self.metrics.refused.inc();
            tracing::info!(%shortage, setting = limit_of(shortage), "a stream is refused");
        })
    }

    /// Takes a stream that this node refused out of the load that it assigns streams by.
    fn refused(&self, demand: &Demand) {
        let booked = self.bookings.ledger().booked(self.name(), self.wall.bookings.now());
        let mut loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        loads.take_back(self.name(), demand.rate);
        loads.at_least(self.name(), booked);
    }

    pub(super) async fn try_book(self: &Arc<Self>, demand: Demand) -> Result<Option<Booked>, Shortage> {
        if !self.bookings.ledger().is_bounded() {
            return Ok(None);
        }
        let known = self.bookings.ledger().take(&demand, self.wall.bookings.now());
        let slot = match known {
            Some(slot) => slot,
            None => self.booked(&demand).await?,
        };
        Ok(Some(Booked { cluster: self.clone(), slot, demand }))
    }

    /// Books bandwidth that is not booked yet.
    async fn booked(&self, demand: &Demand) -> Result<Slot, Shortage> {
        if self.bookings.is_away.load(Ordering::Relaxed) {
            return self.bookings.alone(std::slice::from_ref(demand)).remove(0);
        }
        let (answer, answered) = oneshot::channel();
        {
            let mut waiting = self.bookings.waiting();
            if waiting.len() < MOST_WAITING {
                waiting.push(Waiting { demand: demand.clone(), answer });
            }
        }
        self.bookings.wake.notify_one();
        match timeout(PATIENCE, answered).await {
            Ok(Ok(answer)) => answer,
            _ => {
                self.bookings.is_away.store(true, Ordering::Relaxed);
                self.bookings.alone(std::slice::from_ref(demand)).remove(0)
            }
        }
    }

    /// Writes the bookings of this node until `stop` turns true.
    pub(super) async fn keep_books(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        if !self.bookings.ledger().is_bounded() {
            return;
        }
        loop {
            let is_away = self.bookings.is_away.load(Ordering::Relaxed);
            tokio::select! {
                () = self.bookings.wake.notified() => {}
                () = sleep(if is_away { RETRY } else { TIDY }) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            sleep(BATCH).await;
            let waiting = std::mem::take(&mut *self.bookings.waiting());
            let demands: Vec<_> = waiting.iter().map(|waiting| waiting.demand.clone()).collect();
            let settled = self.settle(&demands).await;
            self.bookings.is_away.store(settled.is_err(), Ordering::Relaxed);
            let answers = settled.unwrap_or_else(|error| {
                tracing::debug!(%error, "bookings are not written");
                self.metrics.failures.inc();
                self.bookings.alone(&demands)
            });
            for (waiting, answer) in waiting.into_iter().zip(answers) {
                // A stream that does not wait any more is not served.
                if let Err(Ok(slot)) = waiting.answer.send(answer) {
                    self.bookings.ledger().give_back(&slot, waiting.demand.rate);
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// Books the demands that fit. Those of storages are refused where other nodes were faster each time: what they read of other bookings
    /// is old by then.
    async fn settle(&self, demands: &[Demand]) -> Result<Vec<Result<Slot, Shortage>>, RegistryError> {
        let began = Instant::now();
        for attempt in 1..=ATTEMPTS {
            let Some(lease) = *self.bookings.lease.borrow() else { return Ok(self.bookings.alone(demands)) };
            let plan = self.bookings.ledger().plan(demands, self.wall.bookings.now());
            if !plan.is_changed {
                let answers = plan.answers.clone();
                self.bookings.ledger().written(plan, demands);
                return Ok(answers);
            }
            self.metrics.puts.inc();
            if let Some(answers) = self.write_bookings(plan, demands, lease).await? {
                return Ok(answers);
            }
            // Another node took of the same storage.
            let below = format!("{}book/", self.settings.prefix).into_bytes();
            let range = self.registry.range(&below, MOST_KEYS).await?;
            self.bookings.observe(&self.keys(), range.pairs.iter(), range.revision);
            if began.elapsed() > SETTLING {
                break;
            }
            let most = Duration::from_millis(1 << attempt.min(8)).min(LONGEST_PAUSE);
            sleep(most.mul_f64(fastrand::f64())).await;
        }
        Ok(demands.iter().map(|demand| self.bookings.out_of_turn(demand)).collect())
    }

    /// Writes a plan. `None` where another node took of the same storage first.
    async fn write_bookings(
        &self,
        plan: BookingPlan,
        demands: &[Demand],
        lease: LeaseId,
    ) -> Result<Option<Vec<Result<Slot, Shortage>>>, RegistryError> {
        let keys = self.keys();
        let guards: BTreeSet<_> = plan.storages.iter().map(|storage| keys.guard(storage)).collect();
        let known = |key: &Vec<u8>| match self.bookings.guards().get(key) {
            Some(revision) => Compare::Unchanged(key.clone(), *revision),
            None => Compare::Absent(key.clone()),
        };
        let put = |key: &Vec<u8>| Operation::Put { key: key.clone(), value: b"{}".to_vec(), lease: None };
        let own = Operation::Put { key: keys.own.clone(), value: plan.value.clone().into_bytes(), lease: Some(lease) };
        let changes = guards.iter().map(put).chain([own]).collect();
        let transaction = Transaction { conditions: guards.iter().map(known).collect(), changes };
        let Some(revision) = self.registry.commit_at(&transaction).await? else { return Ok(None) };
        for key in guards {
            self.bookings.guards().insert(key, revision);
        }
        let answers = plan.answers.clone();
        let mut ledger = self.bookings.ledger();
        ledger.written(plan, demands);
        // Under a lease that another one has replaced meanwhile, the key is going to end.
        ledger.set_written(*self.bookings.lease.borrow() == Some(lease));
        Ok(Some(answers))
    }
}

impl Bookings {
    /// The booking of a stream that other nodes have kept from being written.
    fn out_of_turn(&self, demand: &Demand) -> Result<Slot, Shortage> {
        match &demand.storage {
            Some(storage) => Err(Shortage {
                resource: Resource::Storage(storage.clone()),
                wanted: demand.rate,
                free: Bitrate::ZERO,
                after: Duration::ZERO,
            }),
            // No other node books of this one.
            None => self.alone(std::slice::from_ref(demand)).remove(0),
        }
    }

    /// Books the streams that fit the last known bookings, while etcd does not answer. They are written later.
    fn alone(&self, demands: &[Demand]) -> Vec<Result<Slot, Shortage>> {
        let mut ledger = self.ledger();
        let plan = ledger.plan(demands, self.wall.now());
        let answers = plan.answers.clone();
        ledger.written(plan, demands);
        ledger.set_written(false);
        answers
    }
}

#[cfg(test)]
mod tests;
