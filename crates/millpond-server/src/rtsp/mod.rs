//! RTSP (RFC 2326): signalling for the stream engine, with the same assets as HTTP.
//!
//! [`signalling`] decides, without sockets and clocks: it turns the bytes of a connection into replies and actions. A
//! [`connection`] reads, writes and performs the actions; a [`session`] turns PLAY into a request to the engine's manager
//! ([`millpond_stream::Manager`]), which loads and sends frames. [`interleaved`] is the engine's outlet for
//! packets on a connection.
//!
//! [`listen`] accepts connections: plain, over TLS ([`secure`]), or through HTTP ([`tunnel`]). [`challenge`] checks users.

mod challenge;
mod connection;
mod inlet;
#[cfg(feature = "intercept")]
mod intercepted;
mod interleaved;
mod listen;
mod medium;
mod metrics;
mod party;
mod patch_speed;
mod publisher;
mod record;
mod reply;
mod report;
mod session;
mod settings;
mod shared;
mod shift;
mod signalling;
mod srtp;
mod tunnel;

#[cfg(feature = "intercept")]
pub(crate) use intercepted::{FirstRequest, first_request};
pub(crate) use listen::{accept, serve_node};
pub(crate) use metrics::RtspMetrics;
pub(crate) use report::{SessionKind, SessionReport};
pub use settings::RtspSettings;
#[cfg(feature = "intercept")]
pub(crate) use shared::SharedStream;

use crate::cluster::Cluster;
use crate::limits::LimitSettings;
use crate::live::Sources;
use crate::wire::Wire;
use arc_swap::ArcSwap;
use medium::Medium;
use millpond_access::{ClientHold, Gates, Pass, Passwords, PublishSettings, Publishers, watch_passwords};
use millpond_connections::{ConnectionTimeouts, Slots};
use millpond_stream::{Full, Manager};
use party::Party;
use prometheus_client::metrics::counter::Counter;
use record::{About, Record};
use session::{Session, Shared};
use signalling::Sessions;
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, OnceLock, atomic::AtomicUsize},
    time::{Duration, Instant},
};
use tokio::sync::watch;
use tunnel::Tunnels;

/// Interval between searches for silent sessions.
const SWEEP: Duration = Duration::from_secs(5);
/// Time for the last lines of sessions when the server stops.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Settings of RTSP, and settings of the whole server that RTSP follows.
pub(crate) struct RtspOptions {
    pub(crate) settings: RtspSettings,
    pub(crate) publish: PublishSettings,
    pub(crate) gates: Arc<Gates>,
    pub(crate) limits: LimitSettings,
    /// Whether sessions and refusals are logged.
    pub(crate) access_log: bool,
    /// The port that serves HTTP, for clients that send it to this one.
    pub(crate) http_port: Option<u16>,
}

/// The RTSP front end of a server.
pub(crate) struct Rtsp {
    manager: Arc<Manager>,
    sources: Arc<Sources>,
    /// The cluster, where this server is a node of one.
    cluster: Option<Arc<Cluster>>,
    settings: RtspSettings,
    /// Each session has a lock of its own: its requests come one after another.
    sessions: Arc<Sessions<Party>>,
    /// Number of connections refused because too many were open.
    refused: Counter,
    connections: Arc<Slots>,
    /// Passwords of those that may play; `None` admits everyone.
    passwords: Option<Arc<Passwords>>,
    /// Rules of access, per place.
    gates: Arc<Gates>,
    /// Admission of publishers; `None` where no stream is pushed.
    publishers: Option<Arc<Publishers>>,
    /// Start of the clock of sessions, connections and nonces: the engine's.
    clock: Instant,
    tunnels: Arc<Tunnels>,
    max_connections: usize,
    timeouts: ConnectionTimeouts,
    access_log: bool,
    http_port: Option<u16>,
    /// Shared by the records of sessions that have not ended.
    records: Arc<()>,
    /// Turns true when the server stops. Set when it begins to accept.
    stop: Arc<OnceLock<watch::Receiver<bool>>>,
}

/// RTSP as the configuration in force has it. A reload replaces it; connections go on with the one that they began with.
pub(crate) type CurrentRtsp = Arc<ArcSwap<Rtsp>>;

impl Rtsp {
    /// Makes the front end of a configuration. It shares sessions and connections with the one `before` it, and users with equal
    /// settings.
    pub(crate) fn new(
        (sources, cluster): (Arc<Sources>, Option<Arc<Cluster>>),
        options: RtspOptions,
        metrics: &RtspMetrics,
        before: Option<&Self>,
    ) -> io::Result<Arc<Self>> {
        let RtspOptions { settings, publish, gates, limits, access_log, http_port } = options;
        let known = before.and_then(|before| before.publishers.as_ref());
        let publishers = sources.has_published().then(|| Publishers::open(publish, known.map(|known| &**known)));
        let publishers = publishers.transpose()?.map(Arc::new);
        let known = before.and_then(|before| before.passwords.as_ref());
        let passwords = settings.users.clone().map(|users| Passwords::open_after(users, known)).transpose()?;
        let shared = before.map(|before| {
            let Self { sessions, connections, tunnels, records, stop, .. } = before;
            (sessions.clone(), connections.clone(), tunnels.clone(), records.clone(), stop.clone())
        });
        let (sessions, connections, tunnels, records, stop) = shared.unwrap_or_else(|| {
            let sessions = Arc::new(Sessions::new(settings.session_timeout));
            (sessions, Slots::of_connections(limits.max_connections), Arc::default(), Arc::new(()), Arc::default())
        });
        let manager = sources.manager().clone();
        Ok(Arc::new(Self {
            clock: manager.clock(),
            manager,
            sources,
            cluster,
            sessions,
            settings,
            refused: metrics.refused.clone(),
            connections,
            passwords,
            gates,
            publishers,
            tunnels,
            max_connections: limits.max_connections,
            timeouts: limits.timeouts,
            access_log,
            http_port,
            records,
            stop,
        }))
    }

    /// Puts it in force: its limits hold, and files that the one `before` it did not read are watched.
    pub(crate) fn take_over(&self, before: Option<&Self>, stop: &watch::Receiver<bool>) {
        let _ = self.stop.set(stop.clone());
        self.connections.set_most(self.max_connections);
        self.sessions.set_timeout(self.settings.session_timeout);
        let read_files = |rtsp: &Self| {
            let publishers = rtsp.publishers.as_ref().and_then(|publishers| publishers.passwords());
            rtsp.passwords.iter().chain(publishers).cloned().collect::<Vec<_>>()
        };
        let known = before.map(read_files).unwrap_or_default();
        for passwords in read_files(self) {
            if !known.iter().any(|known| Arc::ptr_eq(known, &passwords)) {
                tokio::spawn(watch_passwords(Arc::downgrade(&passwords), stop.clone()));
            }
        }
    }

    /// Returns the number of sessions that play and have not reached their end.
    pub(crate) fn playing(&self) -> usize {
        self.sessions.playing()
    }

    /// Returns the number of sessions, playing or not.
    pub(crate) fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Removes silent sessions, and observes whether frames are sent in time, until `stop` turns true. Then all sessions end.
    pub(crate) async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        tokio::spawn(self.clone().sweep(stop.clone()));
        tokio::spawn(self.clone().observe(stop.clone()));
        let _ = stop.wait_for(|stop| *stop).await;
        self.end().await;
    }

    /// Admission of publishers; `None` where no stream is pushed.
    pub(crate) fn publishers(&self) -> Option<Arc<Publishers>> {
        self.publishers.clone()
    }

    /// Time since the moment from which times count.
    fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    /// The moment of a time, for the runtime's timers.
    fn instant(&self, time: Duration) -> tokio::time::Instant {
        (self.clock + time).into()
    }

    /// Creates a session of a client on its connection, under a name that cannot be guessed. `waiting` counts the sessions of its
    /// connection that have not played. `about` identifies it in the log; `path` is the one of its SETUP. `admission` is what admitted it.
    ///
    /// # Errors
    /// The reason of a refusal.
    fn add(
        &self,
        (wire, client, waiting): (&Arc<Wire>, IpAddr, &Arc<AtomicUsize>),
        name: String,
        about: impl FnOnce(u64) -> About,
        (path, medium): (&str, Medium),
        admission: (Pass, ClientHold),
    ) -> Result<Arc<Shared>, Full> {
        let admitted = self.manager.admission().admit(client, waiting)?;
        let mut record = None;
        let subscriber = self.manager.subscribe(|id| {
            let new = Arc::new(Record::new(about(id), self.access_log));
            record = Some(new.clone());
            Some(new)
        });
        let session = Session::new(path.to_owned(), medium, subscriber, admitted, record.unwrap_or_default());
        let shared = Shared::new(session, wire, admission);
        self.sessions.add(name, client, Party::Viewer(shared.clone()));
        Ok(shared)
    }

    /// Counts a refused connection, which is closed at once.
    fn refuse_connection(&self, peer: SocketAddr) {
        self.refused.inc();
        if self.access_log {
            tracing::info!(target: millpond_logging::ACCESS, %peer, why = self.connections.why(), "RTSP connection refused");
        }
    }

    /// Ends all sessions, and waits briefly until each has logged its last line.
    async fn end(&self) {
        self.sessions.clear();
        let began = Instant::now();
        while Arc::strong_count(&self.records) > 1 && began.elapsed() < LAST_LINES {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Whether the server is stopping.
    fn is_stopping(&self) -> bool {
        self.stop.get().is_some_and(|stop| *stop.borrow())
    }

    /// Removes sessions whose clients are silent.
    async fn sweep(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(SWEEP) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            self.sessions.expire(self.now());
        }
    }
}

impl Rtsp {
    /// Makes the engine check whether frames are sent in time.
    async fn observe(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            () = self.manager.observe() => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }
}
