//! A server, put together: places, store, library, front end, listeners; and taken apart again without breaking
//! responses under way.

mod announced;
mod generation;
mod node_listener;
mod observed;
mod parts;
mod prints;
mod ready;
mod running;
mod sampled;
mod summary;
#[cfg(test)]
mod tests;

pub(crate) use generation::Generation;
pub(crate) use parts::Parts;
pub(crate) use running::Running;
pub use summary::{LiveSummary, Publishing};

#[cfg(feature = "transcode-sound")]
use crate::opus::OpusKind;
use crate::{
    admin::{AdminAddress, AdminListener},
    cluster::{Cluster, JoinError, Tasks, open_node_tls},
    config::{Config, Inputs, LadderConfig, Loaded, PlaceConfig},
    http::Front,
    intercept::{Intercept, InterceptOptions},
    library::Survey,
    live::{Copies, Ladders, LivePlace},
    modules, recordings,
    reload::Reloader,
    rtmp::CurrentRtmp,
    rtsp::CurrentRtsp,
    srt::CurrentSrt,
    storage,
    upgrade::{Predecessor, Program, Upgrader, tell_stopping},
    webrtc,
};
use arc_swap::ArcSwap;
use futures_util::FutureExt as _;
use millpond_connections::{BindError, Inherited, Listener, Listeners, bind, tls};
use millpond_http::wire::Service;
use millpond_place::LiveSourceError;
use millpond_settings::{ConfigError, Source};
use millpond_stream::{AttachableKind, ModuleDeclaration, PUSH, modules::TEE};
use parts::BoundAddresses;
use running::{Ending, Made, Sockets, wanted};
use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::watch, time::timeout};

/// Time for which the start counts assets beside those that it names, in all places together.
const COUNTED: Duration = Duration::from_millis(250);

/// Longest wait at the end for hooks that take the last events.
const LAST_EVENTS: Duration = Duration::from_secs(1);

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// An address can't be listened on.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The socket file of the admin address can't be listened on.
    #[error("--admin unix:{path}: {error}")]
    AdminSocket {
        /// The socket file.
        path: String,
        /// Error of the system.
        error: io::Error,
    },
    /// The store or a place can't be opened.
    #[error("{0}")]
    Storage(#[from] storage::StorageError),
    /// A place can't be opened.
    #[error("{at}: {place}{error}")]
    Place {
        /// Where it stands.
        at: Box<Source>,
        /// Its name, as errors begin with it.
        place: String,
        /// The fault.
        error: Box<storage::StorageError>,
    },
    /// A place's URL can't be that of live streams.
    #[error("{at}: {place}: {error}")]
    Live {
        /// Where it stands.
        at: Box<Source>,
        /// The place, without secrets.
        place: String,
        /// The fault.
        error: Box<LiveSourceError>,
    },
    /// A setting can't be used here and now.
    #[error(transparent)]
    Setting(Box<ConfigError>),
    /// The certificate can't be used.
    #[error("{0}")]
    Tls(#[from] tls::TlsError),
    /// The system gives no threads.
    #[error("starting threads: {0}")]
    Threads(io::Error),
    /// The cluster's settings can't be used, or another node has this node's name.
    #[error("cluster: {0}")]
    Cluster(String),
    /// Recorded files can't be written to the bucket of a setting.
    #[error(transparent)]
    Recordings(#[from] recordings::BadTarget),
    /// A file of users or of keys can't be used.
    #[error("access: {0}")]
    Access(String),
}

impl ServeError {
    /// The fault of a place, with the line where it stands.
    pub(crate) fn of_place(place: &PlaceConfig, error: storage::StorageError) -> Self {
        Self::Place { at: place.at.0.clone().into(), place: place.in_errors(), error: error.into() }
    }
}

/// A server that listens but serves nobody yet.
pub struct Server {
    inputs: Inputs,
    loaded: Loaded,
    parts: Parts,
    generation: Generation,
    sockets: Sockets,
    service: Arc<Service<Front>>,
    rtsp: CurrentRtsp,
    rtmp: CurrentRtmp,
    srt: CurrentSrt,
    intercept: Option<Arc<Intercept>>,
    /// The tasks of this node, where it is one of a cluster.
    tasks: Option<Tasks>,
    predecessor: Predecessor,
}

/// Orders to a running server.
#[derive(Clone, Debug)]
pub struct Orders {
    /// Turns true when the server has to stop.
    pub stop: watch::Receiver<bool>,
    /// Changes when the configuration has to be loaded again.
    pub reload: watch::Receiver<u64>,
    /// Changes when a new process has to take over.
    pub upgrade: watch::Receiver<u64>,
    /// Gets the time `shutdown-grace` whenever it changes.
    pub grace: watch::Sender<Duration>,
    /// The program of that process; `None` where none can take over.
    pub program: Option<Program>,
}

impl Server {
    /// Opens the places and binds every address, unless its socket was inherited from the predecessor or the service manager.
    /// `inputs` are those that `loaded` was made from; reloads read them again. `kinds` are the kinds of modules that operators can
    /// attach, beside the built-in ones.
    ///
    /// # Errors
    /// The first obstacle.
    pub async fn bind(
        loaded: Loaded,
        inputs: Inputs,
        kinds: Vec<Arc<dyn AttachableKind>>,
        (predecessor, mut inherited): (Predecessor, Inherited),
    ) -> Result<Self, ServeError> {
        let config = &loaded.config;
        let tls = config.tls.source().map(|source| tls::Certificates::open(&source)).transpose()?;
        let mut listeners = Listeners::new();
        for (name, address) in wanted(config) {
            listeners.insert(name, Listener::open(name, address, &mut inherited)?);
        }
        let admin = AdminListener::open(&config.admin.address, &mut inherited)?;
        for address in inherited.rest() {
            tracing::warn!(%address, "an inherited socket is closed: no setting names its address");
        }
        make_folders(config);
        let address = |name: &str| listeners.get(name).and_then(Listener::address);
        let own =
            BoundAddresses { http: address("http"), rtsp: address("rtsp"), nodes: address("cluster-node-listen") };
        let parts = Parts::start(config, own, predecessor.is_some(), kinds)?;
        bad_modules(&loaded, parts.kinds.declarations())?;
        let sockets = Sockets::new(listeners, tls, admin);
        let generation = Generation::new(&parts, config, sockets.served(config, &[]), None)?;
        parts.follow(&generation);
        let service =
            Arc::new(Service::new(generation.front.clone(), config.limits.max_connections, config.limits.timeouts));
        let rtsp = Arc::new(ArcSwap::new(generation.rtsp.clone()));
        let rtmp = Arc::new(ArcSwap::new(generation.rtmp.clone()));
        let srt = Arc::new(ArcSwap::new(generation.srt.clone()));
        let options = InterceptOptions {
            settings: config.intercept.clone(),
            live: &config.live,
            max_connections: config.limits.max_connections,
            access_log: config.log.access.is_on(),
        };
        let answers = (service.clone(), rtsp.clone());
        let intercept = Intercept::new(options, parts.manager.clone(), answers, &parts.metrics.intercept);
        let tasks = match &parts.cluster {
            Some(cluster) => {
                let tasks = cluster.join(parts.load_meter(), parts.purged_cache(config)).await;
                Some(tasks.map_err(|error: JoinError| ServeError::Cluster(error.to_string()))?)
            }
            None => None,
        };
        Ok(Self { inputs, loaded, parts, generation, sockets, service, rtsp, rtmp, srt, intercept, tasks, predecessor })
    }

    fn address(&self, name: &str) -> Option<SocketAddr> {
        self.sockets.listeners.get(name).and_then(Listener::address)
    }

    /// The address of plain HTTP.
    pub fn http_addr(&self) -> Option<SocketAddr> {
        self.address("http")
    }

    /// The address of the admin API, metrics and health.
    pub fn admin_addr(&self) -> Option<AdminAddress> {
        self.sockets.admin.address()
    }

    /// The address of RTSP.
    pub fn rtsp_addr(&self) -> Option<SocketAddr> {
        self.address("rtsp")
    }

    /// The address of HTTPS, where it is served.
    pub fn https_addr(&self) -> Option<SocketAddr> {
        self.address("https")
    }

    /// The address of RTSP over TLS, where it is served.
    pub fn rtsps_addr(&self) -> Option<SocketAddr> {
        self.address("rtsps")
    }

    /// The addresses of RTMP and of RTMP over TLS, where they are served.
    pub fn rtmp_addrs(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        (self.address("rtmp"), self.address("rtmps"))
    }

    /// The address of WebRTC, where it is served.
    pub fn webrtc_addr(&self) -> Option<SocketAddr> {
        self.parts.webrtc.as_ref().map(|webrtc| webrtc.address())
    }

    /// The address of SRT, where it is served.
    pub fn srt_addr(&self) -> Option<SocketAddr> {
        self.parts.srt.as_ref().map(|srt| srt.address())
    }

    /// Whether callers of SRT need a passphrase.
    #[must_use]
    pub fn has_srt_passphrase(&self) -> bool {
        self.generation.config.srt.passphrase().is_some()
    }

    /// Returns the survey of each place, with the paths of `most` assets each, for the first words to the user.
    pub async fn surveys(&self, most: usize) -> Vec<Survey> {
        let (mut surveys, until) = (Vec::new(), Instant::now() + COUNTED);
        for place in self.generation.stored() {
            let local = self.generation.place(place).is_none_or(|config| !config.spec.is_remote());
            let survey = timeout(Duration::from_secs(3), self.parts.library.survey(place, local, most, until)).await;
            surveys.push(survey.unwrap_or_else(|_| Survey {
                place: place.to_string(),
                failed: Some("no answer within 3 s".to_owned()),
                ..Survey::default()
            }));
        }
        surveys
    }

    /// Serves until it is ordered to stop, then finishes what is under way within the configured grace.
    pub async fn run(self, orders: Orders) {
        let Self {
            inputs,
            loaded,
            parts,
            generation,
            sockets,
            service,
            rtsp,
            rtmp,
            srt,
            intercept,
            tasks,
            predecessor,
        } = self;
        let (cluster, webrtc) = (parts.cluster.clone(), parts.webrtc.clone());
        let (srt_port, current_srt) = (parts.srt.clone(), srt.clone());
        let mut ordered = until_retired(orders.stop, cluster.clone());
        let ((ends, stop), (cuts, end)) = (watch::channel(false), watch::channel(false));
        let metrics = parts.metrics.reload.clone();
        let made = Made { parts, service, generation, rtsp, rtmp, srt, intercept, sockets };
        let ended = Ending { stop: stop.clone(), end: end.clone(), grace: orders.grace };
        let running = Arc::new(Running::new(made, ended));
        let reloader = Reloader::new(inputs, loaded, running.clone(), metrics);
        let upgrader = orders.program.map(|program| Upgrader::new(program, &running));
        running.begin(reloader.clone(), upgrader.clone());
        if predecessor.is_some() {
            running.take_disk_over();
        }
        predecessor.tell_ready(&running.announced_page());
        let left = predecessor.left().shared();
        running.announce_after(left.clone());
        let sampled = tokio::spawn(sampled::sample(running.clone(), left, stop.clone()));
        tokio::spawn(reloader.clone().watch(stop.clone()));
        tokio::spawn(observed::observe(running.clone(), stop.clone()));
        tokio::spawn(on_order(orders.reload, stop.clone(), move || {
            let reloader = reloader.clone();
            // It logs its result.
            async move { drop(reloader.reload().await) }
        }));
        if let Some(upgrader) = upgrader {
            tokio::spawn(on_order(orders.upgrade, stop.clone(), move || {
                let upgrader = upgrader.clone();
                async move { drop(upgrader.upgrade().await) }
            }));
        }
        if let Some(webrtc) = webrtc {
            tokio::spawn(webrtc.run(end.clone()));
        }
        if let Some(port) = srt_port {
            tokio::spawn(port.run(current_srt, end.clone()));
        }
        let sessions = tokio::spawn(running.rtsp.load_full().run(end));
        if let Some(cluster) = cluster {
            let of = running.clone();
            tokio::spawn(cluster.clone().tell_streams(move || of.generation.load().sources.held()));
            if let Some(copies) = &running.parts.copies {
                tokio::spawn(Copies::stand_by(Arc::downgrade(copies)));
            }
            cluster.serves();
        }
        let is_handed_over = tokio::select! {
            stopped = ordered.wait_for(|stop| *stop) => { drop(stopped); false }
            () = running.handed_over() => true,
        };
        if is_handed_over {
            running.drain(&mut ordered).await;
        }
        running.close();
        ends.send_replace(true);
        let farewell = running.end_announcement();
        running.service.front().end_streams();
        running.finish().await;
        cuts.send_replace(true);
        running.closed().await;
        let (_, _) = tokio::join!(sessions, sampled);
        if let Some(tasks) = tasks {
            tasks.leave().await;
        }
        running.parts.hooks.finish(LAST_EVENTS).await;
        running.parts.pool.stop();
        running.end_admin().await;
        if let Some(farewell) = farewell {
            let _ = farewell.await;
        }
    }
}

impl Running {
    /// Serves to the end what has begun, after another process has taken over: for the time `drain`, or until `stop` turns true.
    async fn drain(&self, stop: &mut watch::Receiver<bool>) {
        let limit = self.generation.load().config.upgrade.drain;
        // A slow client may hold a slice on the disk for longer too.
        let drained = timeout(limit, async { tokio::join!(self.leave_disk(), self.idle()) });
        tokio::select! {
            drained = drained => {
                let is_idle = drained.is_ok();
                tracing::info!(is_idle, "connections that another process took over from have ended");
            }
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    /// Finishes recordings and other modules, and responses and RTSP sessions within the grace.
    async fn finish(&self) {
        // The service goes on where another process has taken over: the service manager would end that one.
        if !self.has_handed_over() {
            tell_stopping();
        }
        self.failovers.end();
        self.parts.schedules.end();
        self.modules.end().await;
        self.readiness.draining();
        let (service, intercept) = (&self.service, &self.intercept);
        let drained = async {
            service.drained().await;
            if let Some(intercept) = intercept {
                intercept.drained().await;
            }
            self.without_sessions().await;
        };
        let grace = self.generation.load().config.limits.shutdown_grace;
        if timeout(grace, drained).await.is_err() {
            let connections = service.open() + intercept.as_ref().map_or(0, |intercept| intercept.open());
            let sessions = self.rtsp.load().sessions();
            tracing::warn!(connections, sessions, "responses cut off: the grace for shutting down is over");
            service.cut().await;
            if let Some(intercept) = intercept {
                intercept.cut().await;
            }
        }
    }
}

/// Does something at each order until `stop` turns true.
async fn on_order<F: Future<Output = ()>>(
    mut orders: watch::Receiver<u64>,
    mut stop: watch::Receiver<bool>,
    act: impl Fn() -> F,
) {
    loop {
        let ordered = tokio::select! {
            ordered = orders.changed() => ordered.is_ok(),
            is_over = stop.wait_for(|stop| *stop) => { drop(is_over); false }
        };
        if !ordered {
            return;
        }
        act().await;
    }
}

/// Makes the folders that are written to. Without that of the cache, indexes and segments are kept in memory only.
fn make_folders(config: &Config) {
    if let Err(error) = std::fs::create_dir_all(&config.storage.folder) {
        let (folder, why) = (config.storage.folder.display(), storage::NO_DISK_CACHE);
        tracing::warn!(%folder, %error, why, "can't make the cache folder");
    }
    if let Some(folder) = &config.record.folder
        && let Err(error) = std::fs::create_dir_all(folder)
    {
        tracing::error!(folder = %folder.display(), %error, "can't make the folder of recordings");
    }
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

/// Obstacles to serving a configuration here and now: places that are not there and certificates that can't
/// be read, then addresses that can't be listened on. Origins are not asked.
pub fn obstacles(loaded: &Loaded) -> (Vec<ServeError>, Vec<ServeError>) {
    let config = &loaded.config;
    let places = config.places.iter();
    let mut wrong: Vec<ServeError> = places
        .filter(|place| !place.spec.is_live())
        .filter_map(|place| {
            let error = place.spec.origin(&place.options, None).err()?;
            Some(ServeError::of_place(place, error.into()))
        })
        .collect();
    wrong.extend(live_places(config).err());
    wrong.extend(bad_modules(loaded, kinds().into_iter()).err());
    let certificate = config.tls.source().and_then(|source| tls::Certificates::open(&source).err());
    wrong.extend(certificate.map(ServeError::from));
    if config.cluster.is_on() {
        wrong.extend(open_node_tls(&config.cluster).err().map(ServeError::Cluster));
    }
    let access_log = millpond_logging::unopenable(&config.log);
    wrong.extend(access_log.map(|(path, reason)| {
        let at = loaded.source("access-log");
        ServeError::Setting(ConfigError::File { at, key: "access-log", path, reason }.into())
    }));
    let listeners = config.listeners().into_iter().filter_map(|(flag, addr)| bind(flag, addr?).err());
    let webrtc = config.webrtc.address.and_then(|addr| {
        let error = webrtc::open_port(addr).err()?;
        Some(BindError::new("webrtc", addr, error))
    });
    let taken = listeners.chain(webrtc).map(ServeError::from).collect();
    (wrong, taken)
}

/// The kinds of modules of this program.
fn kinds() -> Vec<&'static ModuleDeclaration> {
    vec![
        &recordings::DECLARATION,
        &recordings::ARCHIVER_DECLARATION,
        #[cfg(feature = "transcode-sound")]
        &OpusKind::DECLARATION,
        &TEE,
        &PUSH,
    ]
}

/// Checks the settings `modules` and `push` against the declared kinds, and recorders against the limits of recordings.
///
/// # Errors
/// Lines that can't be taken, all of them.
fn bad_modules<'a>(
    loaded: &Loaded,
    declarations: impl Iterator<Item = &'a ModuleDeclaration> + Clone,
) -> Result<(), ServeError> {
    let settings = &loaded.config.modules;
    let (lines, pushes) = (settings.lines.iter(), settings.pushes.iter());
    let all = lines.map(|line| ("modules", line)).chain(pushes.map(|line| ("push", line)));
    let reasons = all.filter_map(|(name, line)| {
        let bad = modules::check(line, declarations.clone()).err().map(|error| error.to_string());
        let excess = || recordings::excess(line, &loaded.config.record).map(|error| error.to_string());
        Some((name, format!("{name}: \"{line}\": {}", bad.or_else(excess)?)))
    });
    let (names, reasons): (Vec<_>, Vec<_>) = reasons.unzip();
    let Some(first) = names.first() else { return Ok(()) };
    let (at, reason) = (loaded.source(first), reasons.join("; "));
    Err(ServeError::Setting(ConfigError::Conflict { at, reason }.into()))
}

/// The places with live streams.
///
/// # Errors
/// The first URL that can't be that of a stream.
fn live_places(config: &Config) -> Result<HashMap<Arc<str>, LivePlace>, ServeError> {
    let folder = &config.storage.shift_folder;
    let of = |PlaceConfig { spec, live, manifests, ladders, at, options, .. }: &PlaceConfig| {
        let hosts = &options.remote.follow_redirects_to;
        let place = LivePlace::new(spec.live()?, (live, &manifests.captions), (folder, hosts));
        let place = place.map_err(|error| {
            let (at, error) = (at.0.clone().into(), error.into());
            ServeError::Live { at, place: spec.source.to_string(), error }
        });
        let named = ladders.iter().map(|LadderConfig { name, streams }| (name.clone(), streams.clone()));
        let place = place.map(|place| place.with_ladders(Ladders::new(named, spec.is_pushed())));
        Some(place.map(|place| (Arc::from(spec.name.as_str()), place)))
    };
    config.places.iter().filter_map(of).collect()
}
