//! Metrics and health, on an address of their own.
//!
//! `/livez` says that the process runs, `/readyz` that it can serve, `/metrics` what it did, `/cache` what is cached, and
//! `/explain` what a request needs. `/record` starts and stops recordings. The listener is plain HTTP/1.1 and meant for the
//! machine, its operator and its orchestrator, not for viewers.

mod cache;
mod hosts;
mod record;
mod settings;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, VARY};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use millpond_stream::{graph::Registry, modules::KINDS};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_io_timeout::TimeoutStream;

use crate::http::{Front, Kind};
use crate::limits::ConnectionTimeouts;
use crate::logging::RequestId;
use crate::metrics::{Metrics, TextFormat};
use crate::problem::{self, Problem};
use crate::recordings::Recordings;

pub(crate) use hosts::AllowedHosts;
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

/// Whether this server can serve: listeners are up, every place has answered once, and no shutdown has begun.
///
/// A place that has answered counts for good: an origin that goes away later makes errors for its own assets, and
/// taking the whole server out of rotation for it would make them for all.
#[derive(Debug)]
pub(crate) struct Readiness {
    listening: AtomicBool,
    draining: AtomicBool,
    places: Vec<(String, AtomicBool)>,
}

impl Readiness {
    /// Not ready yet; waits for these places.
    pub(crate) fn new(places: impl IntoIterator<Item = String>) -> Self {
        Self {
            listening: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            places: places.into_iter().map(|name| (name, AtomicBool::new(false))).collect(),
        }
    }

    /// All listeners accept connections.
    pub(crate) fn listening(&self) {
        self.listening.store(true, Ordering::Relaxed);
    }

    /// Shutdown has begun: new clients should go elsewhere.
    pub(crate) fn draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// A place has answered, be it that something is not there.
    pub(crate) fn place_answered(&self, name: &str) {
        if let Some((_, answered)) = self.places.iter().find(|(known, _)| known == name) {
            answered.store(true, Ordering::Relaxed);
        }
    }

    /// What is still waited for, in words; empty where the server is ready.
    pub(crate) fn waiting_for(&self) -> Vec<String> {
        if self.draining.load(Ordering::Relaxed) {
            return vec!["shutting down".to_owned()];
        }
        let listeners = (!self.listening.load(Ordering::Relaxed)).then(|| "listeners are not up".to_owned());
        let places = self.places.iter().filter(|(_, answered)| !answered.load(Ordering::Relaxed));
        let places = places.map(|(name, _)| match name.as_str() {
            "" => "the place has not answered yet".to_owned(),
            name => format!("place {name:?} has not answered yet"),
        });
        listeners.into_iter().chain(places).collect()
    }
}

/// What the admin address tells about.
#[derive(Clone)]
pub(crate) struct AdminState {
    /// The counters.
    pub(crate) metrics: Arc<Metrics>,
    /// Whether the server can serve.
    pub(crate) readiness: Arc<Readiness>,
    /// What answers viewers.
    pub(crate) front: Arc<Front>,
    /// Modules and pipes of the streams.
    pub(crate) graph: Registry,
    /// Recordings of channels; `None` where recording is off.
    pub(crate) recordings: Option<Arc<Recordings>>,
    /// The threads that serve viewers. Media is read there, and not on the admin thread.
    pub(crate) serving: Handle,
    /// What the address may be called.
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

/// The answer to a request about the cache or recordings, made by the threads that serve; `None` where it is about something
/// else.
async fn steered<B>(request: &Request<B>, state: &AdminState) -> Option<Reply> {
    let path = request.uri().path();
    if !matches!(path, "/explain" | "/cache" | "/record") && !path.starts_with("/cache/") {
        return None;
    }
    let (method, path) = (request.method().clone(), path.to_owned());
    let query = request.uri().query().unwrap_or("").to_owned();
    let owned = state.clone();
    let mut task = Task(state.serving.spawn(async move {
        match &*path {
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
<li><a href=\"/record\">/record</a> recordings of channels
<li><a href=\"/graph\">/graph</a> modules and pipes of the RTSP streams, and in the <a href=\"/graph.dot\">language of Graphviz</a>
</ul>
";

fn answer(method: &Method, path: &str, headers: &HeaderMap, state: &AdminState) -> Response<Full<Bytes>> {
    if !matches!(path, "/" | "/metrics" | "/livez" | "/readyz" | "/graph" | "/graph.dot") {
        return refuse(Problem::new(StatusCode::NOT_FOUND).detail(
            "there are /metrics, /livez, /readyz, /cache, /cache/objects, /explain, /record, /graph and /graph.dot",
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
        "/graph" => {
            let mut graph = serde_json::json!(state.graph.snapshot());
            graph["kinds"] = serde_json::json!(KINDS);
            reply("application/json", format!("{graph:#}\n"))
        }
        "/graph.dot" => reply("text/vnd.graphviz; charset=utf-8", state.graph.snapshot().to_dot()),
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
mod tests {
    use http_body_util::BodyExt;
    use millpond_store::{Store, StoreOptions};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::http::FrontOptions;
    use crate::library::{Library, LibraryOptions};
    use crate::work::{PoolOptions, WorkPool};

    fn state() -> AdminState {
        let store = Store::new(&StoreOptions::default()).unwrap();
        let readiness = Arc::new(Readiness::new(["films".to_owned()]));
        let options = LibraryOptions {
            segment_duration: Duration::from_secs(4),
            index_folder: None,
            cache_size: 0,
            places: std::collections::HashMap::new(),
        };
        let pool = Arc::new(WorkPool::new(PoolOptions { threads: 2 }, store.memory()).unwrap());
        let library = Arc::new(Library::new(store.clone(), pool, options));
        let metrics = Arc::new(Metrics::new(&store, &library));
        let options = FrontOptions {
            cors_origin: None,
            access_log: false,
            folder: std::env::temp_dir(),
            rtsp_ports: (8554, None),
            lifetimes: vec![Default::default()],
        };
        let front = Arc::new(Front::new(
            store,
            library,
            crate::library::Places::new(["films".into()]),
            metrics.http.clone(),
            options,
        ));
        let hosts = AllowedHosts::new("127.0.0.1:0".parse().unwrap(), &[]);
        let wait = Duration::from_millis(300);
        let limits = ConnectionTimeouts { idle: wait, head: wait, write: wait };
        let serving = Handle::current();
        AdminState { metrics, readiness, front, graph: Registry::default(), recordings: None, serving, hosts, limits }
    }

    async fn text(response: Response<Full<Bytes>>) -> String {
        let body = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn ready_when_listening_and_every_place_answered() {
        let state = state();
        let get = |path: &str| answer(&Method::GET, path, &HeaderMap::new(), &state);
        let response = get("/readyz");
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[CONTENT_TYPE], problem::CONTENT_TYPE);
        let body: serde_json::Value = serde_json::from_str(&text(response).await).unwrap();
        assert_eq!(body["detail"], "listeners are not up; place \"films\" has not answered yet");

        state.readiness.listening();
        state.readiness.place_answered("unknown");
        assert_eq!(state.readiness.waiting_for(), ["place \"films\" has not answered yet"]);
        state.readiness.place_answered("films");
        assert_eq!(get("/readyz").status(), StatusCode::OK);
        state.readiness.draining();
        assert_eq!(get("/readyz").status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(get("/livez").status(), StatusCode::OK, "draining is still alive");
    }

    #[tokio::test]
    async fn what_is_not_there_is_a_problem() {
        let state = state();
        assert_eq!(answer(&Method::GET, "/films", &HeaderMap::new(), &state).status(), StatusCode::NOT_FOUND);
        let refused = answer(&Method::POST, "/metrics", &HeaderMap::new(), &state);
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(refused.headers()[ALLOW], "GET, HEAD");
        assert!(refused.headers().contains_key(RequestId::HEADER));
    }

    #[test]
    fn health_is_answered_while_the_serving_threads_are_stuck() {
        let serving = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (listener, state) = serving.block_on(async { (TcpListener::bind("127.0.0.1:0").await.unwrap(), state()) });
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let entered = serving.enter();
        let ended = start(listener, state, stopped).unwrap();
        drop(entered);
        let (release, stuck) = std::sync::mpsc::channel::<()>();
        serving.spawn(async move { stuck.recv() });
        for path in ["/livez", "/readyz", "/metrics"] {
            use std::io::{Read, Write};
            let mut client = std::net::TcpStream::connect(address).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            write!(client, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
            let mut reply = String::new();
            client.read_to_string(&mut reply).unwrap();
            assert!(reply.starts_with("HTTP/1.1 "), "{path}: {reply}");
        }
        drop(release);
        stop.send(true).unwrap();
        ended.blocking_recv().unwrap();
    }

    #[tokio::test]
    async fn serves_over_a_socket_until_shutdown() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let server = tokio::spawn(serve(listener, state(), stopped));
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut reply = String::new();
        client.read_to_string(&mut reply).await.unwrap();
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\n") && reply.ends_with("alive\n"), "{reply}");

        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut reply = String::new();
        client.read_to_string(&mut reply).await.unwrap();
        let counted = "millpond_http_requests_total{kind=\"admin\",status=\"2xx\"} 1";
        assert!(reply.lines().any(|line| line == counted), "{reply}");

        stop.send(true).unwrap();
        tokio::time::timeout(Duration::from_secs(5), server).await.unwrap().unwrap();
    }

    /// What a client sends, and how it then behaves.
    enum Client {
        Idle,
        HalfHead,
        IdleAfterReply,
        Unread,
    }

    /// Connects, behaves, and tells whether the server ended the connection.
    async fn is_ended(address: std::net::SocketAddr, client: &Client) -> bool {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let get = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n";
        match client {
            Client::Idle => {}
            Client::HalfHead => stream.write_all(&get[..20]).await.unwrap(),
            Client::IdleAfterReply => stream.write_all(get).await.unwrap(),
            Client::Unread => {
                // More than the buffers of both sockets hold, in either direction.
                let requests = get.repeat(20_000);
                let send = async { while stream.write_all(&requests).await.is_ok() {} };
                return tokio::time::timeout(Duration::from_secs(60), send).await.is_ok();
            }
        }
        let mut reply = Vec::new();
        tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut reply)).await.is_ok()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_silent_client_holds_a_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_stop, stopped) = watch::channel(false);
        tokio::spawn(serve(listener, state(), stopped));
        for (name, client) in [
            ("idle", Client::Idle),
            ("half a head", Client::HalfHead),
            ("idle after a reply", Client::IdleAfterReply),
            ("unread replies", Client::Unread),
        ] {
            assert!(is_ended(address, &client).await, "{name}");
        }
    }

    #[tokio::test]
    async fn a_head_over_the_bound_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_stop, stopped) = watch::channel(false);
        tokio::spawn(serve(listener, state(), stopped));
        let mut client = TcpStream::connect(address).await.unwrap();
        let head = format!("GET /livez HTTP/1.1\r\nhost: localhost\r\nx: {}", "y".repeat(MAX_HEAD));
        client.write_all(head.as_bytes()).await.unwrap();
        let mut reply = Vec::new();
        let _ = client.read_to_end(&mut reply).await;
        assert!(reply.starts_with(b"HTTP/1.1 431 "), "{}", String::from_utf8_lossy(&reply));
    }
}
