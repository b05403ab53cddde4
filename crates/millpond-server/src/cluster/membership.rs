//! The tasks that keep this node registered, and follow the others.

use super::{
    Cluster, LoadMeter,
    cluster_id::{Claim, id_key},
    entries::{Entries, folders},
    registration::{Registration, Step},
    registry::{KeyChanges, RegistryError},
    state::Membership,
};
use millpond_cluster::{Node, Problem, ProblemKind, View, node_key};
use millpond_etcd::{Compare, KeyValue, LeaseId, Operation, Range, Revision, Transaction};
use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};
use tokio::{
    sync::watch,
    task::{JoinError, spawn_blocking},
    time::{sleep, timeout},
};

/// Most keys that are read.
const MOST_KEYS: usize = 40_000;
/// Pause after a failure; half of it is random.
const PAUSE: Duration = Duration::from_millis(500);
/// Pause before the next check whether the name is free.
const TAKEN_PAUSE: Duration = Duration::from_millis(500);
/// Silence of a watch after which the keys are read, to tell a quiet etcd from a member that hangs.
const QUIET: Duration = Duration::from_secs(10);
/// Least time between two views: many nodes may publish at once.
const BATCH: Duration = Duration::from_millis(100);
/// Longest interval between readings of the load.
const LOOK: Duration = Duration::from_secs(1);
/// Time limit for leaving.
const LEAVE: Duration = Duration::from_secs(2);

/// The outcome of an attempt to register.
enum Registered {
    Done,
    /// Another node has the name.
    Taken(String),
    /// The prefix belongs to the cluster of this id.
    Foreign(String),
    /// Keys changed meanwhile.
    Raced,
}

impl Cluster {
    /// Keeps the node registered until `stop` turns true; then revokes its lease.
    pub(super) async fn register(self: Arc<Self>, mut meter: LoadMeter, mut stop: watch::Receiver<bool>) {
        let mut registration = Registration::default();
        let (mut leaves, mut prints) = (self.leaves.subscribe(), self.prints.subscribe());
        loop {
            if *stop.borrow() {
                break;
            }
            let node = self.published(meter.measure(self.now()));
            self.bookings.measure(meter.counted().cloned());
            let pause = match self.step(&mut registration, node).await {
                Ok(pause) => pause,
                Err(error) => {
                    tracing::debug!(%error, "registration");
                    self.metrics.failures.inc();
                    if error.is_not_found() {
                        registration.lost();
                    }
                    PAUSE / 2 + PAUSE.mul_f64(fastrand::f64() / 2.0)
                }
            };
            // A node of another cluster writes nothing.
            self.bookings.set_lease(registration.lease().filter(|_| !self.state.is_foreign()));
            let mut views = self.views.subscribe();
            tokio::select! {
                () = sleep(pause) => {}
                _ = stop.wait_for(|stop| *stop) => {}
                // Draining and other settings are published at once.
                Ok(()) = leaves.changed() => {}
                Ok(()) = prints.changed() => {}
                Ok(()) = views.changed() => {}
            }
        }
        let Some(lease) = registration.lease() else { return };
        let revoked = timeout(LEAVE, self.registry.revoke(lease)).await;
        self.say_farewell(lease).await;
        if let Ok(Err(error)) = revoked {
            tracing::warn!(%error, "this node's lease was not revoked: the cluster keeps the node until it is over");
        }
    }

    /// Does the next step; returns the pause behind it.
    async fn step(&self, registration: &mut Registration, node: Node) -> Result<Duration, RegistryError> {
        let asked = self.now();
        let is_seen = self.view().incarnation(self.name().as_str()) == Some(self.incarnation);
        if let Some(by) = self.displaces().await? {
            if let Some(lease) = registration.lease() {
                self.registry.revoke(lease).await?;
            }
            registration.lost();
            self.set_membership(Membership::Taken { by });
            return Ok(TAKEN_PAUSE);
        }
        match registration.next(asked, &node, is_seen) {
            Step::Grant => {
                if *self.state.membership().borrow() == Membership::Member {
                    self.metrics.lost_leases.inc();
                    self.set_membership(Membership::Lost);
                }
                let (lease, ttl) = self.registry.grant(self.settings.lease).await?;
                registration.granted(lease, ttl, asked);
            }
            Step::Register(lease) => match self.write(&node, lease, registration.has_been()).await? {
                Registered::Done => {
                    registration.written(node, self.now());
                    self.set_membership(Membership::Member);
                }
                Registered::Taken(by) => {
                    self.set_membership(Membership::Taken { by });
                    return Ok(TAKEN_PAUSE);
                }
                Registered::Foreign(id) => {
                    let own = self.settings.id.clone().unwrap_or_default();
                    self.set_membership(Membership::Foreign { own, id, prefix: self.settings.prefix.clone() });
                    self.set_view(View::default());
                    return Ok(TAKEN_PAUSE);
                }
                Registered::Raced => return Ok(PAUSE),
            },
            Step::Publish(lease) => {
                let put = Transaction { conditions: Vec::new(), changes: vec![self.put(&node, lease)] };
                self.metrics.puts.inc();
                self.registry.commit(&put).await?;
                registration.written(node, self.now());
            }
            Step::Renew(lease) => {
                let ttl = self.registry.keep_alive(lease).await?;
                registration.renewed(ttl, asked);
            }
            Step::Wait(pause) => return Ok(pause.min(LOOK)),
        }
        Ok(Duration::ZERO)
    }

    fn set_membership(&self, membership: Membership) {
        self.metrics.member.set(i64::from(membership == Membership::Member));
        self.state.set_membership(membership);
    }

    fn put(&self, node: &Node, lease: LeaseId) -> Operation {
        let key = node_key(&self.settings.prefix, &node.name, self.incarnation).into_bytes();
        let json = node.to_json();
        let signed = self.secret.as_ref().and_then(|secret| secret.signed(&key, &json));
        Operation::Put { key, value: signed.unwrap_or(json).into_bytes(), lease: Some(lease) }
    }

    /// Registers the node, if the prefix is that of its cluster, and no other one has its name. A run of this node that ended without leaving is replaced, by a run that begins.
    async fn write(&self, node: &Node, lease: LeaseId, has_been: bool) -> Result<Registered, RegistryError> {
        let below = format!("{}nodes/{}/", self.settings.prefix, node.name).into_bytes();
        let own = node_key(&self.settings.prefix, &node.name, self.incarnation).into_bytes();
        let Claim { mut conditions, mut changes } = match self.claim().await? {
            Ok(claim) => claim,
            Err(id) => return Ok(Registered::Foreign(id)),
        };
        let found = self.registry.range(&below, MOST_KEYS).await?.pairs;
        changes.push(self.put(node, lease));
        conditions.extend(found.iter().map(|pair| Compare::Unchanged(pair.key.clone(), pair.revision)));
        if found.is_empty() {
            conditions.push(Compare::NoneBelow(below));
        }
        for other in found.iter().filter(|pair| pair.key != own) {
            match self.of_other(other, has_been) {
                Some(by) => return Ok(Registered::Taken(by)),
                None => changes.push(Operation::Delete(other.key.clone())),
            }
        }
        self.metrics.puts.inc();
        let is_done = self.registry.commit(&Transaction { conditions, changes }).await?;
        Ok(if is_done { Registered::Done } else { Registered::Raced })
    }

    /// The claim of the prefix; the id of the cluster to which it belongs, where that is another one.
    async fn claim(&self) -> Result<Result<Claim, String>, RegistryError> {
        let key = id_key(&self.settings.prefix);
        let Some(own) = self.settings.id.as_deref() else { return Ok(Ok(Claim::default())) };
        let found = self.registry.range(&key, MOST_KEYS).await?.pairs;
        let found = found.iter().find(|pair| pair.key == key);
        Ok(Claim::new(key.clone(), Some(own), found))
    }

    /// The address of another node with this node's name. `None` where the key is of an earlier run of this node, which listened
    /// where this one does, or is no node. Where this run was registered before, no earlier run can have a key: nodes with one name and one
    /// address would replace each other for ever.
    fn of_other(&self, pair: &KeyValue, has_been: bool) -> Option<String> {
        let node = Node::from_json(&pair.value).ok()?;
        let address = |node: &Node| node.addresses.http.clone();
        let is_other = has_been || address(&node) != address(&self.own);
        is_other.then(|| address(&node).as_deref().unwrap_or("no address").to_owned())
    }

    /// The address of another node with this node's name that registered before this one. `None` where there is none, and where the registry
    /// has one order: then this node would not have registered. Of two nodes that have heard of each other late, the later one gives way.
    async fn displaces(&self) -> Result<Option<String>, RegistryError> {
        let is_by_this =
            |problem: &Problem| matches!(problem.kind, ProblemKind::Displaced { by } if by == self.incarnation);
        if self.registry.has_one_order() || !self.view().problems().iter().any(is_by_this) {
            return Ok(None);
        }
        let below = format!("{}nodes/{}/", self.settings.prefix, self.name()).into_bytes();
        let own = node_key(&self.settings.prefix, self.name(), self.incarnation).into_bytes();
        let found = self.registry.range(&below, MOST_KEYS).await?.pairs;
        let Some(created) = found.iter().find(|pair| pair.key == own).map(|pair| pair.created) else { return Ok(None) };
        Ok(found.iter().filter(|pair| pair.created < created).find_map(|pair| self.of_other(pair, false)))
    }

    /// Follows the keys of the cluster until `stop` turns true.
    pub(super) async fn follow(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut entries = Entries::new(&self.settings.prefix);
        loop {
            let followed = tokio::select! {
                error = self.read_and_watch(&mut entries) => error,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            match followed {
                // Nothing is wrong: the keys are read again.
                Ok(()) => {}
                Err(error) if error.is_compacted() => {}
                Err(error) => {
                    self.metrics.following.set(0);
                    self.metrics.failures.inc();
                    self.state.is_away(&error, self.registry.name());
                    self.registry.rotate();
                    sleep(PAUSE / 2 + PAUSE.mul_f64(fastrand::f64() / 2.0)).await;
                }
            }
        }
    }

    /// Reads the keys, and watches them from there.
    async fn read_and_watch(self: &Arc<Self>, entries: &mut Entries) -> Result<(), RegistryError> {
        let prefix = self.settings.prefix.as_bytes();
        let observed = self.bookings.observed();
        let range = self.read().await?;
        let has_lost = range.revision < observed;
        self.purges_are_read(&range.cluster, range.revision, has_lost);
        if has_lost {
            tracing::warn!(
                observed,
                revision = range.revision,
                "etcd has lost revisions: it was restored, or begun anew"
            );
            self.bookings.forget();
        }
        let revision = range.revision;
        entries.replace(range.pairs, revision);
        self.show(entries).await;
        let mut watch = self.registry.watch(prefix, revision + 1).await?;
        self.metrics.following.set(1);
        self.state.follows(self.view().nodes().len(), self.registry.name());
        loop {
            match timeout(QUIET, watch.next()).await {
                Ok(changes) => {
                    let (events, at) = changes?;
                    entries.apply(events, at);
                    self.gather(&mut watch, entries).await?;
                    self.show(entries).await;
                }
                Err(_) => {
                    let range = self.read().await?;
                    // The watch has not told of a change: its member hangs.
                    if entries.replace(range.pairs, range.revision) {
                        self.show(entries).await;
                        self.registry.rotate();
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Reads all folders of keys. Those that are read later may show later changes, which a watch from the revision reports again.
    async fn read(&self) -> Result<Range, RegistryError> {
        let mut all = Range { revision: Revision::MAX, ..Range::default() };
        for folder in folders(&self.settings.prefix) {
            let range = self.registry.range(&folder, MOST_KEYS).await?;
            if range.is_cut {
                let folder = String::from_utf8_lossy(&folder);
                tracing::warn!(%folder, MOST_KEYS, "more keys lie below the cluster's prefix than this node reads");
            }
            all.revision = all.revision.min(range.revision);
            all.pairs.extend(range.pairs);
            all.cluster = range.cluster;
        }
        Ok(all)
    }

    /// Applies changes that come within a moment of the first.
    async fn gather(&self, watch: &mut KeyChanges, entries: &mut Entries) -> Result<(), RegistryError> {
        let end = tokio::time::Instant::now() + BATCH;
        while let Ok(changes) = tokio::time::timeout_at(end, watch.next()).await {
            let (events, at) = changes?;
            entries.apply(events, at);
        }
        Ok(())
    }

    /// Makes the view of the keys, on a thread that serves nobody: they may be those of thousands of nodes.
    async fn show(self: &Arc<Self>, entries: &mut Entries) {
        let (cluster, taken) = (self.clone(), std::mem::replace(entries, Entries::new(&self.settings.prefix)));
        let shown = self.apart(move || {
            cluster.observe(&taken);
            taken
        });
        if let Some(taken) = shown.await {
            *entries = taken;
        }
    }

    /// Does work on a thread that serves nobody; `None` where the server is ending.
    pub(super) async fn apart<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        #[cfg(test)]
        if self.registry.is_simulated() {
            return Some(work());
        }
        match spawn_blocking(work).await.map_err(JoinError::try_into_panic) {
            Ok(done) => Some(done),
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            Err(Err(_)) => None,
        }
    }

    fn observe(&self, entries: &Entries) {
        if self.state.is_foreign() {
            return self.set_view(View::default());
        }
        let prefix = &self.settings.prefix;
        let drains = entries.drains(prefix, self.name());
        if self.is_asked.swap(drains, std::sync::atomic::Ordering::Relaxed) != drains {
            tracing::info!(drains, "an operator changed whether this node drains");
        }
        let view = entries.view(prefix, self.secret.as_ref()).within(self.settings.id.as_deref());
        let old = self.view();
        for problem in view.problems() {
            let is_new = !old.problems().iter().any(|known| known.key == problem.key);
            if is_new {
                tracing::warn!(%problem, "a key under the cluster's prefix is no node");
            }
        }
        self.observe_purges(entries);
        self.observe_bookings(entries);
        self.observe_streams(entries);
        let changes = {
            let mut witness = self.witness.lock().unwrap_or_else(PoisonError::into_inner);
            witness.observe(&old, &view, self.now())
        };
        self.set_view(view);
        let new = self.view();
        self.tell_changes(&changes, &old, &new);
        self.tell_differences(&old, &new);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ClusterMetrics, ClusterSettings, registry};
    use super::*;
    use crate::events::{EventMetrics, Events};
    use millpond_cluster::Addresses;
    use millpond_settings::{Host, Settings as _, machine::Machine};
    use prometheus_client::registry::Registry;

    fn addresses(http: &str) -> Addresses {
        Addresses { http: Some(http.into()), ..Addresses::default() }
    }

    /// The cluster of a node `a`.
    fn cluster(http: &str, set: impl Fn(&mut ClusterSettings)) -> Arc<Cluster> {
        let host = Host { machine: Machine::detect(), variable: &|_| None };
        let mut settings = ClusterSettings::defaults(&host);
        settings.node = Some("a".to_owned());
        set(&mut settings);
        let metrics = ClusterMetrics::register(&mut Registry::default());
        let events = Events::new("a", 10, &EventMetrics::register(&mut Registry::default()));
        Cluster::new(&settings, addresses(http), metrics, events, super::super::WallClocks::default()).unwrap()
    }

    #[test]
    fn a_run_replaces_an_earlier_one_and_no_later_one() {
        let cluster = cluster("http://a", |settings| settings.etcd = vec!["http://127.0.0.1:1".parse().unwrap()]);
        let pair = |http| {
            let node = Node { addresses: addresses(http), ..cluster.own.clone() };
            KeyValue { value: node.to_json().into_bytes(), ..KeyValue::default() }
        };
        assert_eq!(cluster.of_other(&pair("http://a"), false), None);
        assert_eq!(cluster.of_other(&pair("http://a"), true).as_deref(), Some("http://a"));
        assert_eq!(cluster.of_other(&pair("http://b"), false).as_deref(), Some("http://b"));
        assert_eq!(cluster.of_other(&KeyValue::default(), true), None);
    }

    #[tokio::test]
    async fn of_two_nodes_of_one_name_that_meet_late_the_later_one_gives_way() {
        let urls = ["http://127.0.0.1:1", "http://127.0.0.1:2"];
        // Each has only itself in its list: what they hear is given below.
        let nodes = urls.map(|url| cluster(url, |settings| settings.nodes = vec![url.parse().unwrap()]));
        let registry = |cluster: &Cluster| {
            let registry::Registry::Static(registry) = &cluster.registry else { panic!("a list of nodes") };
            registry.clone()
        };
        let (_stop, stopped) = watch::channel(false);
        for node in &nodes {
            tokio::spawn(node.clone().follow_peers(registry(node), stopped.clone()));
            let (lease, _) = node.registry.grant(Duration::from_secs(60)).await.unwrap();
            assert!(matches!(node.write(&node.own, lease, false).await, Ok(Registered::Done)));
            sleep(Duration::from_millis(2)).await;
        }
        let [first, second] = &nodes;
        registry(first).merge(registry(second).reply(0));
        registry(second).merge(registry(first).reply(0));
        for node in &nodes {
            let range = node.read().await.unwrap();
            let mut entries = Entries::new(&node.settings.prefix);
            entries.replace(range.pairs, range.revision);
            node.observe(&entries);
        }
        assert_eq!(first.displaces().await.unwrap(), None);
        assert_eq!(second.displaces().await.unwrap().as_deref(), Some(urls[0]));
    }
}
