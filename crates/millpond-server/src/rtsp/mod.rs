//! RTSP (RFC 2326): a front end beside that of HTTP, to the same assets.
//!
//! A [`Rtsp`] has the sessions. A [`connection`] turns requests into what sessions do; a [`session`] knows which tracks go
//! where; a [`loader`] reads frames ahead of what is due, and a [`transmit`]ter sends them when they are, many sessions a
//! thread.
//!
//! [`listen`] accepts connections: as they are, over TLS ([`secure`]), or through HTTP ([`tunnel`]). [`access`] knows who
//! may ask.

mod access;
mod admission;
mod bandwidth;
mod batch;
mod block;
mod chance;
mod channel;
mod channels;
mod connection;
mod cut;
mod deadline;
mod described;
mod groups;
mod inlet;
mod intervals;
mod keys;
mod listen;
mod loader;
mod media;
mod origins;
mod reply;
mod secure;
mod sending;
mod session;
mod srtp;
mod track;
mod transmit;
mod tunnel;
mod users;
mod wheel;
mod wire;

pub use admission::Bounds;
pub use deadline::Lateness;
pub use groups::{Groups, NoGroups};
pub(crate) use listen::{Listeners, accept};
pub use users::{BadLine, Users, UsersError};

use crate::config::RtspUsers;
use crate::library::{Library, Places};
use crate::metrics::StreamCounters;
use access::Access;
use admission::{Admission, Place};
use channels::Channels;
use intervals::Intervals;
use media::Media;
use millpond_graph::Graph;
use millpond_store::{Cache, Store};
use origins::Origins;
use session::{Session, Source};
use std::{
    collections::HashMap,
    io,
    net::IpAddr,
    sync::{
        Arc, Mutex as Lock, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::{Mutex, Semaphore, watch};
use transmit::Transmitter;
use tunnel::Tunnels;
use url::Url;

/// A session whose client is silent for so long is over (RFC 2326 12.37: 60 s where nothing is said).
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);
/// How often it is looked for those.
const SWEEP: Duration = Duration::from_secs(5);
/// How often it is looked whether frames go out in time.
const LOOK: Duration = Duration::from_secs(1);

/// Settings of RTSP.
pub(crate) struct RtspOptions {
    /// Where packets come from.
    pub(crate) address: IpAddr,
    /// Threads that send.
    pub(crate) workers: usize,
    pub(crate) connections: usize,
    /// Who may ask; nothing where everybody may.
    pub(crate) users: Option<RtspUsers>,
    /// From the first byte of a request to its last, and for a TLS handshake.
    pub(crate) head: Duration,
    pub(crate) bounds: Bounds,
    /// The caching window.
    pub(crate) window: Duration,
    pub(crate) lateness: Lateness,
    /// Paths of the assets that are channels.
    pub(crate) channels: Vec<String>,
    /// Where those are multicast.
    pub(crate) groups: Option<Groups>,
    /// Where clients are sent when there is no room here.
    pub(crate) overflow: Option<Url>,
}

/// Everything RTSP of a server.
pub(crate) struct Rtsp {
    media: Media,
    library: Arc<Library>,
    places: Places,
    origins: Origins,
    graph: Graph,
    intervals: Arc<Intervals>,
    lateness: Lateness,
    channels: Channels,
    overflow: Option<Url>,
    transmitters: Vec<Transmitter>,
    /// A lock: taken when sessions come and go. A session has one of its own: its requests come one after another.
    sessions: Lock<HashMap<String, Arc<Mutex<Session>>>>,
    admission: Arc<Admission>,
    counters: Arc<StreamCounters>,
    /// Numbers of sessions.
    next: AtomicU64,
    clock: Instant,
    connections: Arc<Semaphore>,
    access: Option<Arc<Access>>,
    tunnels: Arc<Tunnels>,
    /// How long a request may take to come in.
    head: Duration,
}

impl Rtsp {
    pub(crate) fn new(
        store: Store,
        library: Arc<Library>,
        places: Places,
        options: RtspOptions,
        counters: &Arc<StreamCounters>,
    ) -> io::Result<Arc<Self>> {
        let clock = Instant::now();
        let channels = Channels::new(options.channels, options.groups);
        let way = (options.address, channels.ttl());
        let start = |number| Transmitter::start(way, number, counters.clone(), clock);
        let transmitters = (0..options.workers.max(1)).map(start).collect::<io::Result<_>>()?;
        let guard = |users| chance::bytes().map(|key| Arc::new(Access::new(users, &key)));
        let access = options.users.map(guard).transpose()?;
        let blocks = Cache::of(store.memory(), "frames");
        let origins = Origins::new(&places, options.bounds.origin_bandwidth);
        let media = Media::new(store, library.pool().clone());
        Ok(Arc::new(Self {
            admission: Admission::new(options.bounds, media.holds.clone()),
            media,
            library,
            places,
            origins,
            graph: Graph::default(),
            intervals: Intervals::new(blocks, options.window, counters.clone()),
            lateness: options.lateness,
            channels,
            overflow: options.overflow,
            transmitters,
            sessions: Lock::default(),
            counters: counters.clone(),
            next: AtomicU64::new(0),
            clock,
            connections: Arc::new(Semaphore::new(options.connections)),
            access,
            tunnels: Arc::default(),
            head: options.head,
        }))
    }

    /// The graph of what runs.
    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<Mutex<Session>>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self, name: &str) -> Option<Arc<Mutex<Session>>> {
        self.all().get(name).cloned()
    }

    /// What sessions are played from.
    fn source(&self) -> Source<'_> {
        let Self { media, origins, graph, intervals, admission, channels, counters, lateness, .. } = self;
        Source { media, origins, graph, intervals, admission, channels, counters, lateness: *lateness }
    }

    /// A new session of a client under a name that can't be guessed; nothing where there are too many.
    fn add(
        &self,
        client: IpAddr,
        make: impl FnOnce(u64, Place, Transmitter) -> Session,
    ) -> Option<(String, Arc<Mutex<Session>>)> {
        let place = self.admission.place(client)?;
        let id = self.number();
        let transmitter = self.transmitters[id as usize % self.transmitters.len()].clone();
        let name = format!("{:032x}", u128::from_ne_bytes(chance::bytes().ok()?));
        let session = make(id, place, transmitter);
        session.progress.heard.store(self.now(), Ordering::Relaxed);
        let session = Arc::new(Mutex::new(session));
        self.all().insert(name.clone(), session.clone());
        Some((name, session))
    }

    /// A number that nothing else that is sent has.
    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn remove(&self, name: &str) {
        let session = self.all().remove(name);
        // It ends outside of the lock.
        drop(session);
    }

    /// Milliseconds of the server's clock.
    fn now(&self) -> u64 {
        self.clock.elapsed().as_millis() as u64
    }

    /// Takes away sessions whose clients are silent.
    async fn sweep(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(SWEEP) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            let limit = self.now().saturating_sub(TIMEOUT.as_millis() as u64);
            let gone: Vec<_> = self
                .all()
                .extract_if(|_, session| {
                    let silent = |session: &Session| {
                        let is_stuck = session.progress.is_stuck.load(Ordering::Relaxed);
                        // On a connection it is as alive as that.
                        let is_silent = session.progress.heard.load(Ordering::Relaxed) < limit;
                        is_stuck || (is_silent && !session.is_interleaved())
                    };
                    session.try_lock().is_ok_and(|session| silent(&session))
                })
                .collect();
            for (name, _) in gone {
                tracing::info!(session = name, "session timed out");
            }
        }
    }
}

impl Rtsp {
    /// Looks whether frames go out in time.
    async fn observe(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let read = || [&self.counters.frames, &self.counters.lagging_frames].map(|c| c.load(Ordering::Relaxed));
        let mut before = read();
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            let now = read();
            let [frames, late] = [now[0] - before[0], now[1] - before[1]];
            before = now;
            if self.admission.observe(frames, late) {
                tracing::warn!(frames, late, "frames go out late: no more sessions may play for now");
            }
            for place in self.origins.observe() {
                tracing::warn!(%place, "frames come late: no more sessions may read from there for now");
            }
        }
    }
}
