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
mod overload;
mod record;
mod reply;
mod secure;
mod sending;
mod session;
mod srtp;
mod thread_time;
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
use admission::{Admission, Full, Place};
use channels::Channels;
use intervals::Intervals;
use media::Media;
use millpond_graph::Graph;
use millpond_store::{Cache, Store};
use origins::Origins;
use overload::{Change, Measured};
use record::End;
use session::{Session, Source};
use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex as Lock, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use thread_time::ThreadTime;
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

/// Time for the last lines of sessions when the server stops.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Settings of RTSP.
pub(crate) struct RtspOptions {
    /// Where packets come from.
    pub(crate) address: IpAddr,
    /// Threads that send.
    pub(crate) workers: usize,
    pub(crate) connections: usize,
    /// Who may ask; nothing where everybody may.
    pub(crate) users: Option<RtspUsers>,
    pub(crate) timeouts: Timeouts,
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
    /// Whether sessions and refusals are logged.
    pub(crate) access_log: bool,
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
    sessions: Lock<HashMap<String, Held>>,
    admission: Arc<Admission>,
    counters: Arc<StreamCounters>,
    /// Numbers of sessions.
    next: AtomicU64,
    clock: Instant,
    connections: Arc<Semaphore>,
    access: Option<Arc<Access>>,
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
            timeouts: options.timeouts,
            access_log: options.access_log,
            records: Arc::new(()),
            stop: OnceLock::new(),
        }))
    }

    /// The graph of what runs.
    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Held>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session of a name, for the address that it was given to: a name is of no use to others.
    fn session(&self, name: &str, client: IpAddr) -> Option<Arc<Mutex<Session>>> {
        let all = self.all();
        all.get(name).filter(|held| held.client == client.to_canonical()).map(|held| held.session.clone())
    }

    /// What sessions are played from.
    fn source(&self) -> Source<'_> {
        let Self { media, origins, graph, intervals, admission, channels, counters, lateness, .. } = self;
        Source { media, origins, graph, intervals, admission, channels, counters, lateness: *lateness }
    }

    /// A new session of a client under a name that can't be guessed. `waiting` counts those of its connection that have not
    /// played.
    ///
    /// # Errors
    /// Why there is no room for it.
    fn add(
        &self,
        (client, waiting): (IpAddr, &Arc<AtomicUsize>),
        name: String,
        make: impl FnOnce(u64, Place, Transmitter) -> Session,
    ) -> Result<(String, Arc<Mutex<Session>>), Full> {
        let place = self.admission.place(client, waiting)?;
        let id = self.number();
        let transmitter = self.transmitters[id as usize % self.transmitters.len()].clone();
        let session = make(id, place, transmitter);
        session.progress.heard.store(self.now(), Ordering::Relaxed);
        let session = Arc::new(Mutex::new(session));
        self.all().insert(name.clone(), Held { client: client.to_canonical(), session: session.clone() });
        Ok((name, session))
    }

    /// Counts a refusal.
    fn refuse(&self, full: Full) {
        if let Some(count) = self.counters.refused.get(full as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a connection over the bound, which is closed at once.
    fn refuse_connection(&self, peer: SocketAddr) {
        self.counters.refused_connections.fetch_add(1, Ordering::Relaxed);
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
                .extract_if(|_, Held { session, .. }| {
                    let silent = |session: &Session| {
                        let is_stuck = session.progress.is_stuck.load(Ordering::Relaxed);
                        let is_silent = session.progress.heard.load(Ordering::Relaxed) < limit;
                        // What is sent on a connection tells that its client is there.
                        let is_over = is_stuck || (is_silent && !(session.is_interleaved() && session.is_sent()));
                        if is_over {
                            session.progress.record.ends(End::Silent);
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
    /// Measures once a second whether frames go out in time, and why they do not.
    async fn observe(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let read = || [&self.counters.frames, &self.counters.lagging_frames].map(|c| c.load(Ordering::Relaxed));
        let mut before = (read(), Instant::now());
        let mut times: Vec<_> = self.transmitters.iter().map(|sender| ThreadTime::of(sender.thread)).collect();
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            let now = (read(), Instant::now());
            let [frames, late] = [now.0[0] - before.0[0], now.0[1] - before.0[1]];
            let threads = times.iter_mut().filter_map(ThreadTime::spent).collect();
            let measured = Measured { elapsed: now.1 - before.1, frames, late, threads };
            before = now;
            let change = self.admission.observe(now.1, &measured);
            self.tell(change, &measured);
            for place in self.origins.observe() {
                tracing::warn!(%place, "frames come late: no more sessions may read from there for now");
            }
        }
    }

    /// Counts what the threads spent, and logs what has changed with what it was measured by.
    fn tell(&self, change: Option<Change>, measured: &Measured) {
        let Measured { frames, late, threads, .. } = measured;
        let micros = |time: Duration| time.as_micros() as u64;
        for spent in threads {
            self.counters.sender_run_micros.fetch_add(micros(spent.run), Ordering::Relaxed);
            self.counters.sender_wait_micros.fetch_add(micros(spent.wait), Ordering::Relaxed);
        }
        match change {
            Some(Change::Refuses) => {
                self.counters.overloaded.store(1, Ordering::Relaxed);
                tracing::warn!(
                    frames,
                    late,
                    ?threads,
                    "frames are sent late for seconds: a sending thread has too much to do, newcomers are refused for now"
                );
            }
            Some(Change::Takes) => {
                self.counters.overloaded.store(0, Ordering::Relaxed);
                tracing::info!("frames are sent in time again: newcomers are taken");
            }
            Some(Change::Starved) => tracing::warn!(
                frames,
                late,
                ?threads,
                "frames are sent late: the sending threads wait for the processor, which others use; nobody is refused"
            ),
            None => {}
        }
    }
}
