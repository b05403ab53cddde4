//! A node of the simulation: its tasks, its streams, and the faults that hold for it.

use super::{
    super::{
        Cluster, ClusterMetrics, ClusterSettings, Counted, HeldStreams, LoadMeter, PurgedCache, WallClocks,
        registry::Registry,
    },
    etcd::{SimulatedEtcd, Store as EtcdStore, Way},
    gate::Gate,
    origin::Publisher,
};
use crate::{
    cluster::Booked,
    events::{EventMetrics, Events},
};
use millpond_cluster::{Addresses, Bitrate};
use millpond_settings::{Host, Settings as _, machine::Machine};
use millpond_store::{Store, StoreOptions};
use millpond_utc::WallClock;
use prometheus_client::registry::Registry as Metrics;
use std::{
    collections::BTreeSet,
    future::Future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep},
};

/// Lease of the nodes.
pub(super) const LEASE: Duration = Duration::from_secs(6);
/// Bandwidth of the storage, and of each node.
pub(super) const STORAGE_MBPS: u64 = 40;
const NODE_MBPS: u64 = 30;
/// Wall time at the beginning.
const EPOCH: Duration = Duration::from_secs(1_800_000_000);

/// A stream that a node has admitted.
pub(super) struct Stream {
    /// Gives its bandwidth back when it is dropped.
    pub(super) _booked: Booked,
    pub(super) rate: Bitrate,
    /// When it ends; `None` for one that a viewer ends.
    pub(super) ends: Option<Instant>,
}

/// A run of a node.
pub(super) struct Member {
    pub(super) name: String,
    pub(super) cluster: Arc<Cluster>,
    tasks: Vec<JoinHandle<()>>,
    stop: watch::Sender<bool>,
    pub(super) gate: Gate,
    pub(super) way: Arc<Mutex<Way>>,
    /// Milliseconds by which its clock is ahead.
    pub(super) skew: Arc<AtomicI64>,
    pub(super) cache: Store,
    /// Live streams whose source it asks.
    pub(super) held: Arc<Mutex<BTreeSet<String>>>,
    pub(super) streams: Arc<Mutex<Vec<Stream>>>,
    /// When it was started, paused, resumed, cut off or connected again.
    pub(super) disturbed: Instant,
}

impl Member {
    /// Starts a run of a node.
    pub(super) fn start(name: &str, etcd: &EtcdStore, origin: &Publisher, began: Instant, skew: i64) -> Self {
        let host = Host { machine: Machine::detect(), variable: &|_| None };
        let mut settings = ClusterSettings::defaults(&host);
        settings.node = Some(name.to_owned());
        settings.prefix = "/m/".to_owned();
        settings.lease = LEASE;
        (settings.mbps, settings.storage_mbps) = (Some(NODE_MBPS), Some(STORAGE_MBPS));
        let addresses = Addresses { http: Some(address(name)), ..Addresses::default() };
        let metrics = ClusterMetrics::register(&mut Metrics::default());
        let events = Events::new(name, 10, &EventMetrics::register(&mut Metrics::default()));
        let skew = Arc::new(AtomicI64::new(skew));
        let ahead = skew.clone();
        let clock = move |by: i64| {
            let (at, ms) = (EPOCH + began.elapsed(), Duration::from_millis(by.unsigned_abs()));
            if by < 0 { at - ms } else { at + ms }
        };
        let begun = skew.load(Ordering::Relaxed);
        let clocks = WallClocks {
            system: WallClock::of(move || clock(ahead.load(Ordering::Relaxed))),
            bookings: WallClock::of(move || clock(begun)),
            runs: WallClock::default(),
        };
        let way = Arc::new(Mutex::new(Way { delay: Duration::from_millis(5), ..Way::default() }));
        let registry = Registry::Simulated(SimulatedEtcd { store: etcd.clone(), way: way.clone() });
        let cluster =
            Cluster::of_registry((registry, fastrand::u64(1..)), (&settings, addresses), (metrics, events), clocks)
                .unwrap();
        let cache = Store::new(&StoreOptions::default()).unwrap();
        cache.add_place("films", Arc::new(origin.clone()));
        cluster.purges.set_cache(PurgedCache { store: cache.clone(), file: "/nonexistent/purged.json".into() });
        let (stop, stopped) = watch::channel(false);
        let mut member = Self {
            name: name.to_owned(),
            cluster: cluster.clone(),
            tasks: Vec::new(),
            stop,
            gate: Gate::default(),
            way,
            skew,
            cache,
            held: Arc::default(),
            streams: Arc::default(),
            disturbed: Instant::now(),
        };
        // The tasks that a node starts when it joins, but those that probe addresses.
        member.spawn(cluster.clone().register(LoadMeter::new(Counted::default), stopped.clone()));
        member.spawn(cluster.clone().follow(stopped.clone()));
        member.spawn(cluster.clone().notice_pauses(stopped.clone()));
        member.spawn(cluster.clone().tidy_purges(stopped.clone()));
        member.spawn(cluster.clone().keep_books(stopped.clone()));
        let held = member.held.clone();
        let read = move || {
            let asked = held.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
            HeldStreams { pushed: Vec::new(), asked }
        };
        member.spawn(cluster.clone().tell_streams(read));
        member.spawn(async move {
            while !cluster.purges.is_current() || !cluster.is_member() {
                sleep(Duration::from_millis(20)).await;
            }
            // As before a node serves.
            let end = Instant::now() + Duration::from_secs(3);
            loop {
                let view = cluster.view();
                cluster.compare_clocks(&view);
                if view.nodes().iter().all(|node| node.name == *cluster.name())
                    || cluster.has_compared(&view)
                    || Instant::now() >= end
                {
                    break;
                }
                sleep(Duration::from_millis(50)).await;
            }
            cluster.serves();
        });
        member
    }

    /// Runs something as this node: it waits while the node is paused, and ends when the node dies.
    pub(super) fn spawn(&mut self, future: impl Future<Output = ()> + Send + 'static) {
        self.tasks.retain(|task| !task.is_finished());
        self.tasks.push(tokio::spawn(self.gate.holds(future)));
    }

    /// Bandwidth of its streams, of which those that are over end.
    pub(super) fn sent(&self) -> Bitrate {
        let now = Instant::now();
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|stream| stream.ends.is_none_or(|end| end > now));
        Bitrate::from_bps(streams.iter().map(|stream| stream.rate.bps()).sum())
    }

    /// Whether it serves viewers.
    pub(super) fn serves(&self) -> bool {
        self.cluster.is_serving.load(Ordering::Relaxed) && !self.gate.is_paused()
    }

    pub(super) fn is_cut(&self) -> bool {
        self.way.lock().unwrap_or_else(PoisonError::into_inner).is_cut
    }

    /// Whether nothing has happened to it for some time.
    pub(super) fn is_settled(&self, time: Duration) -> bool {
        self.serves() && !self.is_cut() && self.disturbed.elapsed() > time
    }

    /// Ends it as SIGTERM does.
    pub(super) fn leave(&mut self) {
        self.cluster.leaves.send_replace(true);
        self.stop.send_replace(true);
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Drop for Member {
    /// Ends it as SIGKILL does.
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// The address of a node.
pub(super) fn address(name: &str) -> Arc<str> {
    format!("http://{name}.example").into()
}
