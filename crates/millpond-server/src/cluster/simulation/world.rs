//! The cluster, its viewers and its operator.

use super::{
    etcd::{Mutant, Store as EtcdStore},
    member::{LEASE, Member, Stream, address},
    origin::{LENGTH, OBJECTS, Publisher, path},
};
use crate::cluster::{Start, clocks::StatedTimes};
use millpond_cluster::{Bitrate, Demand, ObjectKey, PurgeEntry, PurgedObjects};
use millpond_store::ObjectPath;
use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// Nodes that may run at a time.
pub(super) const NODES: usize = 5;
/// Live streams.
pub(super) const LIVE: usize = 4;
/// Actions that are told with a broken invariant.
const TOLD: usize = 30;
/// Time after the last fault in which the cluster heals.
pub(super) const HEALING: Duration = Duration::from_secs(45);

/// The kind of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// etcd answers each request. Nodes die, leave, return, pause for a moment, and have wrong clocks. Nobody reads objects.
    Calm,
    /// Ways are cut, messages lost, etcd is away, and nodes pause for long.
    Rough,
    /// The same, and nobody reads objects.
    Unread,
}

/// An invariant that broke.
#[derive(Debug)]
pub(super) struct Broken(pub(super) String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Counts of what happened.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome(BTreeMap<&'static str, u64>);

impl Outcome {
    pub(super) fn count(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }

    /// Whether all happened that a kind of world is for.
    pub(super) fn is_varied(&self, kind: Kind) -> bool {
        let common = ["booked", "refused", "purged", "live", "killed", "started", "left"];
        let more: &[_] = match kind {
            Kind::Calm => &["paused briefly", "clock set"],
            Kind::Rough => &["paused", "cut", "etcd away", "compacted", "lossy", "read", "read after a pause"],
            Kind::Unread => &["paused", "cut", "etcd away", "compacted", "lossy"],
        };
        common.iter().chain(more).all(|what| self.0.contains_key(what))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<_> = self.0.iter().map(|(what, count)| format!("{count} {what}")).collect();
        f.write_str(&all.join(", "))
    }
}

/// A purge that was reported as done.
#[derive(Clone, Debug)]
pub(super) struct Done {
    pub(super) object: usize,
    /// Least version that a node may give that has applied it.
    pub(super) version: u64,
    pub(super) epoch: u64,
    pub(super) at: Instant,
}

/// Results of the tasks that run beside the steps.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) outcome: Outcome,
    pub(super) purges: Vec<Done>,
    pub(super) broken: Option<String>,
    actions: VecDeque<String>,
    began: Option<Instant>,
}

impl Told {
    pub(super) fn act(&mut self, what: &'static str, text: impl fmt::Display) {
        self.outcome.count(what);
        let at = self.began.map_or(Duration::ZERO, |began| began.elapsed());
        self.actions.push_back(format!("{:9.3} {what} {text}", at.as_secs_f64()));
        if self.actions.len() > TOLD {
            self.actions.pop_front();
        }
    }
}

pub(super) type Shared = Arc<Mutex<Told>>;

pub(super) fn told(shared: &Shared) -> std::sync::MutexGuard<'_, Told> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The world.
pub(super) struct World {
    pub(super) kind: Kind,
    pub(super) etcd: EtcdStore,
    pub(super) origin: Publisher,
    pub(super) members: Vec<Member>,
    pub(super) told: Shared,
    pub(super) began: Instant,
    pub(super) last_fault: Instant,
}

pub(super) fn below(most: usize) -> usize {
    fastrand::usize(..most)
}

impl World {
    pub(super) fn new(kind: Kind, mutant: Mutant) -> Self {
        let (etcd, began) = (EtcdStore::new(mutant), Instant::now());
        let told = Shared::default();
        self::told(&told).began = Some(began);
        Self { kind, etcd, origin: Publisher::default(), members: Vec::new(), told, began, last_fault: began }
    }

    /// Runs steps, heals the cluster, and runs it for a while without faults.
    pub(super) async fn run(mut self, steps: u32) -> Result<Outcome, Broken> {
        let done = self.steps(steps).await;
        let actions = told(&self.told).actions.iter().cloned().collect::<Vec<_>>().join("\n");
        done.map_err(|broken| Broken(format!("{broken}\n{actions}")))?;
        Ok(told(&self.told).outcome.clone())
    }

    async fn steps(&mut self, steps: u32) -> Result<(), Broken> {
        for node in 0..3 {
            self.start(node);
        }
        for step in 0..steps {
            self.pass(Duration::from_millis(fastrand::u64(10..500))).await?;
            match below(100) {
                0..6 => self.fault(),
                _ => self.act(),
            }
            // From time to time all faults end, and the cluster must be whole again.
            if step % 500 == 499 {
                self.heal().await?;
            }
        }
        self.heal().await
    }

    /// Lets time pass: clocks are compared, watches told, and the invariants checked.
    pub(super) async fn pass(&mut self, time: Duration) -> Result<(), Broken> {
        const TICK: Duration = Duration::from_millis(100);
        let end = Instant::now() + time;
        loop {
            self.etcd.tick();
            self.compare_clocks();
            self.check()?;
            let now = Instant::now();
            if now >= end {
                return Ok(());
            }
            sleep(TICK.min(end - now)).await;
        }
    }

    /// Nodes read each other's clocks, as probes do.
    fn compare_clocks(&self) {
        for member in self.members.iter().filter(|member| !member.gate.is_paused()) {
            for other in self.members.iter().filter(|other| !other.gate.is_paused() && other.name != member.name) {
                let (now, times) = (member.cluster.now(), StatedTimes::parse(&other.cluster.stated_times()));
                member.cluster.reach.hears(&address(&other.name), times.unwrap().read(now, now));
            }
            let view = member.cluster.view();
            member.cluster.compare_clocks(&view);
        }
    }

    /// Starts a node, unless it runs.
    pub(super) fn start(&mut self, node: usize) {
        let name = ["a", "b", "c", "d", "e"][node];
        if self.members.iter().any(|member| member.name == name) {
            return;
        }
        let skew = if below(3) == 0 { fastrand::i64(-600_000..600_000) } else { 0 };
        let member = Member::start(name, &self.etcd, &self.origin, self.began, skew);
        self.members.push(member);
        told(&self.told).act("started", format_args!("{name}, ahead by {skew} ms"));
        self.compare_clocks();
    }

    /// A viewer, a publisher or the operator does something.
    fn act(&mut self) {
        if self.members.is_empty() {
            return;
        }
        let at = below(self.members.len());
        match below(100) {
            0..35 => self.book(at),
            // Viewers of several nodes come at once.
            35..40 => (0..6).for_each(|_| {
                let at = below(self.members.len());
                self.book(at);
            }),
            40..50 => {
                let mut streams = self.members[at].streams.lock().unwrap_or_else(PoisonError::into_inner);
                if !streams.is_empty() {
                    let index = below(streams.len());
                    streams.swap_remove(index);
                }
            }
            50..75 if self.kind == Kind::Rough => self.read(at),
            50..75 => self.book(at),
            75..82 => self.publish(at),
            82..92 => self.watch_live(at),
            92..95 => {
                let key = format!("live/{}", below(LIVE));
                for member in &self.members {
                    member.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
                }
            }
            _ => self.drain(at),
        }
    }

    fn book(&mut self, at: usize) {
        let member = &mut self.members[at];
        if !member.serves() {
            return;
        }
        let length = (below(2) == 0).then(|| Duration::from_secs(fastrand::u64(5..90)));
        let rate = Bitrate::from_mbps(fastrand::u64(1..9));
        let demand = Demand { storage: Some("films".into()), rate, length, ..Demand::default() };
        let (cluster, streams, shared, name) =
            (member.cluster.clone(), member.streams.clone(), self.told.clone(), member.name.clone());
        // As long as its booking, which counts from the request.
        let ends = length.map(|length| Instant::now() + length);
        member.spawn(async move {
            match cluster.book(demand).await {
                Ok(Some(booked)) => {
                    streams.lock().unwrap_or_else(PoisonError::into_inner).push(Stream { _booked: booked, rate, ends });
                    told(&shared).act("booked", format_args!("{rate:?} at {name} for {length:?}"));
                }
                Ok(None) => told(&shared).broken = Some("a bounded node books nothing".to_owned()),
                Err(_) => told(&shared).outcome.count("refused"),
            }
        });
    }

    /// A viewer reads an object: no bytes of before a purge that the node has applied.
    fn read(&mut self, at: usize) {
        let member = &mut self.members[at];
        if !member.cluster.is_serving.load(Ordering::Relaxed) {
            return;
        }
        let object = below(OBJECTS);
        let was_paused = member.gate.is_paused();
        let (cluster, cache, shared, name) =
            (member.cluster.clone(), member.cache.clone(), self.told.clone(), member.name.clone());
        member.spawn(async move {
            cluster.caught_up().await;
            let applied = cluster.purges.applied();
            let of_applied = |done: &&Done| done.object == object && done.epoch <= applied;
            let least = told(&shared).purges.iter().filter(of_applied).map(|done| done.version).max().unwrap_or(0);
            let path = ObjectPath::parse(&path(object)).unwrap();
            let Ok(opened) = cache.open("films", &path).await else { return };
            let Ok(bytes) = cache.read_all(&opened, 0..LENGTH).await else { return };
            let version = u64::from_be_bytes(bytes[..].try_into().unwrap());
            let mut told = told(&shared);
            told.outcome.count(if was_paused { "read after a pause" } else { "read" });
            if version < least {
                let fault = format!(
                    "{name} has applied purge {applied}, and gives version {version} of film{object}, not {least}"
                );
                told.broken.get_or_insert(fault);
            }
        });
    }

    /// A publisher replaces an object, and purges it.
    fn publish(&mut self, at: usize) {
        let member = &mut self.members[at];
        if !member.serves() {
            return;
        }
        let object = below(OBJECTS);
        let version = self.origin.replace(object);
        let objects = match below(3) {
            0 => PurgedObjects::Pattern("film?.mp4".to_owned()),
            _ => PurgedObjects::Path(path(object)),
        };
        let (cluster, shared, name) = (member.cluster.clone(), self.told.clone(), member.name.clone());
        member.spawn(async move {
            let entry = PurgeEntry {
                place: Some("films".to_owned()),
                objects,
                is_soft: false,
                at: cluster.wall.bookings.now(),
            };
            let Ok(report) = cluster.purge(&entry).await else { return };
            let done = Done { object, version, epoch: report.epoch, at: Instant::now() };
            let mut told = told(&shared);
            told.act(
                "purged",
                format_args!("film{object} at {name}: epoch {}, {} missing", report.epoch, report.missing.len()),
            );
            told.purges.push(done);
        });
    }

    /// A viewer asks a node for a live stream: it is asked of the source by the node that all choose, or taken from that.
    fn watch_live(&mut self, at: usize) {
        let name = format!("live/{}", below(LIVE));
        let (place, stream) = name.split_once('/').unwrap();
        let key = ObjectKey::new(place, stream);
        let mut at = at;
        for _ in 0..NODES {
            let member = &self.members[at];
            if !member.serves() {
                return;
            }
            let candidates = member.cluster.answer(&key, Start::Live, None, false).candidates;
            let Some(first) = candidates.first() else { return };
            if first.name == *member.cluster.name() {
                member.held.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_string());
                told(&self.told).act("live", format_args!("{key} at {}", member.name));
                return;
            }
            let Some(next) = self.members.iter().position(|other| other.name == first.name.as_str()) else { return };
            at = next;
        }
    }

    fn drain(&mut self, at: usize) {
        let node = self.members[below(self.members.len())].cluster.name().clone();
        let drains = below(2) == 0;
        let (cluster, shared) = (self.members[at].cluster.clone(), self.told.clone());
        self.members[at].spawn(async move {
            if cluster.drain(&node, drains).await.is_ok() {
                told(&shared).act("drained", format_args!("{node}: {drains}"));
            }
        });
    }

    /// Whether a node may be considered to know all that etcd has.
    pub(super) fn quiet(&self) -> bool {
        self.last_fault.elapsed() > LEASE * 2
    }
}
