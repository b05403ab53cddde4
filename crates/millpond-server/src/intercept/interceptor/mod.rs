//! The interceptor: the state that all intercepted connections share.
//!
//! `listen` accepts them; their local address is the original destination. `connection` decides what becomes of each. A GET
//! becomes a live stream or a stored title of the server's RTSP port (`translation`), which HTTP answers with one long response. All else is
//! passed on by `relay`, to one server of a group (`spread`). Destinations outside of `intercept-networks` are closed, and so are loops.

mod connection;
mod knowledge;
mod listen;
mod own_addresses;
mod reach;
mod relay;
mod request;
mod rtsp_probe;
mod spread;
mod translation;
mod upstream;

pub(crate) use listen::accept;

use super::{InterceptMetrics, InterceptOptions, InterceptSettings, metrics};
use crate::{http::Front, rtsp::CurrentRtsp};
use knowledge::{Fact, Knowledge};
use millpond_connections::ClientTally;
use millpond_http::wire::Service;
use millpond_stream::{ClientAddress, Manager};
use own_addresses::OwnAddresses;
use relay::FastThreads;
use spread::Spread;
use std::{
    hash::{BuildHasher as _, RandomState},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::{Semaphore, watch};
use translation::SourceOptions;
use upstream::Upstream;

/// Time for cut connections to end.
const CUT_GRACE: Duration = Duration::from_secs(1);

/// State that all intercepted connections share.
pub(crate) struct Intercept {
    settings: InterceptSettings,
    manager: Arc<Manager>,
    service: Arc<Service<Front>>,
    /// Serves clients of RTSP that share a stream.
    rtsp: CurrentRtsp,
    metrics: InterceptMetrics,
    own: OwnAddresses,
    clients: Arc<ClientTally<ClientAddress>>,
    /// One permit per possible connection.
    connections: Arc<Semaphore>,
    connections_most: usize,
    /// A lock: taken for a look-up.
    knowledge: Mutex<Knowledge>,
    /// Hashes paths. Its keys are random, so that nobody can choose paths with one hash.
    hasher: RandomState,
    upstream: Upstream,
    /// Connections of groups of servers.
    spread: Spread,
    /// Threads of fast connections that are passed on.
    threads: FastThreads,
    /// How streams of servers are received.
    sources: SourceOptions,
    /// Whether each connection is logged.
    access_log: bool,
    /// Becomes true when connections end at once.
    cut: watch::Sender<bool>,
}

impl Intercept {
    /// Creates the state; `None` where nothing is intercepted. `service` and `rtsp` answer requests that become streams of
    /// `manager`.
    pub(crate) fn new(
        InterceptOptions { settings, live, max_connections, access_log }: InterceptOptions<'_>,
        manager: Arc<Manager>,
        (service, rtsp): (Arc<Service<Front>>, CurrentRtsp),
        metrics: &InterceptMetrics,
    ) -> Option<Arc<Self>> {
        settings.address?;
        Some(Arc::new(Self {
            manager,
            service,
            rtsp,
            metrics: metrics.clone(),
            own: OwnAddresses::default(),
            clients: Arc::default(),
            connections: Arc::new(Semaphore::new(max_connections)),
            connections_most: max_connections,
            knowledge: Mutex::new(Knowledge::new(settings.memory)),
            hasher: RandomState::new(),
            upstream: Upstream { mark: settings.mark, limit: live.timeout },
            spread: Spread::default(),
            threads: FastThreads::new(),
            sources: SourceOptions::new(live),
            access_log,
            cut: watch::Sender::new(false),
            settings,
        }))
    }

    /// Waits until every connection has ended.
    pub(crate) async fn drained(&self) {
        let all = u32::try_from(self.connections_most).unwrap_or(u32::MAX);
        let _ = self.connections.acquire_many(all).await;
    }

    /// Ends every connection at once.
    pub(crate) async fn cut(&self) {
        self.cut.send_replace(true);
        let _ = tokio::time::timeout(CUT_GRACE, self.drained()).await;
    }

    /// Returns the number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.connections_most - self.connections.available_permits()
    }

    fn knowledge(&self) -> MutexGuard<'_, Knowledge> {
        self.knowledge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn knows(&self, fact: Fact) -> bool {
        self.knowledge().has(fact, Instant::now())
    }

    fn note(&self, fact: Fact) {
        self.knowledge().note(fact, Instant::now());
    }

    /// Returns the fact that a server has no path, which is a request target.
    fn no_path(&self, server: IpAddr, target: &str) -> Fact {
        Fact::NoPath(server, self.hash(target))
    }

    fn hash(&self, text: &str) -> u64 {
        self.hasher.hash_one(text)
    }
}
