//! RTSP (RFC 2326): signalling for the stream engine, beside HTTP and to the same assets.
//!
//! A [`Rtsp`] has the sessions. A [`connection`] turns requests into what sessions do; a [`session`] turns PLAY into a request to
//! the engine's manager ([`millpond_stream::Manager`]), which loads and sends frames. [`interleaved`] is the engine's outlet for
//! packets on a connection.
//!
//! [`listen`] accepts connections: as they are, over TLS ([`secure`]), or through HTTP ([`tunnel`]). [`access`] checks users.

mod access;
mod assets;
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
use url::Url;

/// Silence of a client after which its session ends (RFC 2326 12.37: 60 s where nothing is said).
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);
/// Interval between searches for those.
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

/// A session, and the address that it was given to.
struct Held {
    client: IpAddr,
    session: Arc<Mutex<Session>>,
}

/// Everything RTSP of a server.
pub(crate) struct Rtsp {
    manager: Manager,
    library: Arc<Library>,
    places: Places,
    overflow: Option<Url>,
    /// A lock: taken when sessions begin and end. A session has one of its own: its requests come one after another.
    sessions: Lock<HashMap<String, Held>>,
    /// Connections that were refused because too many were open.
    refused: Counter,
    connections: Arc<Semaphore>,
    access: Option<Arc<Access>>,
    /// The moment from which the times of nonces count.
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
        Ok(Arc::new(Self {
            manager: Manager::new(store, heavy, names, options.streams, metrics.streams())?,
            library,
            places,
            overflow: options.overflow,
            sessions: Lock::default(),
            refused: metrics.rtsp_refused().clone(),
            connections: Arc::new(Semaphore::new(options.connections)),
            access,
            clock: Instant::now(),
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

    fn all(&self) -> MutexGuard<'_, HashMap<String, Held>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session of a name, for the address that it was given to: a name is of no use to others.
    fn session(&self, name: &str, client: IpAddr) -> Option<Arc<Mutex<Session>>> {
        let all = self.all();
        all.get(name).filter(|held| held.client == client.to_canonical()).map(|held| held.session.clone())
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

    /// Counts a connection over the bound, which is closed at once.
    fn refuse_connection(&self, peer: SocketAddr) {
        self.refused.inc();
        if self.access_log {
            tracing::info!(%peer, why = "max-connections is reached", "RTSP connection refused");
        }
    }

    /// Ends all sessions, and waits for a moment until each has told what was sent.
    async fn end(&self) {
        self.all().clear();
        let began = Instant::now();
        while Arc::strong_count(&self.records) > 1 && began.elapsed() < LAST_LINES {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Whether what ends now ends because the server stops.
    fn is_stopping(&self) -> bool {
        self.stop.get().is_some_and(|stop| *stop.borrow())
    }

    fn remove(&self, name: &str) {
        let session = self.all().remove(name);
        // It ends outside of the lock.
        drop(session);
    }

    /// Takes away sessions whose clients are silent.
    async fn sweep(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(SWEEP) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            let limit = self.manager.now().saturating_sub(TIMEOUT.as_millis() as u64);
            let gone: Vec<_> = self
                .all()
                .extract_if(|_, Held { session, .. }| {
                    let silent = |session: &Session| {
                        let progress = session.subscriber.progress();
                        let (is_stuck, is_silent) = (progress.is_stuck(), progress.heard() < limit);
                        // What is sent on a connection tells that its client is there.
                        let is_over = is_stuck || (is_silent && !(session.is_interleaved() && session.is_sent()));
                        if is_over {
                            session.record.ends(End::Silent);
                        }
                        is_over
                    };
                    session.try_lock().is_ok_and(|session| silent(&session))
                })
                .collect();
            // They end outside of the lock, and each tells so.
            drop(gone);
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
