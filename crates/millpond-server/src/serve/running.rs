//! A server that runs: its listening sockets, and the generation that is in force.

use super::{
    Generation, Parts, ServeError, bad_modules,
    node_listener::NodeListener,
    parts::{Origins, captions, has_other_origin},
    ready::watch_place,
};
use crate::{
    admin::{self, AdminListener, AdminParts, AdminSocket, Readiness},
    announce::Announcement,
    config::{Config, Loaded},
    failover::Failovers,
    http::{Front, Served},
    intercept::{self, Intercept},
    live,
    modules::Modules,
    recordings::{self, Recordings, ShelfTasks},
    reload::Reloader,
    rtmp::{self, CurrentRtmp},
    rtsp::{self, CurrentRtsp},
    srt::CurrentSrt,
    upgrade::Upgrader,
    webrtc,
};
use arc_swap::ArcSwap;
use millpond_connections::{
    Inherited, Listener, Listeners, SERVED,
    tls::{self, Certificates, Validity},
};
use millpond_http::wire::{Service, accept_nodes, accept_plain, accept_tls};
use millpond_store::ring::SweepLimits;
use std::{
    collections::HashMap,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::{Mutex as AsyncMutex, OwnedMutexGuard, oneshot, watch},
    task::{AbortHandle, JoinHandle},
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

/// Interval between checks of the connections and sessions that are left.
const LOOK: Duration = Duration::from_millis(100);
/// Interval between looks at the times of recordings.
const SCHEDULES: Duration = Duration::from_secs(10);
/// Longest wait for the last replies of the admin address.
const ADMIN_END: Duration = Duration::from_secs(2);

/// A server that runs.
pub(crate) struct Running {
    pub(super) parts: Parts,
    pub(super) service: Arc<Service<Front>>,
    pub(super) rtsp: CurrentRtsp,
    pub(super) rtmp: CurrentRtmp,
    pub(super) srt: CurrentSrt,
    pub(super) intercept: Option<Arc<Intercept>>,
    pub(super) readiness: Arc<Readiness>,
    pub(super) modules: Arc<Modules>,
    pub(super) failovers: Failovers,
    pub(super) recordings: Option<Arc<Recordings>>,
    pub(super) generation: ArcSwap<Generation>,
    /// Turns true when the server stops. Responses under way have their grace from then on.
    pub(super) stop: watch::Receiver<bool>,
    /// Turns true when RTSP sessions end, which have that grace too.
    pub(super) end: watch::Receiver<bool>,
    /// Gets the time that responses have to finish on shutdown.
    grace: watch::Sender<Duration>,
    /// Turns true when another process has taken the listening sockets over.
    handed_over: watch::Sender<bool>,
    /// A lock: held during a reload and during an upgrade, so that one follows another.
    turn: Arc<AsyncMutex<()>>,
    /// The program of this process. The system would name another path once its file has been replaced.
    /// A lock: taken at reloads, at the start and at the end.
    sockets: Mutex<Sockets>,
}

/// Sockets and tasks that a reload may replace.
pub(super) struct Sockets {
    pub(super) listeners: Listeners,
    pub(super) tls: Option<Arc<Certificates>>,
    /// The admin address, bound, and served once the server runs.
    pub(super) admin: AdminListener,
    pub(super) announcement: Option<Announcement>,
    serving_admin: Option<AdminThread>,
    /// Makes the parts that the admin thread shows.
    make_parts: Option<admin::MakeParts>,
    accepting: Vec<JoinHandle<()>>,
    certificate_watch: Option<AbortHandle>,
    sweep: Option<AbortHandle>,
    /// The task that waits for the folder of slices.
    taking_disk: Option<JoinHandle<()>>,
    /// Tasks that tend and upload recorded files.
    shelf: Option<ShelfTasks>,
    /// Tasks that wait for the first answer of a place.
    waiting: HashMap<Arc<str>, AbortHandle>,
}

struct AdminThread {
    stop: watch::Sender<bool>,
    ended: oneshot::Receiver<()>,
}

/// A configuration that can be put in force: everything that can fail has been done.
pub(crate) struct Prepared {
    generation: Generation,
    origins: Origins,
    /// Places whose assets are opened anew.
    replaced: Vec<Arc<str>>,
    /// The certificate of another source than before.
    certificates: Option<Arc<Certificates>>,
    listeners: Vec<(&'static str, Listener)>,
    admin: Option<AdminListener>,
}

impl Sockets {
    pub(super) fn new(listeners: Listeners, tls: Option<Arc<Certificates>>, admin: AdminListener) -> Self {
        Self {
            listeners,
            tls,
            admin,
            announcement: None,
            serving_admin: None,
            make_parts: None,
            accepting: Vec::new(),
            certificate_watch: None,
            sweep: None,
            taking_disk: None,
            shelf: None,
            waiting: HashMap::new(),
        }
    }

    /// Addresses that players are served at, where `new` listeners replace those of their names.
    pub(super) fn served(&self, config: &Config, new: &[(&'static str, Listener)]) -> Served {
        let address = |name: &str| {
            let replaced = new.iter().find(|(of, _)| *of == name).map(|(_, listener)| listener);
            replaced.or_else(|| self.listeners.get(name)).and_then(Listener::address)
        };
        Served {
            http: address("http"),
            https: config.http.https.and_then(|_| address("https")),
            rtsp: address("rtsp").unwrap_or(config.rtsp.address),
            rtsps: config.rtsp.rtsps.and_then(|_| address("rtsps")),
        }
    }
}

/// The parts of a server before it runs.
pub(super) struct Made {
    pub(super) parts: Parts,
    pub(super) service: Arc<Service<Front>>,
    pub(super) generation: Generation,
    pub(super) rtsp: CurrentRtsp,
    pub(super) rtmp: CurrentRtmp,
    pub(super) srt: CurrentSrt,
    pub(super) intercept: Option<Arc<Intercept>>,
    pub(super) sockets: Sockets,
}

/// How a running server ends.
pub(super) struct Ending {
    /// Turns true when nothing new is accepted.
    pub(super) stop: watch::Receiver<bool>,
    /// Turns true when sessions are cut off.
    pub(super) end: watch::Receiver<bool>,
    /// Gets the time `shutdown-grace` whenever it changes.
    pub(super) grace: watch::Sender<Duration>,
}

impl Running {
    pub(super) fn new(
        Made { parts, service, generation, rtsp, rtmp, srt, intercept, sockets }: Made,
        Ending { stop, end, grace }: Ending,
    ) -> Self {
        // Live sources are asked when viewers come, not before.
        let readiness = Arc::new(Readiness::new(generation.stored().map(|place| place.to_string())));
        let modules = Modules::new(parts.kinds.clone(), generation.sources.clone(), parts.events.clone());
        let failovers = Failovers::new(generation.sources.clone(), parts.events.clone());
        let recordings = Recordings::new(parts.recorder.clone(), modules.clone()).map(Arc::new);
        let (generation, sockets) = (ArcSwap::from_pointee(generation), Mutex::new(sockets));
        let (handed_over, turn) = (watch::Sender::new(false), Arc::default());
        Self {
            parts,
            service,
            rtsp,
            rtmp,
            srt,
            intercept,
            readiness,
            modules,
            failovers,
            recordings,
            generation,
            stop,
            end,
            grace,
            handed_over,
            turn,
            sockets,
        }
    }

    pub(super) fn sockets(&self) -> MutexGuard<'_, Sockets> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn to reload or to upgrade, which is held until the guard is dropped.
    pub(crate) async fn turn(&self) -> OwnedMutexGuard<()> {
        self.turn.clone().lock_owned().await
    }

    /// Begins to serve.
    pub(super) fn begin(self: &Arc<Self>, reloader: Reloader, upgrader: Option<Upgrader>) {
        let generation = self.generation.load_full();
        let mut sockets = self.sockets();
        let (running, serving) = (self.clone(), Handle::current());
        sockets.make_parts = Some(Arc::new(move || running.admin_parts((&reloader, &upgrader), &serving)));
        self.serve_admin(&mut sockets);
        generation.gates.watch(None, &self.stop);
        generation.rtsp.take_over(None, &self.end);
        for place in generation.stored() {
            self.watch_place(&mut sockets, place);
        }
        self.sweep(&mut sockets, &generation.config);
        self.watch_certificates(&mut sockets);
        let names: Vec<_> = sockets.listeners.keys().copied().collect();
        names.into_iter().for_each(|name| self.accept(&mut sockets, name));
        sockets.shelf = Some(self.parts.archiver.begin());
        self.begin_modules(&generation);
        self.follow_schedules();
        self.parts.hooks.reconfigure(&generation.config.hooks);
        self.readiness.listening();
    }

    /// Makes everything that a configuration needs, and changes nothing yet.
    ///
    /// # Errors
    /// A place, a certificate, an address, a module or a file can't be used.
    pub(crate) fn prepare(&self, loaded: &Loaded) -> Result<Prepared, ServeError> {
        let config = &loaded.config;
        bad_modules(loaded, self.parts.kinds.declarations())?;
        let before = self.generation.load_full();
        let sockets = self.sockets();
        let origins = self.parts.origins(config, &before.config)?;
        let other_assets = |name: &Arc<str>| {
            let place = crate::reload::place(config, name);
            let (key, old) = (place.map(|place| &place.key_address), before.place(name).map(|old| &old.key_address));
            let has_other_captions = captions(config, name) != captions(&before.config, name);
            key != old || has_other_captions || place.is_some_and(|place| has_other_origin(place, &before.config))
        };
        let names = super::generation::place_names(config);
        let replaced = names.into_iter().filter(other_assets).collect();
        let source = config.tls.source();
        let is_same = source == sockets.tls.as_ref().map(|known| known.source());
        let certificates = source.filter(|_| !is_same).map(|source| Certificates::open(&source)).transpose()?;
        let mut listeners = Vec::new();
        for (name, address) in wanted(config) {
            let known = sockets.listeners.get(name).map(Listener::configured);
            if known != Some(address) {
                listeners.push((name, Listener::open(name, address, &mut Inherited::default())?));
            }
        }
        let admin = (sockets.admin.configured() != config.admin.address)
            .then(|| AdminListener::open(&config.admin.address, &mut Inherited::default()))
            .transpose()?;
        let served = sockets.served(config, &listeners);
        let generation = Generation::new(&self.parts, config, served, Some(&before))?;
        Ok(Prepared { generation, origins, replaced, certificates, listeners, admin })
    }

    /// Puts a configuration in force. Returns warnings.
    pub(crate) fn commit(self: &Arc<Self>, prepared: Prepared) -> Vec<String> {
        let Prepared { generation, origins, replaced, certificates, listeners, admin } = prepared;
        let (before, generation) = (self.generation.load_full(), Arc::new(generation));
        let config = &generation.config;
        let mut sockets = self.sockets();
        let mut warnings = self.parts.reconfigure(&generation, origins, &replaced);
        generation.gates.watch(Some(&before.gates), &self.stop);
        generation.rtsp.take_over(Some(&before.rtsp), &self.end);
        generation.rtmp.take_over();
        if let Some(srt) = &self.parts.srt {
            srt.take_over(config.limits.max_connections);
        }
        self.rtsp.store(generation.rtsp.clone());
        self.rtmp.store(generation.rtmp.clone());
        self.srt.store(generation.srt.clone());
        self.service.reconfigure(generation.front.clone(), config.limits.max_connections, config.limits.timeouts);
        self.begin_modules(&generation);
        self.grace.send_replace(config.limits.shutdown_grace);
        self.generation.store(generation.clone());
        self.readiness.replace(generation.stored().map(|place| place.to_string()));
        for place in before.stored().filter(|place| !generation.stored().any(|stays| stays == *place)) {
            self.parts.store.remove_place(place);
        }
        for place in generation.stored().filter(|place| replaced.contains(place)) {
            self.watch_place(&mut sockets, place);
        }
        self.replace_certificates(&mut sockets, config, certificates);
        self.replace_listeners(&mut sockets, config, listeners);
        self.announce(&mut sockets, config);
        if let Some(listener) = admin {
            sockets.admin = listener;
            self.serve_admin(&mut sockets);
        }
        self.sweep(&mut sockets, config);
        if before.config.log.filter != config.log.filter
            && let Err(error) = millpond_logging::set_filter(&config.log.filter)
        {
            warnings.push(error.to_string());
        }
        warnings
    }

    /// Begins and ends recordings at their times of the week, until another process has taken over.
    fn follow_schedules(self: &Arc<Self>) {
        let running = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut before = None;
            loop {
                sleep(SCHEDULES).await;
                let Some(running) = running.upgrade() else { return };
                let _turn = running.turn().await;
                if running.is_leaving() {
                    return;
                }
                let generation = running.generation.load_full();
                let active = Some(recordings::active(&generation.config.record.rules));
                if active != before {
                    running.begin_modules(&generation);
                    before = active;
                }
            }
        });
    }

    /// Begins and removes modules as a configuration has them, and those of streams that are always recorded.
    fn begin_modules(&self, generation: &Generation) {
        let config = &generation.config;
        let mut lines: Vec<_> = config.modules.all().cloned().collect();
        for line in recordings::lines(&recordings::active(&config.record.rules)) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        self.modules.reconfigure(&lines, generation.sources.clone());
        self.failovers.reconfigure(&config.failover, generation.sources.clone());
        self.parts.schedules.reconfigure(&config.schedule, generation.sources.clone());
    }

    fn replace_listeners(&self, sockets: &mut Sockets, config: &Config, new: Vec<(&'static str, Listener)>) {
        for (name, listener) in new {
            let address = listener.address();
            if let Some(before) = sockets.listeners.insert(name, listener) {
                before.close();
            }
            tracing::info!(name, address = address.map(|address| address.to_string()), "listening");
            self.accept(sockets, name);
        }
        let wanted: Vec<_> = wanted(config).map(|(name, _)| name).collect();
        for (_, gone) in sockets.listeners.extract_if(.., |name, _| !wanted.contains(name)) {
            gone.close();
        }
        sockets.accepting.retain(|task| !task.is_finished());
    }

    fn replace_certificates(&self, sockets: &mut Sockets, config: &Config, new: Option<Arc<Certificates>>) {
        match (&sockets.tls, new) {
            (Some(known), Some(new)) => {
                known.adopt(&new);
                self.tell_validity(known);
            }
            (None, Some(new)) => {
                sockets.tls = Some(new);
                self.watch_certificates(sockets);
            }
            (Some(_), None) if config.tls.source().is_none() => {
                sockets.tls = None;
                self.watch_certificates(sockets);
            }
            (_, None) => {}
        }
    }

    /// Publishes and logs the end of a certificate's validity.
    fn tell_validity(&self, certificates: &Certificates) {
        if let Some(Validity { to, .. }) = certificates.validity() {
            self.parts.metrics.tls.certificate_expiry(to);
        }
        if let Some(warning) = certificates.date_warning(std::time::SystemTime::now()) {
            tracing::warn!("{warning}");
        }
    }

    /// Watches the files of the certificate that is in force, and those of none before it.
    fn watch_certificates(&self, sockets: &mut Sockets) {
        sockets.certificate_watch.take().inspect(AbortHandle::abort);
        if let Some(certificates) = sockets.tls.clone() {
            self.tell_validity(&certificates);
            let metrics = self.parts.metrics.clone();
            let expires = move |validity: Option<Validity>| {
                if let Some(Validity { to, .. }) = validity {
                    metrics.tls.certificate_expiry(to);
                }
            };
            let watch = tokio::spawn(tls::watch(certificates, self.stop.clone(), expires));
            sockets.certificate_watch = Some(watch.abort_handle());
        }
    }

    /// Accepts the connections of a listener.
    fn accept(&self, sockets: &mut Sockets, name: &'static str) {
        let Some(listener) = sockets.listeners.get(name) else { return };
        let (door, stop) = (listener.door(), self.stop.clone());
        // RTSP and RTMP have no names among the protocols of ALPN.
        let protocols: &[&[u8]] = if name == "https" { &[b"h2", b"http/1.1"] } else { &[] };
        let is_secure = matches!(name, "https" | "rtsps" | "rtmps");
        let config = sockets.tls.as_ref().filter(|_| is_secure).map(|tls| tls.server_config(protocols)).transpose();
        let tls = match config {
            Ok(config) => config.map(TlsAcceptor::from),
            Err(error) => return tracing::error!(name, %error, "connections are not accepted"),
        };
        let (service, rtsp, rtmp) = (self.service.clone(), self.rtsp.clone(), self.rtmp.clone());
        let task = match (name, tls) {
            ("cluster-node-listen", _) => {
                let Some(cluster) = &self.parts.cluster else { return };
                let tls = match cluster.listener_tls() {
                    Ok(tls) => TlsAcceptor::from(tls),
                    Err(error) => return tracing::error!(name, error, "connections are not accepted"),
                };
                let side = Arc::new(NodeListener::new(rtsp, self.end.clone()));
                tokio::spawn(accept_nodes(door, (tls, side), service, stop))
            }
            ("http", _) => tokio::spawn(accept_plain(door, service, stop)),
            ("https", Some(tls)) => tokio::spawn(accept_tls(door, tls, service, stop)),
            ("rtsp", _) => tokio::spawn(rtsp::accept(door, None, rtsp, self.end.clone())),
            ("rtsps", Some(tls)) => tokio::spawn(rtsp::accept(door, Some(tls), rtsp, self.end.clone())),
            ("rtmp", _) => tokio::spawn(rtmp::accept(door, None, rtmp, stop)),
            ("rtmps", Some(tls)) => tokio::spawn(rtmp::accept(door, Some(tls), rtmp, stop)),
            ("webrtc-tcp", _) => match (&self.parts.webrtc, listener.address()) {
                (Some(webrtc), Some(address)) => {
                    let gates = move || rtmp.load().gates.clone();
                    tokio::spawn(webrtc::accept((door, address), webrtc.clone(), gates, stop))
                }
                _ => return,
            },
            _ => match &self.intercept {
                Some(intercept) => tokio::spawn(intercept::accept(door, intercept.clone(), stop)),
                None => return,
            },
        };
        sockets.accepting.push(task);
    }

    /// Waits for the first answer of a place, unless a task does already.
    fn watch_place(&self, sockets: &mut Sockets, place: &Arc<str>) {
        let (store, readiness) = (self.parts.store.clone(), self.readiness.clone());
        let task = tokio::spawn(watch_place(store, place.clone(), readiness, self.stop.clone()));
        if let Some(before) = sockets.waiting.insert(place.clone(), task.abort_handle()) {
            before.abort();
        }
        sockets.waiting.retain(|_, task| !task.is_finished());
    }

    /// Bounds the past of live streams as a configuration has it.
    fn sweep(&self, sockets: &mut Sockets, config: &Config) {
        sockets.sweep.take().inspect(AbortHandle::abort);
        if let Some((folder, limits)) = sweep_limits(config) {
            let sweep = tokio::spawn(live::sweep(self.parts.manager.clone(), folder, limits, self.stop.clone()));
            sockets.sweep = Some(sweep.abort_handle());
        }
    }

    /// Serves the admin address on a new thread, and ends the one before.
    fn serve_admin(&self, sockets: &mut Sockets) {
        if let Some(before) = sockets.serving_admin.take() {
            before.stop.send_replace(true);
        }
        let Some(parts) = sockets.make_parts.clone() else { return };
        let (stop, stopped) = watch::channel(false);
        let socket = sockets.admin.duplicate();
        let started = socket.and_then(|listener| admin::start(listener, parts, stopped));
        match started {
            Ok(ended) => sockets.serving_admin = Some(AdminThread { stop, ended }),
            Err(error) => tracing::error!(%error, "metrics and health are not served"),
        }
    }

    /// The parts that the admin address shows and changes now.
    fn admin_parts(&self, (reloader, upgrader): (&Reloader, &Option<Upgrader>), serving: &Handle) -> AdminParts {
        let generation = self.generation.load();
        AdminParts {
            metrics: self.parts.metrics.clone(),
            readiness: self.readiness.clone(),
            front: generation.front.clone(),
            rtsp: generation.rtsp.clone(),
            rtmp: generation.rtmp.clone(),
            srt: self.parts.srt.clone(),
            manager: self.parts.manager.clone(),
            sources: generation.sources.clone(),
            cluster: self.parts.cluster.clone(),
            modules: self.modules.clone(),
            recordings: self.recordings.clone(),
            shelf: self.parts.archiver.shelf().cloned(),
            events: self.parts.events.clone(),
            schedules: self.parts.schedules.clone(),
            statistics: self.parts.statistics.clone(),
            serving: serving.clone(),
            gate: generation.gate.clone(),
            limits: self.service.timeouts(),
            reloader: Some(reloader.clone()),
            upgrader: upgrader.clone(),
        }
    }

    /// Whether the server is a node of a cluster.
    pub(crate) fn is_node(&self) -> bool {
        self.parts.cluster.is_some()
    }

    /// Whether another process has taken over, or the server stops.
    pub(crate) fn is_leaving(&self) -> bool {
        *self.stop.borrow() || *self.handed_over.borrow()
    }

    /// Second descriptors of all listening sockets, with the names of their settings.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn duplicate_listeners(&self) -> io::Result<Vec<(&'static str, std::net::TcpListener)>> {
        let sockets = self.sockets();
        let all = sockets.listeners.iter().map(|(name, listener)| Ok((*name, listener.duplicate()?)));
        let mut all: Vec<_> = all.collect::<io::Result<_>>()?;
        // A socket file is replaced by the process that takes over.
        if let AdminSocket::Tcp(admin) = sockets.admin.duplicate()? {
            all.push(("admin", admin));
        }
        Ok(all)
    }

    /// Binds the socket file of the admin address again, where a process that did not come to serve has replaced it.
    pub(crate) fn reclaim_admin(&self) {
        let mut sockets = self.sockets();
        if sockets.admin.is_in_place() {
            return;
        }
        match AdminListener::open(&sockets.admin.configured(), &mut Inherited::default()) {
            Ok(listener) => {
                sockets.admin = listener;
                self.serve_admin(&mut sockets);
            }
            Err(error) => tracing::error!(%error, "metrics and health are not served"),
        }
    }

    /// Accepts no more connections: another process does, with the same sockets. `page` is the page that it announces on the local
    /// network. Blocks until an announced name that it does not take over is taken back.
    pub(crate) fn leave(&self, page: &str) {
        let mut sockets = self.sockets();
        sockets.listeners.values().for_each(Listener::hand_over);
        if let Some(announcement) = sockets.announcement.take() {
            announcement.hand_over(page);
        }
        // It stays known: the process does not end before the reply to whoever asked for the upgrade.
        if let Some(admin) = &sockets.serving_admin {
            admin.stop.send_replace(true);
        }
        self.readiness.draining();
        self.modules.hand_over();
        self.failovers.end();
        self.parts.schedules.end();
        drop(sockets.shelf.take());
        self.parts.statistics.hand_over();
        // They come again at once, and the other process accepts them.
        self.parts.manager.hand_over_publishers();
        self.handed_over.send_replace(true);
    }

    /// Accepts no more connections, and closes the sockets.
    pub(super) fn close(&self) {
        // Dropped: clients that connect while sessions end are refused at once, and do not wait in the queue of the kernel.
        let listeners = std::mem::take(&mut self.sockets().listeners);
        listeners.values().for_each(Listener::close);
    }

    /// Waits until another process has taken over.
    pub(super) async fn handed_over(&self) {
        let _ = self.handed_over.subscribe().wait_for(|handed_over| *handed_over).await;
    }

    /// Whether another process has taken over.
    pub(super) fn has_handed_over(&self) -> bool {
        *self.handed_over.borrow()
    }

    /// Opens the disk cache once the process before this one has given it up, unless another one takes over from this one before.
    pub(super) fn take_disk_over(&self) {
        let taking = self.parts.take_disk_over(&self.generation.load().config, self.handed_over.subscribe());
        self.sockets().taking_disk = Some(taking);
    }

    /// Waits until the folder of slices is free for the process that has taken over.
    pub(super) async fn leave_disk(&self) {
        let taking = self.sockets().taking_disk.take();
        if let Some(taking) = taking {
            let _ = taking.await;
        }
        while !self.parts.store.leave_disk() {
            sleep(LOOK).await;
        }
    }

    /// Waits until no connection, session and recording is left.
    pub(super) async fn idle(&self) {
        loop {
            let intercepted = self.intercept.as_ref().map_or(0, |intercept| intercept.open());
            let recorded = self.recordings.as_ref().map_or(0, |recordings| recordings.running());
            let sessions = self.rtmp.load().open() + self.rtsp.load().sessions();
            if self.service.open() + sessions + intercepted + recorded == 0 {
                return;
            }
            sleep(LOOK).await;
        }
    }

    /// Waits until no RTSP session plays.
    pub(super) async fn without_sessions(&self) {
        while self.rtsp.load().playing() > 0 {
            sleep(LOOK).await;
        }
    }

    /// Waits until no more connections are accepted.
    pub(super) async fn closed(&self) {
        let accepting = std::mem::take(&mut self.sockets().accepting);
        for task in accepting {
            let _ = task.await;
        }
    }

    /// Ending the thread of the admin address.
    pub(super) async fn end_admin(&self) {
        let (thread, parts) = {
            let mut sockets = self.sockets();
            (sockets.serving_admin.take(), sockets.make_parts.take())
        };
        // It refers to this.
        drop(parts);
        if let Some(AdminThread { stop, ended }) = thread {
            stop.send_replace(true);
            let _ = timeout(ADMIN_END, ended).await;
        }
    }
}

/// The addresses that the serving threads listen on.
pub(super) fn wanted(config: &Config) -> impl Iterator<Item = (&'static str, std::net::SocketAddr)> {
    let listeners = config.listeners().into_iter().filter_map(|(name, address)| Some((name, address?)));
    listeners.filter(|(name, _)| SERVED.contains(name))
}

/// Returns the folder of the past of streams and its bounds; `None` where no place keeps any. Pasts that nobody writes stay as
/// long as the longest `time-shift`.
fn sweep_limits(config: &Config) -> Option<(PathBuf, SweepLimits)> {
    let age = config.places.iter().filter(|place| place.spec.is_live()).map(|place| place.live.shift).max()?;
    let limits = SweepLimits { age, total: config.storage.shift_total };
    (!age.is_zero()).then(|| (config.storage.shift_folder.clone(), limits))
}
