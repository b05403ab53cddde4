//! Parts that live as long as the server. A reload changes their settings.

use super::{
    Generation, ServeError,
    generation::{feeds_nodes, place_names},
    prints::prints,
};
#[cfg(feature = "transcode-sound")]
use crate::opus::OpusKind;
use crate::{
    audience::Audience,
    cluster::{self, Cluster, LaterCluster, LoadMeter, NodeListeners, PlaceHomes, PurgedCache, WallClocks},
    config::{Config, PlaceConfig},
    engine,
    events::Events,
    hooks::Hooks,
    http::Thumbnails,
    library::{AssetOptions, Library, LibraryOptions, Places},
    live::{Copies, LaterSources, OwnerRelay, SourceConnector, SourceWeb},
    metrics::Metrics,
    modules::KindSet,
    priority::{self, Duty},
    recordings::{ArchiverKind, RecorderKind},
    schedule::Schedules,
    srt::SrtPort,
    statistics::Statistics,
    storage,
    webrtc::WebRtc,
    work::{PoolOptions, WorkPool},
};
use millpond_connections::BindError;
use millpond_package::CaptionRule;
use millpond_store::{Homes, Origin, Store};
use millpond_stream::{
    AttachableKind, Manager,
    reception::{Relay, Upstream},
};
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, PoisonError},
};
use tokio::{sync::watch, task::JoinHandle};

/// Parts that live as long as the server.
pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) pool: Arc<WorkPool>,
    pub(crate) library: Arc<Library>,
    pub(crate) metrics: Arc<Metrics>,
    /// Viewers of HTTP, and those that are refused.
    pub(crate) audience: Arc<Audience>,
    pub(crate) manager: Arc<Manager>,
    /// Events of streams, viewers, recordings and disks.
    pub(crate) events: Arc<Events>,
    /// Streams that play at given times.
    pub(crate) schedules: Arc<Schedules>,
    /// Statistics of viewing.
    pub(crate) statistics: Arc<Statistics>,
    /// Those who get the events.
    pub(super) hooks: Hooks,
    /// WebRTC; `None` where it is off.
    pub(crate) webrtc: Option<Arc<WebRtc>>,
    /// The port of SRT; `None` where it is off.
    pub(crate) srt: Option<Arc<SrtPort>>,
    /// The kinds of modules that operators attach.
    pub(super) kinds: KindSet,
    /// The kind that records.
    pub(super) recorder: Arc<RecorderKind>,
    /// The kind that records without an end.
    pub(super) archiver: Arc<ArchiverKind>,
    /// The cluster, where this server is a node of one.
    pub(crate) cluster: Option<Arc<Cluster>>,
    /// Copies of live streams of other nodes.
    pub(super) copies: Option<Arc<Copies>>,
    later_cluster: LaterCluster,
    sources: LaterSources,
}

/// Addresses of the listeners that other nodes of a cluster reach; `None` for a listener without one.
#[derive(Clone, Copy)]
pub(super) struct BoundAddresses {
    pub(super) http: Option<SocketAddr>,
    pub(super) rtsp: Option<SocketAddr>,
    pub(super) nodes: Option<SocketAddr>,
}

/// Origins of places by their names.
pub(super) type Origins = Vec<(Arc<str>, Arc<dyn Origin>)>;

impl Parts {
    /// Makes them. A process that `takes_over` from another one opens the disk later. `kinds` are those of modules beside the
    /// built-in ones.
    ///
    /// # Errors
    /// A place can't be opened, a thread not be started, or the cluster's settings are wrong.
    pub(super) fn start(
        config: &Config,
        own: BoundAddresses,
        takes_over: bool,
        kinds: Vec<Arc<dyn AttachableKind>>,
    ) -> Result<Self, ServeError> {
        let later_cluster = LaterCluster::default();
        let origins = origins(config, None, &later_cluster)?;
        let store =
            storage::store(&config.storage, config.has_remote() && !takes_over).map_err(storage::StorageError::from)?;
        for (name, origin) in origins {
            store.add_place(&name, origin);
        }
        let places = Places::new(place_names(config));
        let pool = WorkPool::new(PoolOptions { threads: config.limits.workers }, store.memory());
        let pool = Arc::new(pool.map_err(ServeError::Threads)?);
        let library = Arc::new(Library::new(store.clone(), pool.clone(), library_options(config)));
        let metrics = Arc::new(Metrics::new(&store, &library, &places));
        let sources = LaterSources::default();
        let relay = feeds_nodes(config)
            .then(|| Arc::new(OwnerRelay::new(later_cluster.clone(), sources.clone())) as Arc<dyn Relay>);
        let connector = Arc::new(SourceConnector::new(config.intercept.mark, later_cluster.clone()));
        let upstream = Upstream { connector, web: Arc::new(SourceWeb::default()), relay };
        let events = Events::new(&config.cluster.machine(), config.hooks.queue, &metrics.events);
        let hooks = Hooks::new(events.clone(), &metrics.hooks);
        let clocks = WallClocks::default();
        let settings = (&config.rtsp, &config.limits, &clocks.runs);
        let manager =
            engine::start(store.clone(), pool.clone(), &places, settings, upstream, events.clone(), &metrics.rtsp);
        let no_rtsp = |error| BindError { flag: "rtsp", addr: config.rtsp.address, error, hint: "" };
        let manager = manager.map_err(no_rtsp)?;
        let more = (config.log.access.is_on(), config.limits.max_connections);
        let webrtc = WebRtc::open(&config.webrtc, manager.clone(), &metrics.webrtc, more);
        let webrtc = webrtc.map_err(|error| {
            let addr = config.webrtc.address.unwrap_or(config.http.address);
            BindError::new("webrtc", addr, error)
        })?;
        let srt = SrtPort::open(&config.srt, config.limits.max_connections, &metrics.srt);
        let srt = srt.map_err(|error| {
            let addr = config.srt.address.unwrap_or(config.http.address);
            BindError::new("srt", addr, error)
        })?;
        let cluster = node(config, own, (&metrics, &events, clocks))?;
        if let Some(cluster) = &cluster {
            let _ = later_cluster.set(cluster.clone());
        }
        let copies = cluster.as_ref().map(|cluster| Copies::new(cluster.clone(), sources.clone()));
        let audience = Arc::default();
        let statistics = Arc::new(Statistics::new(config.storage.statistics_file.clone(), &metrics.statistics));
        let recorder = Arc::new(RecorderKind::new(config.record.clone(), manager.clone(), events.clone()));
        let archiver = ArchiverKind::new(&config.record, manager.clone(), &events, &metrics.recordings)?;
        let archiver = Arc::new(archiver);
        let own: Vec<Arc<dyn AttachableKind>> = vec![
            recorder.clone(),
            archiver.clone(),
            #[cfg(feature = "transcode-sound")]
            Arc::new(OpusKind),
        ];
        let kinds = KindSet::new(own.into_iter().chain(manager.attachable_kinds()).chain(kinds));
        Ok(Self {
            store,
            pool,
            library,
            metrics,
            audience,
            manager,
            schedules: Arc::new(Schedules::new(events.clone())),
            events,
            statistics,
            hooks,
            webrtc,
            srt,
            kinds,
            recorder,
            archiver,
            cluster,
            copies,
            later_cluster,
            sources,
        })
    }

    /// Makes the origins of the places that are new or have changed since the configuration `before`.
    ///
    /// # Errors
    /// A place can't be opened.
    pub(super) fn origins(&self, config: &Config, before: &Config) -> Result<Origins, ServeError> {
        origins(config, Some(before), &self.later_cluster)
    }

    /// Changes the settings of all parts to those of a generation. `origins` are those of new and changed places, and `replaced`
    /// the places whose assets are opened anew. Returns warnings.
    pub(super) fn reconfigure(&self, new: &Generation, origins: Origins, replaced: &[Arc<str>]) -> Vec<String> {
        let config = &new.config;
        let warnings = storage::reconfigure(&self.store, &config.storage, config.has_remote());
        for (name, origin) in origins {
            self.store.add_place(&name, origin);
        }
        self.library.reconfigure(library_options(config).places, replaced);
        self.metrics.set_places(new.front.sent_bytes());
        let fixed = self.manager.options();
        let upstream = fixed.upstream.clone();
        let options = config.rtsp.engine(&config.limits, fixed.clock.clone(), upstream, fixed.notices.clone(), || {
            priority::raise(Duty::Sending)
        });
        self.manager.reconfigure(options, new.places.iter().cloned());
        self.recorder.reconfigure(config.record.clone());
        self.archiver.reconfigure(&config.record);
        self.hooks.reconfigure(&config.hooks);
        self.follow(new);
        warnings
    }

    /// Tells the sources of a generation to those that look for streams of other nodes, and its settings to the other nodes.
    pub(super) fn follow(&self, new: &Generation) {
        *self.sources.write().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&new.sources);
        if let Some(cluster) = &self.cluster {
            cluster.set_prints(prints(&new.config));
        }
    }

    /// Starts the task that opens the disk cache once the process before this one has given it up. It ends where `leaving` turns true.
    pub(super) fn take_disk_over(&self, config: &Config, leaving: watch::Receiver<bool>) -> JoinHandle<()> {
        let settings = config.storage.clone();
        tokio::spawn(storage::take_disk_over(self.store.clone(), settings, config.has_remote(), leaving))
    }

    /// The cache that purges of the cluster concern.
    pub(super) fn purged_cache(&self, config: &Config) -> PurgedCache {
        PurgedCache { store: self.store.clone(), file: config.storage.folder.join("purged.json") }
    }

    /// Measures what this server sends.
    pub(super) fn load_meter(&self) -> LoadMeter {
        let (http, streams) = (self.metrics.http.clone(), self.metrics.rtsp.streams.clone());
        let store = self.store.clone();
        LoadMeter::new(move || {
            let playing = u32::try_from(streams.playing()).unwrap_or(u32::MAX);
            let read = |place: millpond_store::PlaceStats| cluster::PlaceRead {
                place: place.name.into(),
                stores: place.stripes.into_iter().map(|stripe| stripe.store.into()).collect(),
                bytes: place.origin_bytes,
            };
            cluster::Counted {
                sent: http.sent_bytes() + streams.sent_bytes(),
                sessions: http.responses().saturating_add(playing),
                read: store.stats().places.into_iter().map(read).collect(),
            }
        })
    }
}

/// Makes the origins of the places of a configuration, without those that were the same `before`.
fn origins(config: &Config, before: Option<&Config>, cluster: &LaterCluster) -> Result<Origins, ServeError> {
    let mut origins = Origins::new();
    if config.places.is_empty() && before.is_none_or(|before| !before.places.is_empty()) {
        origins.extend(place_names(config).into_iter().map(|name| (name, storage::sample())));
    }
    for place in config.places.iter().filter(|place| before.is_none_or(|before| has_other_origin(place, before))) {
        let name = place.spec.name.as_str();
        let homes = || Arc::new(PlaceHomes::new(cluster.clone(), name)) as Arc<dyn Homes>;
        let homes = config.cluster.is_on().then(homes);
        let origin = storage::origin((&place.spec, &place.options), homes)
            .map_err(|error| ServeError::of_place(place, error))?;
        origins.extend(origin.map(|origin| (Arc::from(name), origin)));
    }
    Ok(origins)
}

/// Whether a place has another location, other options of its origin, or another rule of titles, than `before`.
pub(super) fn has_other_origin(place: &PlaceConfig, before: &Config) -> bool {
    let before = crate::reload::place(before, &place.spec.name);
    let of = |place: &PlaceConfig| (place.spec.clone(), place.options.clone(), place.titles);
    before.is_none_or(|before| of(before) != of(place))
}

/// Returns the rule of captions of a place. The bundled sample has that of the server.
pub(super) fn captions<'a>(config: &'a Config, place: &str) -> &'a CaptionRule {
    let own = crate::reload::place(config, place).map(|place| &place.manifests);
    &own.unwrap_or(&config.manifests).captions
}

fn library_options(config: &Config) -> LibraryOptions {
    let of = |place: &PlaceConfig| {
        let options = AssetOptions {
            key_address: place.key_address.clone(),
            captions: place.manifests.captions.clone(),
            titles: place.titles,
            is_live: place.spec.is_live(),
        };
        (Arc::from(place.spec.name.as_str()), options)
    };
    let sample = AssetOptions { captions: config.manifests.captions.clone(), ..AssetOptions::default() };
    let places: HashMap<Arc<str>, _> = match config.places.as_slice() {
        [] => place_names(config).into_iter().map(|name| (name, sample.clone())).collect(),
        places => places.iter().map(of).collect(),
    };
    LibraryOptions {
        segment_duration: config.http.segment_duration,
        index_folder: Some(config.storage.folder.join("index")),
        cache_size: config.storage.cache_size,
        lists_thumbnails: config.http.thumbnails == Thumbnails::Listed,
        places,
    }
}

/// The cluster of this node, where it is one of a cluster. Nothing is asked of etcd yet.
fn node(
    config: &Config,
    BoundAddresses { http, rtsp, nodes }: BoundAddresses,
    (metrics, events, clocks): (&Metrics, &Arc<Events>, WallClocks),
) -> Result<Option<Arc<Cluster>>, ServeError> {
    if !config.cluster.is_on() {
        return Ok(None);
    }
    let listeners = NodeListeners {
        http: http.unwrap_or(config.http.address),
        rtsp: rtsp.unwrap_or(config.rtsp.address),
        https: config.http.https,
        nodes: config.cluster.node_listen.map(|configured| nodes.unwrap_or(configured)),
    };
    let addresses = cluster::addresses(&config.cluster, listeners);
    let cluster = Cluster::new(&config.cluster, addresses, metrics.cluster.clone(), events.clone(), clocks);
    let cluster = cluster.map_err(ServeError::Cluster)?;
    cluster.knows_its_addresses(listeners).map_err(ServeError::Cluster)?;
    Ok(Some(cluster))
}
