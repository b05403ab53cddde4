//! RTSP (RFC 2326): signalling for the stream engine, beside HTTP and to the same assets.
//!
//! [`signalling`] decides, without sockets and clocks: it turns the bytes of a connection into replies and actions. A
//! [`connection`] reads, writes and performs the actions; a [`session`] turns PLAY into a request to the engine's manager
//! ([`millpond_stream::Manager`]), which loads and sends frames. [`interleaved`] is the engine's outlet for
//! packets on a connection.
//!
//! [`listen`] accepts connections: as they are, over TLS ([`secure`]), or through HTTP ([`tunnel`]). [`access`] checks users.

mod access;
mod connection;
mod heavy;
mod inlet;
mod interleaved;
mod listen;
mod random;
mod record;
mod reply;
mod secure;
mod session;
mod signalling;
mod srtp;
mod tunnel;
mod users;
mod wire;

pub(crate) use listen::{Listeners, accept};
pub use users::{BadLine, Users, UsersError};

use crate::config::RtspUsers;
use crate::library::{Library, Places};
use crate::metrics::Metrics;
use access::Access;
use heavy::Heavy;
use millpond_store::Store;
use millpond_stream::{Full, Manager, Options, Program, StoredMedia};
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
use tokio::sync::{Semaphore, watch};
use tunnel::Tunnels;
use url::Url;

/// Interval between searches for sessions whose clients are silent.
const SWEEP: Duration = Duration::from_secs(5);
/// Time for the last lines of sessions when the server stops.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Settings of RTSP.
pub(crate) struct RtspOptions {
    /// Most connections at a time.
    pub(crate) connections: usize,
    /// Credentials that clients must present; `None` admits everyone.
    pub(crate) users: Option<RtspUsers>,
    pub(crate) timeouts: Timeouts,
    /// Where clients are sent when there is no room here.
    pub(crate) overflow: Option<Url>,
    /// Whether sessions and refusals are logged.
    pub(crate) access_log: bool,
    /// Settings of the stream engine.
    pub(crate) streams: Options,
}

/// How long clients may take, as on HTTP: on plain connections, over TLS and through tunnels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// Time without a request, for a client of which nothing plays.
    pub(crate) idle: Duration,
    /// Time from the first byte of a request to its last, and for a TLS handshake.
    pub(crate) head: Duration,
    /// Time in which a client takes nothing of what is sent to it.
    pub(crate) write: Duration,
}

/// Everything RTSP of a server.
pub(crate) struct Rtsp {
    manager: Manager,
    library: Arc<Library>,
    places: Places,
    overflow: Option<Url>,
    /// Each session has a lock of its own: its requests come one after another.
    sessions: Sessions<Arc<Shared>>,
    /// Connections that were refused because too many were open.
    refused: Counter,
    connections: Arc<Semaphore>,
    access: Option<Arc<Access>>,
    /// The moment from which times of sessions, connections and nonces count: the engine's.
    clock: Instant,
    tunnels: Arc<Tunnels>,
    timeouts: Timeouts,
    access_log: bool,
    /// Shared by the records of sessions that are still to end.
    records: Arc<()>,
    /// Turns true when the server stops; set when it begins to accept.
    stop: OnceLock<watch::Receiver<bool>>,
}

impl Rtsp {
    pub(crate) fn new(
        store: Store,
        library: Arc<Library>,
        places: Places,
        options: RtspOptions,
        metrics: &Metrics,
    ) -> io::Result<Arc<Self>> {
        let guard = |users| random::bytes().map(|key| Arc::new(Access::new(users, &key)));
        let access = options.users.map(guard).transpose()?;
        let heavy = Arc::new(Heavy(library.pool().clone()));
        let names: Vec<_> = places.iter().cloned().collect();
        let manager = Manager::new(store, heavy, names, options.streams, metrics.streams())?;
        Ok(Arc::new(Self {
            clock: manager.clock(),
            manager,
            library,
            places,
            overflow: options.overflow,
            sessions: Sessions::default(),
            refused: metrics.rtsp_refused().clone(),
            connections: Arc::new(Semaphore::new(options.connections)),
            access,
            tunnels: Arc::default(),
            timeouts: options.timeouts,
            access_log: options.access_log,
            records: Arc::new(()),
            stop: OnceLock::new(),
        }))
    }

    /// The stream engine.
    pub(crate) fn manager(&self) -> &Manager {
        &self.manager
    }

    /// Time since the moment from which times count.
    fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    /// The moment of a time, for the runtime's timers.
    fn instant(&self, time: Duration) -> tokio::time::Instant {
        (self.clock + time).into()
    }

    /// Makes a session of a client, under a name that can't be guessed. `waiting` counts the sessions of its connection that have
    /// not played. `about` says what the log tells of it; `path` is the one of its SETUP.
    ///
    /// # Errors
    /// The reason of a refusal.
    fn add(
        &self,
        (client, waiting): (IpAddr, &Arc<AtomicUsize>),
        name: String,
        about: impl FnOnce(u64) -> About,
        (path, media, program): (&str, Arc<StoredMedia>, Option<Program>),
    ) -> Result<Arc<Shared>, Full> {
        let admitted = self.manager.admission().admit(client, waiting)?;
        let mut record = None;
        let subscriber = self.manager.subscribe(|id| {
            let new = Arc::new(Record::new(self.access_log.then(|| about(id))));
            record = Some(new.clone());
            Some(new)
        });
        let session = Session::new(path.to_owned(), (media, program), subscriber, admitted, record.unwrap_or_default());
        let shared = Shared::new(session);
        self.sessions.add(name, client, shared.clone());
        Ok(shared)
    }

    /// Counts a connection over the bound, which is closed at once.
    fn refuse_connection(&self, peer: SocketAddr) {
        self.refused.inc();
        if self.access_log {
            tracing::info!(%peer, why = "max-connections is reached", "RTSP connection refused");
        }
    }

    /// Ends all sessions, and waits for a moment until each has told what was sent.
    async fn end(&self) {
        self.sessions.clear();
        let began = Instant::now();
        while Arc::strong_count(&self.records) > 1 && began.elapsed() < LAST_LINES {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Whether what ends now ends because the server stops.
    fn is_stopping(&self) -> bool {
        self.stop.get().is_some_and(|stop| *stop.borrow())
    }

    /// Takes away sessions whose clients are silent.
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
    /// Has the engine watch whether frames are sent in time.
    async fn observe(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            () = self.manager.observe() => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }
}
