//! RTSP (RFC 2326): signalling for the stream engine, with the same assets as HTTP.
//!
//! A [`Rtsp`] holds the sessions. A [`connection`] turns requests into operations on sessions. A [`session`] turns PLAY
//! into a request to the engine's manager ([`millpond_stream::Manager`]), which loads and sends frames. [`interleaved`]
//! is the engine's outlet for packets on a connection.
//!
//! [`listen`] accepts connections: plain, over TLS ([`secure`]), or through HTTP ([`tunnel`]). [`access`] checks users.

mod access;
mod connection;
mod heavy;
mod inlet;
mod interleaved;
mod listen;
mod metrics;
mod random;
mod record;
mod reply;
mod secure;
mod session;
mod settings;
mod srtp;
mod tunnel;
mod users;
mod wire;

pub(crate) use listen::{Listeners, accept};
pub(crate) use metrics::RtspMetrics;
pub use settings::{RtspSettings, RtspUsers};
pub use users::{BadLine, Users, UsersError};

use crate::library::{Library, Places};
use crate::limits::{ConnectionTimeouts, LimitSettings};
use crate::priority::{self, Duty};
use access::Access;
use heavy::Heavy;
use millpond_store::Store;
use millpond_stream::{Full, Manager, Program, StoredMedia};
use prometheus_client::metrics::counter::Counter;
use record::{About, End, Record};
use session::Session;
use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex as Lock, MutexGuard, OnceLock, PoisonError, atomic::AtomicUsize},
    time::{Duration, Instant},
};
use tokio::sync::{Mutex, Semaphore, watch};
use tunnel::Tunnels;

/// Interval between searches for silent sessions.
const SWEEP: Duration = Duration::from_secs(5);
/// Time for the last lines of sessions when the server stops.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Settings of RTSP, and settings of the whole server that RTSP follows.
pub(crate) struct RtspOptions {
    pub(crate) settings: RtspSettings,
    pub(crate) limits: LimitSettings,
    /// Whether sessions and refusals are logged.
    pub(crate) access_log: bool,
}

/// A session, and the client address that may use it.
struct Held {
    client: IpAddr,
    session: Arc<Mutex<Session>>,
}

/// The RTSP front end of a server.
pub(crate) struct Rtsp {
    manager: Manager,
    library: Arc<Library>,
    places: Places,
    settings: RtspSettings,
    /// A lock: taken when sessions begin and end. Each session has a lock of its own, which orders its requests.
    sessions: Lock<HashMap<String, Held>>,
    /// Number of connections refused because too many were open.
    refused: Counter,
    connections: Arc<Semaphore>,
    access: Option<Arc<Access>>,
    /// Start of the clock that dates nonces.
    clock: Instant,
    tunnels: Arc<Tunnels>,
    timeouts: ConnectionTimeouts,
    access_log: bool,
    /// Shared by the records of sessions that have not ended.
    records: Arc<()>,
    /// Turns true when the server stops. Set when it begins to accept.
    stop: OnceLock<watch::Receiver<bool>>,
}

impl Rtsp {
    pub(crate) fn new(
        store: Store,
        library: Arc<Library>,
        places: Places,
        options: RtspOptions,
        metrics: &RtspMetrics,
    ) -> io::Result<Arc<Self>> {
        let guard = |users| random::bytes().map(|key| Arc::new(Access::new(users, &key)));
        let RtspOptions { settings, limits, access_log } = options;
        let access = settings.users.clone().map(guard).transpose()?;
        let engine = settings.engine(limits.workers, || priority::raise(Duty::Sending));
        let heavy = Arc::new(Heavy(library.pool().clone()));
        let names: Vec<_> = places.iter().cloned().collect();
        Ok(Arc::new(Self {
            manager: Manager::new(store, heavy, names, engine, &metrics.streams)?,
            library,
            places,
            settings,
            sessions: Lock::default(),
            refused: metrics.refused.clone(),
            connections: Arc::new(Semaphore::new(limits.max_connections)),
            access,
            clock: Instant::now(),
            tunnels: Arc::default(),
            timeouts: limits.timeouts,
            access_log,
            records: Arc::new(()),
            stop: OnceLock::new(),
        }))
    }

    /// Returns the stream engine's manager.
    pub(crate) fn manager(&self) -> &Manager {
        &self.manager
    }

    /// The value of `Session` for a new session: its name, and the silence that ends it.
    fn session_field(&self, name: &str) -> String {
        format!("{name};timeout={}", self.settings.session_timeout.as_secs())
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Held>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the session of a name if `client` created it: a name is useless to other clients.
    fn session(&self, name: &str, client: IpAddr) -> Option<Arc<Mutex<Session>>> {
        let all = self.all();
        all.get(name).filter(|held| held.client == client.to_canonical()).map(|held| held.session.clone())
    }

    /// Creates a session of a client, under a name that cannot be guessed. `waiting` counts the sessions of its
    /// connection that have not played. `about` identifies it in the log; `path` is the one of its SETUP.
    ///
    /// # Errors
    /// The reason of a refusal.
    fn add(
        &self,
        (client, waiting): (IpAddr, &Arc<AtomicUsize>),
        name: String,
        about: impl FnOnce(u64) -> About,
        (path, media, program): (&str, Arc<StoredMedia>, Option<Program>),
    ) -> Result<(String, Arc<Mutex<Session>>), Full> {
        let admitted = self.manager.admission().admit(client, waiting)?;
        let mut record = None;
        let subscriber = self.manager.subscribe(|id| {
            let new = Arc::new(Record::new(self.access_log.then(|| about(id))));
            record = Some(new.clone());
            Some(new)
        });
        let session = Session::new(path.to_owned(), (media, program), subscriber, admitted, record.unwrap_or_default());
        let session = Arc::new(Mutex::new(session));
        self.all().insert(name.clone(), Held { client: client.to_canonical(), session: session.clone() });
        Ok((name, session))
    }

    /// Counts a refused connection, which is closed at once.
    fn refuse_connection(&self, peer: SocketAddr) {
        self.refused.inc();
        if self.access_log {
            tracing::info!(%peer, why = "max-connections is reached", "RTSP connection refused");
        }
    }

    /// Ends all sessions, and waits briefly until each has logged its last line.
    async fn end(&self) {
        self.all().clear();
        let began = Instant::now();
        while Arc::strong_count(&self.records) > 1 && began.elapsed() < LAST_LINES {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Whether the server is stopping.
    fn is_stopping(&self) -> bool {
        self.stop.get().is_some_and(|stop| *stop.borrow())
    }

    fn remove(&self, name: &str) {
        let session = self.all().remove(name);
        // The session ends outside of the lock.
        drop(session);
    }

    /// Removes sessions whose clients are silent.
    async fn sweep(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(SWEEP) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            let limit = self.manager.now().saturating_sub(self.settings.session_timeout.as_millis() as u64);
            let gone: Vec<_> = self
                .all()
                .extract_if(|_, Held { session, .. }| {
                    let silent = |session: &Session| {
                        let progress = session.subscriber.progress();
                        let (is_stuck, is_silent) = (progress.is_stuck(), progress.heard() < limit);
                        // A client that accepts packets on its connection is there.
                        let is_over = is_stuck || (is_silent && !(session.is_interleaved() && session.is_sent()));
                        if is_over {
                            session.record.ends(End::Silent);
                        }
                        is_over
                    };
                    session.try_lock().is_ok_and(|session| silent(&session))
                })
                .collect();
            // Sessions end outside of the lock, and each logs its end.
            drop(gone);
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
