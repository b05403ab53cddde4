//! Metrics and health, on an address of their own.
//!
//! `/livez` says that the process runs, `/readyz` that it can serve, `/metrics` what it did, `/cache` what is cached, and
//! `/explain` what a request needs. `/streams` lists live streams. `/record` starts and stops recordings,
//! `/insert` puts clips into live streams, and `/cluster` shows the cluster's nodes. The listener is plain HTTP/1.1 and meant for the machine, its operator and its
//! orchestrator, not for viewers.

mod cache;
mod cluster;
mod hosts;
mod insert;
mod readiness;
mod record;
mod settings;
mod streams;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, VARY};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use millpond_stream::{Manager, modules::KINDS};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_io_timeout::TimeoutStream;

use crate::cluster::Cluster;
use crate::http::{Front, Kind};
use crate::limits::ConnectionTimeouts;
use crate::live::Sources;
use crate::logging::RequestId;
use crate::metrics::{Metrics, TextFormat};
use crate::problem::{self, Problem};
use crate::recordings::Recordings;

pub(crate) use hosts::AllowedHosts;
pub(crate) use readiness::Readiness;
pub use settings::AdminSettings;

/// Connections to the admin address at a time: scrapers and probes are few.
const CONNECTIONS: usize = 64;

type Reply = Response<Full<Bytes>>;

const JSON: &str = "application/json";

/// Largest request head, as on the other listeners.
const MAX_HEAD: usize = 16 << 10;

/// Replies under way at the end of the server have this long.
const LAST_REPLIES: Duration = Duration::from_secs(1);

/// A pause after a failed accept: the usual cause is that no file can be opened for the moment.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The parts of a server that the admin address shows and changes.
#[derive(Clone)]
pub(crate) struct AdminState {
    /// The counters.
    pub(crate) metrics: Arc<Metrics>,
    /// Whether the server can serve.
    pub(crate) readiness: Arc<Readiness>,
    /// The HTTP front end, which answers viewers.
    pub(crate) front: Arc<Front>,
    /// The stream engine.
    pub(crate) manager: Arc<Manager>,
    /// Paths as the engine plays them.
    pub(crate) sources: Arc<Sources>,
    /// The cluster, where this server is a node of one.
    pub(crate) cluster: Option<Arc<Cluster>>,
    /// Recordings of channels; `None` where recording is off.
    pub(crate) recordings: Option<Arc<Recordings>>,
    /// The threads that serve viewers. Media is read there, and not on the admin thread.
    pub(crate) serving: Handle,
    /// Host names that requests may have.
    pub(crate) hosts: AllowedHosts,
    /// How long a connection may do nothing.
    pub(crate) limits: ConnectionTimeouts,
}

/// Starts a thread that serves the admin address until `shutdown` becomes true or its sender is gone. The receiver
/// that it gives learns of the end.
///
/// It has a runtime of its own, so that health and metrics are answered however busy the serving threads are.
///
/// # Errors
/// The system's, where it gives no thread.
pub(crate) fn start(
    listener: TcpListener,
    state: AdminState,
    shutdown: watch::Receiver<bool>,
) -> io::Result<oneshot::Receiver<()>> {
    let listener = listener.into_std()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _entered = runtime.enter();
        TcpListener::from_std(listener)?
    };
    let (end, ended) = oneshot::channel();
    std::thread::Builder::new().name("admin".to_owned()).spawn(move || {
        runtime.block_on(serve(listener, state, shutdown));
        let _ = end.send(());
    })?;
    Ok(ended)
}

/// Serves the admin address until `shutdown` becomes true or its sender is gone.
///
/// Connections under way then have a second to end by themselves; each lasts at most for one more request.
async fn serve(listener: TcpListener, state: AdminState, mut shutdown: watch::Receiver<bool>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            () = down(&mut shutdown) => {
                let _ = tokio::time::timeout(LAST_REPLIES, slots.acquire_many(CONNECTIONS as u32)).await;
                return;
            }
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection to the admin address");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Over the bound the connection is closed at once: a scraper tries again by itself.
        if let Ok(slot) = Arc::clone(&slots).try_acquire_owned() {
            let (state, shutdown) = (state.clone(), shutdown.clone());
            tokio::spawn(async move {
                connection(stream, state, shutdown).await;
                drop(slot);
            });
        }
    }
}

/// Waits for shutdown, or for its sender to be gone.
async fn down(shutdown: &mut watch::Receiver<bool>) {
    let _ = shutdown.wait_for(|down| *down).await;
}

async fn connection(stream: TcpStream, state: AdminState, mut shutdown: watch::Receiver<bool>) {
    let limits = state.limits;
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let state = state.clone();
        async move { Ok::<_, Infallible>(counted(&request, &state).await) }
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

async fn counted<B>(request: &Request<B>, state: &AdminState) -> Response<Full<Bytes>> {
    let started = Instant::now();
    let (method, uri) = (request.method(), request.uri());
    let response = match state.hosts.check(request) {
        Err(problem) => refuse(problem),
        Ok(()) => match steered(request, state).await {
            Some(response) => response,
            None => answer(method, uri.path(), request.headers(), state),
        },
    };
    state.metrics.http.request(Kind::Admin, response.status(), started.elapsed());
    response
}

/// The answer to a request about the cache, recordings or insertions, made by the threads that serve; `None` where it is about something
/// else.
async fn steered<B>(request: &Request<B>, state: &AdminState) -> Option<Reply> {
    let path = request.uri().path();
    if !matches!(path, "/explain" | "/cache" | "/record" | "/insert" | "/cluster")
        && !path.starts_with("/cache/")
        && !path.starts_with("/cluster/")
    {
        return None;
    }
    let (method, path) = (request.method().clone(), path.to_owned());
    let query = request.uri().query().unwrap_or("").to_owned();
    let owned = state.clone();
    let mut task = Task(state.serving.spawn(async move {
        match &*path {
            "/insert" => Some(insert::answer(&method, &query, &owned).await),
            path if path.starts_with("/cluster") => cluster::answer(&method, path, &query, &owned).await,
            "/record" => Some(record::answer(&method, &query, &owned).await),
            path => cache::answer(&method, path, &query, &owned).await,
        }
    }));
    let stopped = || refuse(Problem::new(StatusCode::SERVICE_UNAVAILABLE).detail("the server is shutting down"));
    (&mut task.0).await.unwrap_or_else(|_| Some(stopped()))
}

/// A task that ends with the request it is for.
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

const INDEX: &str = "\
<!doctype html>
<title>Millpond</title>
<h1>Millpond</h1>
<ul>
<li><a href=\"/metrics\">/metrics</a> what it did, in the text format of Prometheus or OpenMetrics
<li><a href=\"/livez\">/livez</a> whether it runs
<li><a href=\"/readyz\">/readyz</a> whether it can serve
<li><a href=\"/cache\">/cache</a> what the cache holds and did
<li><a href=\"/cache/objects\">/cache/objects</a> what is cached of which object
<li><a href=\"/streams\">/streams</a> live streams: their sources, states and viewers
<li><a href=\"/record\">/record</a> recordings of channels
<li><a href=\"/insert\">/insert</a> clips in live streams
<li><a href=\"/cluster\">/cluster</a> nodes of the cluster
<li><a href=\"/graph\">/graph</a> modules and pipes of the RTSP streams, and in the <a href=\"/graph.dot\">language of Graphviz</a>
</ul>
";

fn answer(method: &Method, path: &str, headers: &HeaderMap, state: &AdminState) -> Response<Full<Bytes>> {
    if !matches!(path, "/" | "/metrics" | "/livez" | "/readyz" | "/streams" | "/graph" | "/graph.dot") {
        return refuse(Problem::new(StatusCode::NOT_FOUND).detail(
            "there are /metrics, /livez, /readyz, /cache, /cache/objects, /explain, /streams, /record, /insert, /cluster, /graph and /graph.dot",
        ));
    }
    // hyper leaves the body out of replies to HEAD.
    if !matches!(*method, Method::GET | Method::HEAD) {
        let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED).detail("only GET and HEAD are answered here");
        let mut response = refuse(problem);
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match path {
        "/metrics" => {
            let format = TextFormat::accepted(headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()));
            let mut response = reply(format.content_type(), state.metrics.render(format));
            response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
            response
        }
        "/streams" => show(&streams::list(&state.manager.streams())),
        "/graph" => {
            let mut graph = serde_json::json!(state.manager.registry().snapshot());
            graph["kinds"] = serde_json::json!(KINDS);
            reply("application/json", format!("{graph:#}\n"))
        }
        "/graph.dot" => reply("text/vnd.graphviz; charset=utf-8", state.manager.registry().snapshot().to_dot()),
        "/livez" => reply("text/plain; charset=utf-8", "alive\n"),
        "/readyz" => match state.readiness.waiting_for().as_slice() {
            [] => reply("text/plain; charset=utf-8", "ready\n"),
            missing => refuse(Problem::new(StatusCode::SERVICE_UNAVAILABLE).detail(missing.join("; "))),
        },
        _ => reply("text/html; charset=utf-8", INDEX),
    }
}

fn reply(media_type: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn show(value: &serde_json::Value) -> Reply {
    reply(JSON, format!("{value:#}\n"))
}

fn bad(why: &str) -> Reply {
    refuse(Problem::new(StatusCode::BAD_REQUEST).detail(why))
}

/// A parameter of a query, decoded.
fn parameter(query: &str, name: &str) -> Option<String> {
    url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

fn refuse(problem: Problem) -> Response<Full<Bytes>> {
    let id = RequestId::next();
    let mut response = reply(problem::CONTENT_TYPE, problem.clone().request_id(id).to_json());
    *response.status_mut() = problem.status;
    response.headers_mut().insert(RequestId::HEADER, id.header_value());
    response
}

#[cfg(test)]
mod tests;
