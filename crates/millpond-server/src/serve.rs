//! A server, put together: places, store, library, front end, listeners; and taken apart again without breaking
//! responses under way.

use crate::{
    access::Gates,
    admin,
    cluster::{self, Cluster, JoinError, LaterCluster, LoadMeter, PlaceHomes},
    config::{Config, LadderConfig, PlaceConfig},
    engine,
    http::{Front, FrontOptions, Service, accept_plain, accept_tls},
    intercept::{self, Intercept},
    library::{AssetOptions, Library, LibraryOptions, Places, Survey},
    live::{
        self, Ladders, LaterSources, LivePlace, LivePlaceError, OwnerRelay, SourceConnector, Sources, window_options,
    },
    metrics::Metrics,
    recordings::Recordings,
    rtmp::{self, Rtmp},
    rtsp::{self, Rtsp, RtspOptions},
    storage, tls,
    work::{PoolOptions, WorkPool},
};
use http::HeaderValue;
use millpond_store::{ErrorKind, Homes, ObjectPath, OriginError, PlaceSource, Store};
use millpond_stream::reception::Relay;
use std::{collections::HashMap, io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::TcpListener,
    sync::watch,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// An address can't be listened on.
    #[error("--{flag} {addr}: {error}{hint}")]
    Bind {
        /// The flag that names the address.
        flag: &'static str,
        /// The address.
        addr: SocketAddr,
        /// Error of the system.
        error: io::Error,
        /// Advice, if there is any.
        hint: &'static str,
    },
    /// The store or a place can't be opened.
    #[error("{0}")]
    Storage(#[from] storage::StorageError),
    /// A place's URL can't be that of live streams.
    #[error("{place}: {error}")]
    Live {
        /// The place, without secrets.
        place: String,
        /// The fault.
        error: LivePlaceError,
    },
    /// The certificate can't be used.
    #[error("{0}")]
    Tls(#[from] tls::TlsError),
    /// The system gives no threads.
    #[error("starting threads: {0}")]
    Threads(io::Error),
    /// The cluster's settings can't be used, or another node has this node's name.
    #[error("cluster: {0}")]
    Cluster(String),
    /// A file of users or of keys can't be used.
    #[error("access: {0}")]
    Access(String),
    /// A configured value can't be sent in a header field.
    #[error("cors-origin {0:?}: not a value for a header field")]
    CorsOrigin(String),
}

/// A server that listens but serves nobody yet.
pub struct Server {
    config: Config,
    http: TcpListener,
    https: Option<(TcpListener, TlsAcceptor, Arc<tls::Certificates>)>,
    admin: TcpListener,
    rtsp: (rtsp::Listeners, Arc<Rtsp>),
    rtmp: (rtmp::Listeners, Arc<Rtmp>),
    /// Where connections are intercepted.
    intercept: Option<(TcpListener, Arc<Intercept>)>,
    service: Arc<Service>,
    store: Store,
    places: Places,
    metrics: Arc<Metrics>,
    pool: Arc<WorkPool>,
    library: Arc<Library>,
    sources: Arc<Sources>,
    gates: Arc<Gates>,
    /// The cluster and the tasks of this node, where it is one.
    cluster: Option<(Arc<Cluster>, cluster::Tasks)>,
}

impl Server {
    /// Opens the places and binds every address.
    ///
    /// # Errors
    /// The first thing that stands in the way.
    pub async fn bind(config: Config) -> Result<Self, ServeError> {
        let places: Vec<_> = config.places.iter().map(|place| (&place.spec, &place.options)).collect();
        let later = LaterCluster::default();
        let homes = |place: &str| -> Option<Arc<dyn Homes>> {
            config.cluster.is_on().then(|| Arc::new(PlaceHomes::new(later.clone(), place)) as Arc<dyn Homes>)
        };
        let (store, names) = storage::open(&config.storage, &places, homes)?;
        let places = Places::new(names);
        let http = listen("http", config.http.address)?;
        let admin = listen("admin", config.admin.address)?;
        let (mut https, mut rtsps, mut rtmps) = (None, None, None);
        if let Some(source) = config.tls.source() {
            let certificates = tls::Certificates::open(&source)?;
            let http = certificates.server_config(&[b"h2", b"http/1.1"])?;
            if let Some(addr) = config.rtsp.rtsps {
                // It has no name among the protocols of ALPN.
                rtsps = Some((listen("rtsps", addr)?, TlsAcceptor::from(certificates.server_config(&[])?)));
            }
            if let Some(addr) = config.rtmp.rtmps {
                rtmps = Some((listen("rtmps", addr)?, TlsAcceptor::from(certificates.server_config(&[])?)));
            }
            if let Some(addr) = config.http.https {
                https = Some((listen("https", addr)?, TlsAcceptor::from(http), certificates));
            }
        }
        let pool = WorkPool::new(PoolOptions { threads: config.limits.workers }, store.memory());
        let pool = Arc::new(pool.map_err(ServeError::Threads)?);
        let library = Arc::new(Library::new(store.clone(), pool.clone(), library_options(&config)));
        let metrics = Arc::new(Metrics::new(&store, &library, &places));
        // Without it indexes and segments are kept in memory only.
        if let Err(error) = std::fs::create_dir_all(&config.storage.folder) {
            tracing::warn!(folder = %config.storage.folder.display(), %error, "can't make the cache folder");
        }
        if let Some(folder) = &config.record.folder
            && let Err(error) = std::fs::create_dir_all(folder)
        {
            tracing::error!(folder = %folder.display(), %error, "can't make the folder of recordings");
        }
        let cors_origin = match &config.http.cors_origin {
            Some(value) => Some(HeaderValue::from_str(value).map_err(|_| ServeError::CorsOrigin(value.clone()))?),
            None => None,
        };
        let lifetimes = if config.places.is_empty() {
            vec![config.lifetimes; places.iter().count()]
        } else {
            config.places.iter().map(|place| place.lifetimes).collect()
        };
        let plain = config.rtmp.address.map(|addr| listen("rtmp", addr)).transpose()?;
        let rtmp_listeners = rtmp::Listeners { plain, secure: rtmps };
        let listeners = rtsp::Listeners { plain: listen("rtsp", config.rtsp.address)?, secure: rtsps };
        let port = |listener: &TcpListener| listener.local_addr().map(|address| address.port()).ok();
        let own: Vec<_> = config.places.iter().map(|place| &place.access).collect();
        // The built-in sample has the rules of the server.
        let own = if own.is_empty() { vec![&config.access; places.iter().count()] } else { own };
        let gates = Gates::open(places.clone(), (&own, &config.access), &metrics.access);
        let gates = Arc::new(gates.map_err(|error| ServeError::Access(error.to_string()))?);
        let rtsp_options = RtspOptions {
            gates: gates.clone(),
            settings: config.rtsp.clone(),
            publish: config.publish.clone(),
            limits: config.limits,
            access_log: config.log.access,
        };
        let no_rtsp = |error| ServeError::Bind { flag: "rtsp", addr: config.rtsp.address, error, hint: "" };
        let settings = (&config.rtsp, &config.limits);
        let later_sources = LaterSources::default();
        // A node that asks for passwords is none that others take streams from.
        let is_relayed = config.cluster.is_on() && config.rtsp.users.is_none();
        let relay =
            is_relayed.then(|| Arc::new(OwnerRelay::new(later.clone(), later_sources.clone())) as Arc<dyn Relay>);
        let means = (SourceConnector::new(config.intercept.mark), relay);
        let manager = engine::start(store.clone(), pool.clone(), &places, settings, means, &metrics.rtsp);
        let manager = manager.map_err(no_rtsp)?;
        let windows = config.places.iter().map(|place| window_options(&place.live)).collect();
        let live = live_places(&config)?;
        let assets = (library.clone(), places.clone());
        let sources = Arc::new(Sources::new(assets, live, windows, &config.rtsp.channels, manager));
        let _ = later_sources.set(Arc::downgrade(&sources));
        let own = (http.local_addr().ok(), listeners.plain.local_addr().ok());
        let cluster = node(&config, own, &metrics)?;
        if let Some(cluster) = &cluster {
            let _ = later.set(cluster.clone());
        }
        let rtsp = Rtsp::new((sources.clone(), cluster.clone()), rtsp_options, &metrics.rtsp).map_err(no_rtsp)?;
        let rtmp = Rtmp::new(sources.clone(), rtsp.publishers(), &config.limits, config.log.access, &metrics.rtmp);
        let options = FrontOptions {
            cors_origin,
            access_log: config.log.access,
            folder: config.storage.folder.clone(),
            lifetimes,
            publishers: rtsp.publishers(),
            gates: gates.clone(),
            cluster: cluster.clone(),
            rtsp_ports: (
                port(&listeners.plain).unwrap_or(config.rtsp.address.port()),
                listeners.secure.as_ref().and_then(|(listener, _)| port(listener)),
            ),
        };
        let front =
            Front::new(store.clone(), library.clone(), places.clone(), sources.clone(), metrics.http.clone(), options);
        let front = Arc::new(front);
        let service = Arc::new(Service::new(front, config.limits.timeouts, config.limits.max_connections));
        let intercepted = config.intercept.address.map(|addr| listen("intercept", addr)).transpose()?;
        let intercept = intercepted.map(|listener| {
            let intercept =
                Intercept::new(&config, sources.manager().clone(), (service.clone(), rtsp.clone()), &metrics.intercept);
            (listener, Arc::new(intercept))
        });
        let (rtsp, rtmp) = ((listeners, rtsp), (rtmp_listeners, rtmp));
        let cluster = match cluster {
            Some(cluster) => {
                let tasks = cluster.join(load_meter(&metrics, &store)).await;
                let tasks = tasks.map_err(|error: JoinError| ServeError::Cluster(error.to_string()))?;
                if sources.has_pushed() {
                    let sources = sources.clone();
                    tokio::spawn(cluster.clone().tell_pushed(move || sources.pushed()));
                }
                Some((cluster, tasks))
            }
            None => None,
        };
        Ok(Self {
            config,
            http,
            https,
            admin,
            rtsp,
            rtmp,
            intercept,
            service,
            store,
            places,
            metrics,
            pool,
            library,
            sources,
            gates,
            cluster,
        })
    }

    /// The address of plain HTTP.
    ///
    /// # Errors
    /// The system's, where it can't tell.
    pub fn http_addr(&self) -> io::Result<SocketAddr> {
        self.http.local_addr()
    }

    /// The address of metrics and health.
    ///
    /// # Errors
    /// The system's, where it can't tell.
    pub fn admin_addr(&self) -> io::Result<SocketAddr> {
        self.admin.local_addr()
    }

    /// The address of RTSP.
    ///
    /// # Errors
    /// The system's, where it can't tell.
    pub fn rtsp_addr(&self) -> io::Result<SocketAddr> {
        self.rtsp.0.plain.local_addr()
    }

    /// The address of HTTPS, where it is served.
    pub fn https_addr(&self) -> Option<SocketAddr> {
        self.https.as_ref().and_then(|(listener, ..)| listener.local_addr().ok())
    }

    /// The address of RTSP over TLS, where it is served.
    pub fn rtsps_addr(&self) -> Option<SocketAddr> {
        self.rtsp.0.secure.as_ref().and_then(|(listener, _)| listener.local_addr().ok())
    }

    /// The addresses of RTMP and of RTMP over TLS, where they are served.
    pub fn rtmp_addrs(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        let rtmp::Listeners { plain, secure } = &self.rtmp.0;
        let secure = secure.as_ref().map(|(listener, _)| listener);
        let address = |listener: Option<&TcpListener>| listener.and_then(|listener| listener.local_addr().ok());
        (address(plain.as_ref()), address(secure))
    }

    /// Returns the survey of each place, with the paths of `most` assets each, for the first words to the user.
    pub async fn surveys(&self, most: usize) -> Vec<Survey> {
        let mut surveys = Vec::new();
        for place in self.places.iter().filter(|place| !self.sources.is_live(place)) {
            let config = self.config.places.iter().find(|config| config.spec.name == **place);
            let local = config.is_none_or(|config| !config.spec.is_remote());
            let survey = timeout(Duration::from_secs(3), self.library.survey(place, local, most)).await;
            surveys.push(survey.unwrap_or_else(|_| Survey {
                place: place.to_string(),
                failed: Some("no answer within 3 s".to_owned()),
                ..Survey::default()
            }));
        }
        surveys
    }

    /// Returns name and address of each place with live streams. Addresses are without secrets.
    pub fn live_places(&self) -> Vec<(String, String)> {
        let live = self.config.places.iter().filter(|place| place.spec.is_live());
        live.map(|place| (place.spec.name.clone(), place.spec.source.to_string())).collect()
    }

    /// Serves until `stop` turns true, then finishes what is under way within the configured grace.
    pub async fn run(self, stop: watch::Receiver<bool>) {
        let Self {
            config,
            http,
            https,
            admin,
            rtsp: (rtsp_listeners, rtsp),
            rtmp: (rtmp_listeners, rtmp),
            intercept,
            service,
            store,
            places,
            metrics,
            pool,
            library: _,
            sources,
            gates,
            cluster,
        } = self;
        let (cluster, tasks) = cluster.unzip();
        let stop = until_retired(stop, cluster.clone());
        gates.watch(&stop);
        // Live sources are asked when viewers come, not before.
        let stored = || places.iter().filter(|place| !sources.is_live(place));
        let readiness = Arc::new(admin::Readiness::new(stored().map(|p| p.to_string())));
        let front = service.front.clone();
        let recordings = Recordings::new(config.record.clone(), sources.clone()).map(Arc::new);
        let admin_state = admin::AdminState {
            metrics: metrics.clone(),
            readiness: readiness.clone(),
            front,
            manager: sources.manager().clone(),
            sources: sources.clone(),
            cluster: cluster.clone(),
            recordings: recordings.clone(),
            serving: tokio::runtime::Handle::current(),
            hosts: admin::AllowedHosts::new(config.admin.address, &config.admin.hosts),
            limits: service.timeouts,
        };
        let (admin_stop, admin_stopped) = watch::channel(false);
        let admin_ended = admin::start(admin, admin_state, admin_stopped);
        if let Err(error) = &admin_ended {
            tracing::error!(%error, "metrics and health are not served");
        }
        for place in stored() {
            tokio::spawn(watch_place(store.clone(), place.clone(), readiness.clone(), stop.clone()));
        }
        if let Some((folder, limits)) = live::sweep_limits(&config) {
            tokio::spawn(live::sweep(sources.manager().clone(), folder, limits, stop.clone()));
        }
        let streams = tokio::spawn(rtsp::accept(rtsp_listeners, rtsp, stop.clone()));
        let pushed = tokio::spawn(rtmp::accept(rtmp_listeners, rtmp, stop.clone()));
        let (listener, intercept) = intercept.unzip();
        let intercepted = listener.zip(intercept.clone());
        let intercepted = intercepted.map(|(listener, of)| tokio::spawn(intercept::accept(listener, of, stop.clone())));
        let plain = tokio::spawn(accept_plain(http, service.clone(), stop.clone()));
        let secure = https.map(|(listener, acceptor, certificates)| {
            let expires = move |validity: Option<(i64, i64)>| {
                if let Some((_, to)) = validity {
                    metrics.tls.certificate_expiry(to);
                }
            };
            expires(certificates.validity());
            if let Some(warning) = certificates.date_warning(std::time::SystemTime::now()) {
                tracing::warn!("{warning}");
            }
            tokio::spawn(tls::watch(certificates, stop.clone(), expires));
            tokio::spawn(accept_tls(listener, acceptor, service.clone(), stop.clone()))
        });
        readiness.listening();
        if let Some(cluster) = &cluster {
            cluster.serves();
        }
        let _ = plain.await;
        service.front.end_streams();
        let _ = streams.await;
        let _ = pushed.await;
        if let Some(recordings) = recordings {
            recordings.end().await;
        }
        if let Some(secure) = secure {
            let _ = secure.await;
        }
        if let Some(intercepted) = intercepted {
            let _ = intercepted.await;
        }
        readiness.draining();
        let drained = async {
            service.drained().await;
            if let Some(intercept) = &intercept {
                intercept.drained().await;
            }
        };
        if timeout(config.limits.shutdown_grace, drained).await.is_err() {
            let connections = service.open() + intercept.as_ref().map_or(0, |intercept| intercept.open());
            tracing::warn!(connections, "responses cut off: the grace for shutting down is over");
            service.cut().await;
            if let Some(intercept) = &intercept {
                intercept.cut().await;
            }
        }
        if let Some(tasks) = tasks {
            tasks.leave().await;
        }
        pool.stop();
        let _ = admin_stop.send(true);
        if let Ok(ended) = admin_ended {
            let _ = timeout(Duration::from_secs(2), ended).await;
        }
    }
}

/// The cluster of this node, where it is one of a cluster. Nothing is asked of etcd yet.
fn node(
    config: &Config,
    (http, rtsp): (Option<SocketAddr>, Option<SocketAddr>),
    metrics: &Metrics,
) -> Result<Option<Arc<Cluster>>, ServeError> {
    if !config.cluster.is_on() {
        return Ok(None);
    }
    let (http, rtsp) = (http.unwrap_or(config.http.address), rtsp.unwrap_or(config.rtsp.address));
    let addresses = cluster::addresses(&config.cluster, http, rtsp);
    let cluster = Cluster::new(&config.cluster, addresses, metrics.cluster.clone());
    cluster.map(Some).map_err(ServeError::Cluster)
}

/// Measures what this server sends.
fn load_meter(metrics: &Metrics, store: &Store) -> LoadMeter {
    let (http, streams, store) = (metrics.http.clone(), metrics.rtsp.streams.clone(), store.clone());
    LoadMeter::new(move || {
        let playing = u32::try_from(streams.playing()).unwrap_or(u32::MAX);
        let places = store.stats().places.into_iter();
        cluster::Counted {
            sent: http.sent_bytes() + streams.sent_bytes(),
            sessions: http.responses().saturating_add(playing),
            read: places.map(|place| (place.name.into(), place.origin_bytes)).collect(),
        }
    })
}

/// Turns true when `stop` has, and the other nodes know that this one leaves.
fn until_retired(mut stop: watch::Receiver<bool>, cluster: Option<Arc<Cluster>>) -> watch::Receiver<bool> {
    let Some(cluster) = cluster else { return stop };
    let (retired, stopped) = watch::channel(false);
    tokio::spawn(async move {
        let _ = stop.wait_for(|stop| *stop).await;
        cluster.retire().await;
        retired.send_replace(true);
    });
    stopped
}

/// Asks a place until it answers once: then it is ready.
async fn watch_place(store: Store, place: Arc<str>, readiness: Arc<admin::Readiness>, mut stop: watch::Receiver<bool>) {
    loop {
        match ask(&store, &place).await {
            Ok(()) => return readiness.place_answered(&place),
            Err(error) => tracing::warn!(place = %place, %error, "place does not answer yet"),
        }
        tokio::select! {
            () = sleep(Duration::from_secs(5)) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

/// A plain web server can't list its root: there, any answer will do, most likely that there is no such file.
async fn ask(store: &Store, place: &str) -> Result<(), OriginError> {
    let error = match store.list(place, &ObjectPath::root()).await {
        Ok(_) => return Ok(()),
        Err(OriginError::Unsupported { .. }) => {
            let Ok(path) = ObjectPath::parse("index.html") else { return Ok(()) };
            match store.open(place, &path).await {
                Ok(_) => return Ok(()),
                Err(error) => error,
            }
        }
        Err(error) => error,
    };
    // An answer that refuses is an answer; silence and credentials that nobody takes are not.
    match error.kind() {
        ErrorKind::NotFound if !matches!(error, OriginError::NoSuchBucket { .. }) => Ok(()),
        ErrorKind::Protocol => Ok(()),
        _ if matches!(error, OriginError::Forbidden { .. }) => Ok(()),
        _ => Err(error),
    }
}

/// Obstacles to serving a configuration here and now: places that are not there and certificates that can't
/// be read, then addresses that can't be listened on. Origins are not asked.
pub fn obstacles(config: &Config) -> (Vec<ServeError>, Vec<ServeError>) {
    let places = config.places.iter();
    let mut wrong: Vec<ServeError> = places
        .filter(|place| !place.spec.is_live())
        .filter_map(|PlaceConfig { spec, options, .. }| {
            millpond_store::build(spec, options).err().map(storage::StorageError::from).map(ServeError::from)
        })
        .collect();
    wrong.extend(live_places(config).err());
    let certificate = config.tls.source().and_then(|source| tls::Certificates::open(&source).err());
    wrong.extend(certificate.map(ServeError::from));
    let taken = config.listeners().into_iter().filter_map(|(flag, addr)| bind(flag, addr?).err()).collect();
    (wrong, taken)
}

fn library_options(config: &Config) -> LibraryOptions {
    let of = |place: &PlaceConfig| {
        let options = AssetOptions {
            key_address: place.key_address.clone(),
            titles: place.options.titles,
            is_live: place.spec.is_live(),
        };
        (Arc::from(place.spec.name.as_str()), options)
    };
    LibraryOptions {
        segment_duration: config.http.segment_duration,
        index_folder: Some(config.storage.folder.join("index")),
        cache_size: config.storage.cache_size,
        places: config.places.iter().map(of).collect(),
    }
}

/// The places with live streams.
///
/// # Errors
/// The first URL that can't be that of a stream.
fn live_places(config: &Config) -> Result<HashMap<Arc<str>, LivePlace>, ServeError> {
    let folder = &config.storage.shift_folder;
    let of = |PlaceConfig { spec, live, ladders, .. }: &PlaceConfig| {
        let place = LivePlace::new(&spec.source, live, folder).transpose()?;
        let place = place.map_err(|error| ServeError::Live { place: spec.source.to_string(), error });
        let named = ladders.iter().map(|LadderConfig { name, streams }| (name.clone(), streams.clone()));
        let place = place.map(|place| place.with_ladders(Ladders::new(named, spec.source == PlaceSource::Publish)));
        Some(place.map(|place| (Arc::from(spec.name.as_str()), place)))
    };
    config.places.iter().filter_map(of).collect()
}

fn listen(flag: &'static str, addr: SocketAddr) -> Result<TcpListener, ServeError> {
    let listener = TcpListener::from_std(bind(flag, addr)?);
    listener.map_err(|error| ServeError::Bind { flag, addr, error, hint: "" })
}

fn bind(flag: &'static str, addr: SocketAddr) -> Result<std::net::TcpListener, ServeError> {
    let open = || -> io::Result<std::net::TcpListener> {
        let domain = if addr.is_ipv4() { socket2::Domain::IPV4 } else { socket2::Domain::IPV6 };
        let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        if flag == "intercept" {
            intercept::transparent(&socket, addr.is_ipv4())?;
        }
        socket.bind(&addr.into())?;
        socket.listen(4096)?;
        Ok(socket.into())
    };
    open().map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::AddrInUse => {
                ": another program listens there; stop it, or choose another address with this flag"
            }
            io::ErrorKind::PermissionDenied if flag == "intercept" => {
                ": interception needs CAP_NET_ADMIN; see docs/interception.md"
            }
            io::ErrorKind::PermissionDenied => {
                ": ports below 1024 need privileges; choose a higher port with this flag"
            }
            io::ErrorKind::AddrNotAvailable => ": this machine doesn't have that address",
            _ => "",
        };
        ServeError::Bind { flag, addr, error, hint }
    })
}
