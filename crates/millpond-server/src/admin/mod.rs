//! The admin address: the console, the API, metrics and health.
//!
//! `/` is the console. `/livez` tells that the process runs, `/readyz` that it can serve. `/metrics` has the metrics. `/api/v1` is the API
//! ([`api`]), which shows and changes everything else. The listener is plain HTTP/1.1 on an address or a socket file, meant for the machine, its operator
//! and its orchestrator, not for viewers.

mod api;
mod console;
mod gate;
mod hosts;
mod listener;
mod monitor;
mod node_api;
mod plain;
mod readiness;
mod settings;
mod simulations;
mod spare;

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use millpond_stream::Manager;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio_io_timeout::TimeoutStream;

use crate::cluster::Cluster;
use crate::events::Events;
use crate::http::{Front, Kind};
use crate::lab;
use crate::live::Sources;
use crate::metrics::Metrics;
use crate::modules::Modules;
use crate::problem::{self, Problem};
use crate::recordings::{Recordings, Shelf};
use crate::reload::Reloader;
use crate::rtmp::Rtmp;
use crate::rtsp::Rtsp;
use crate::schedule::Schedules;
use crate::srt::SrtPort;
use crate::statistics::Statistics;
use crate::upgrade::Upgrader;
use millpond_connections::ConnectionTimeouts;
use millpond_logging::RequestId;

pub(crate) use gate::AdminGate;
pub use gate::AdminToken;
pub(crate) use hosts::AllowedHosts;
use listener::{AdminDoor, AdminStream};
pub(crate) use listener::{AdminListener, AdminSocket};
use monitor::Monitor;
pub(crate) use readiness::Readiness;
pub use settings::{AdminAddress, AdminSettings};
use simulations::Simulations;
use spare::{Spare, is_without_descriptors};

/// Connections to the admin address at a time: scrapers and probes are few.
const CONNECTIONS: usize = 64;

/// Event feeds among them.
const FEEDS: usize = 16;

/// Largest request head, as on the other listeners.
const MAX_HEAD: usize = 16 << 10;

/// Time that replies under way have at the end of the server.
const LAST_REPLIES: Duration = Duration::from_secs(1);

/// A pause after a failed accept: the usual cause is that no file can be opened for the moment.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const JSON: &str = "application/json";

type Body = UnsyncBoxBody<Bytes, Infallible>;
type Reply = Response<Body>;

/// The parts of a server that the admin address shows and changes.
#[derive(Clone)]
pub(crate) struct AdminParts {
    /// The counters.
    pub(crate) metrics: Arc<Metrics>,
    /// Whether the server can serve.
    pub(crate) readiness: Arc<Readiness>,
    /// The HTTP front end, which answers viewers.
    pub(crate) front: Arc<Front>,
    /// The RTSP front end.
    pub(crate) rtsp: Arc<Rtsp>,
    /// The RTMP front end.
    pub(crate) rtmp: Arc<Rtmp>,
    /// The port of SRT; `None` where it is off.
    pub(crate) srt: Option<Arc<SrtPort>>,
    /// The stream engine.
    pub(crate) manager: Arc<Manager>,
    /// Paths as the engine plays them.
    pub(crate) sources: Arc<Sources>,
    /// The cluster, where this server is a node of one.
    pub(crate) cluster: Option<Arc<Cluster>>,
    /// Modules that operators attach.
    pub(crate) modules: Arc<Modules>,
    /// Recordings of channels; `None` where recording is off.
    pub(crate) recordings: Option<Arc<Recordings>>,
    /// Files of continuous recordings; `None` where recording is off.
    pub(crate) shelf: Option<Arc<Shelf>>,
    /// Events of streams, viewers, recordings and disks.
    pub(crate) events: Arc<Events>,
    /// Streams that play at given times.
    pub(crate) schedules: Arc<Schedules>,
    /// Statistics of viewing.
    pub(crate) statistics: Arc<Statistics>,
    /// The threads that serve viewers. Media is read there, and not on the admin thread.
    pub(crate) serving: Handle,
    /// Rules for requests.
    pub(crate) gate: AdminGate,
    /// Timeouts of connections.
    pub(crate) limits: ConnectionTimeouts,
    /// Shows, changes and reloads the configuration; `None` in tests without a server.
    pub(crate) reloader: Option<Reloader>,
    /// Starts a process that takes over; `None` where that is not possible.
    pub(crate) upgrader: Option<Upgrader>,
}

impl AdminParts {
    /// Conditions that are not met yet, in words; empty where new viewers may be sent to this server.
    pub(crate) fn waiting_for(&self) -> Vec<String> {
        let out = self.cluster.as_ref().and_then(|cluster| cluster.is_out_of_service()).map(str::to_owned);
        self.readiness.waiting_for().into_iter().chain(out).collect()
    }
}

/// Makes the parts for a request: a reload replaces some of them.
pub(crate) type MakeParts = Arc<dyn Fn() -> AdminParts + Send + Sync>;

/// The state of the admin address for one request.
struct AdminState {
    parts: AdminParts,
    desk: Arc<Desk>,
}

/// State of the admin address that outlives requests and reloads.
struct Desk {
    make: MakeParts,
    started: (Instant, SystemTime),
    monitor: Monitor,
    simulations: Simulations,
    /// One permit per possible event feed.
    feeds: Arc<Semaphore>,
    /// Turns true when the admin address is closed.
    shutdown: watch::Receiver<bool>,
}

impl std::ops::Deref for AdminState {
    type Target = AdminParts;

    fn deref(&self) -> &AdminParts {
        &self.parts
    }
}

impl Desk {
    fn new(make: MakeParts, shutdown: watch::Receiver<bool>) -> Arc<Self> {
        let started = (Instant::now(), SystemTime::now());
        let (monitor, feeds) = (Monitor::new(started.0), Arc::new(Semaphore::new(FEEDS)));
        Arc::new(Self { make, started, monitor, simulations: Simulations::new(lab::program), feeds, shutdown })
    }

    /// The state for one request.
    fn state(self: &Arc<Self>) -> Arc<AdminState> {
        Arc::new(AdminState { parts: (self.make)(), desk: self.clone() })
    }
}

/// Starts a thread that serves the admin address until `shutdown` becomes true or its sender is gone. The receiver
/// that it gives learns of the end.
///
/// It has a runtime of its own, so that health and metrics are answered however busy the serving threads are.
///
/// # Errors
/// The system's, where it gives no thread.
pub(crate) fn start(
    socket: AdminSocket,
    make: MakeParts,
    shutdown: watch::Receiver<bool>,
) -> io::Result<oneshot::Receiver<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let door = {
        let _entered = runtime.enter();
        socket.into_door()?
    };
    let desk = Desk::new(make, shutdown.clone());
    if let Some(cluster) = &desk.state().cluster {
        let desk: Weak<Desk> = Arc::downgrade(&desk);
        cluster.serve_api(desk);
    }
    let (end, ended) = oneshot::channel();
    std::thread::Builder::new().name("admin".to_owned()).spawn(move || {
        runtime.block_on(serve(door, desk, shutdown));
        let _ = end.send(());
    })?;
    Ok(ended)
}

/// Serves the admin address until `shutdown` becomes true or its sender is gone.
///
/// Connections under way then have a second to end by themselves; each lasts at most for one more request.
async fn serve(door: AdminDoor, desk: Arc<Desk>, mut shutdown: watch::Receiver<bool>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let spare = Spare::new();
    let _monitoring = Monitor::start(&desk);
    loop {
        let accepted = tokio::select! {
            () = down(&mut shutdown) => {
                let _ = tokio::time::timeout(LAST_REPLIES, slots.acquire_many(CONNECTIONS as u32)).await;
                return;
            }
            accepted = door.accept() => accepted,
        };
        let stream = match accepted {
            Ok(stream) => stream,
            // The next attempt has the descriptor.
            Err(error) if is_without_descriptors(&error) && spare.give() => continue,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection to the admin address");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Over the bound the connection is closed at once: a scraper tries again by itself.
        if let Ok(slot) = Arc::clone(&slots).try_acquire_owned() {
            let (desk, shutdown, spare) = (desk.clone(), shutdown.clone(), spare.clone());
            tokio::spawn(async move {
                connection(stream, desk, shutdown).await;
                spare.refill();
                drop(slot);
            });
        }
    }
}

/// Waits for shutdown, or for its sender to be gone.
async fn down(shutdown: &mut watch::Receiver<bool>) {
    let _ = shutdown.wait_for(|down| *down).await;
}

async fn connection(stream: AdminStream, desk: Arc<Desk>, mut shutdown: watch::Receiver<bool>) {
    let limits = desk.state().limits;
    let service = service_fn(move |request: Request<Incoming>| {
        let state = desk.state();
        async move { Ok::<_, Infallible>(counted(request, &state).await) }
    });
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(limits.write));
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        // Runs from the end of one request to that of the next one's head: it bounds idling too.
        .header_read_timeout(limits.head.min(limits.idle))
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(Box::pin(stream)), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = down(&mut shutdown) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "admin connection ended");
    }
}

async fn counted(request: Request<Incoming>, state: &Arc<AdminState>) -> Reply {
    let started = Instant::now();
    let path = request.uri().path();
    let response = match state.gate.check(&request) {
        Err(problem) => refuse(problem),
        Ok(()) if path == "/api" || path.starts_with("/api/") => api::answer(request, state).await,
        Ok(()) => console::answer(request.method(), path, request.headers())
            .unwrap_or_else(|| plain::answer(request.method(), path, request.headers(), state)),
    };
    state.metrics.http.request(Kind::Admin, response.status(), started.elapsed());
    response
}

fn reply(media_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut response = Response::new(Full::new(body.into()).boxed_unsync());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn refuse(problem: Problem) -> Reply {
    let id = RequestId::next();
    let status = problem.status;
    let mut response = reply(problem::CONTENT_TYPE, problem.request_id(id).to_json());
    *response.status_mut() = status;
    response.headers_mut().insert(RequestId::HEADER, id.header_value());
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(http::header::WWW_AUTHENTICATE, gate::CHALLENGE);
    }
    response
}

#[cfg(test)]
mod tests;
