use http::{HeaderMap, Method, header::ALLOW};
use http_body_util::BodyExt;
use millpond_store::{Store, StoreOptions};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{plain::answer, *};
use crate::engine;
use crate::events::Events;
use crate::http::{FrontOptions, Served};
use crate::library::{Library, LibraryOptions, Places};
use crate::limits::LimitSettings;
use crate::live::{SourceConnector, SourceWeb, Sources, UnpublishablePath};
use crate::modules::KindSet;
use crate::work::{PoolOptions, WorkPool};
use crate::{
    rtmp::Rtmp,
    rtsp::{RtspOptions, RtspSettings},
};
use millpond_access::{Gates, PublishSettings};
use millpond_settings::{Host, Settings, machine::Machine};
use millpond_stream::reception::Upstream;

/// The parts of a server that serves nothing.
pub(super) fn parts() -> AdminParts {
    let store = Store::new(&StoreOptions::default()).unwrap();
    let readiness = Arc::new(Readiness::new(["films".to_owned()]));
    let options = LibraryOptions {
        segment_duration: Duration::from_secs(4),
        index_folder: None,
        cache_size: 0,
        lists_thumbnails: false,
        places: std::collections::HashMap::new(),
    };
    let pool = Arc::new(WorkPool::new(PoolOptions { threads: 2 }, store.memory()).unwrap());
    let library = Arc::new(Library::new(store.clone(), pool.clone(), options));
    let places = Places::new(["films".into()]);
    let metrics = Arc::new(Metrics::new(&store, &library, &places));
    let options = FrontOptions {
        access_log: false,
        folder: std::env::temp_dir(),
        served: Served { http: None, https: None, rtsp: "127.0.0.1:8554".parse().unwrap(), rtsps: None },
        lifetimes: vec![Default::default()],
        filters: vec![(millpond_package::FilterSource::Server, Default::default())],
        publishers: None,
        gates: Arc::new(Gates::none()),
        cluster: None,
        has_thumbnails: false,
        search_folders: 10,
        key_origins: Vec::new(),
        audience: Arc::default(),
        webrtc: None,
        schedules: Arc::new(Schedules::new(Events::new("edge", 10, &metrics.events))),
    };
    let host = Host { machine: Machine::detect(), variable: &|_| None };
    let clock = millpond_utc::WallClock::system();
    let settings = (&RtspSettings::defaults(&host), &LimitSettings::defaults(&host), &clock);
    let (connector, web) = (Arc::new(SourceConnector::default()), Arc::new(SourceWeb::default()));
    let upstream = Upstream { connector, web, relay: None };
    let events = Events::new("edge", 10, &metrics.events);
    let manager =
        engine::start(store.clone(), pool, &places, settings, upstream, events.clone(), &metrics.rtsp).unwrap();
    let sources =
        Arc::new(Sources::new((library.clone(), places.clone()), Default::default(), Vec::new(), &[], manager.clone()));
    let front = Arc::new(Front::new(store, library, places, sources.clone(), metrics.http.clone(), options, None));
    let hosts = AllowedHosts::new("127.0.0.1:0".parse().unwrap(), &[]);
    let wait = Duration::from_millis(300);
    let limits = LimitSettings {
        timeouts: ConnectionTimeouts { idle: wait, head: wait, write: wait },
        ..LimitSettings::defaults(&host)
    };
    let options = RtspOptions {
        settings: RtspSettings::defaults(&host),
        publish: PublishSettings::defaults(&host),
        gates: Arc::new(Gates::none()),
        limits,
        access_log: false,
        http_port: None,
    };
    AdminParts {
        rtsp: Rtsp::new((sources.clone(), None), options, &metrics.rtsp, None).unwrap(),
        rtmp: Rtmp::new(
            (sources.clone(), None, Arc::new(Gates::none())),
            &LimitSettings::defaults(&host),
            false,
            &metrics.rtmp,
            None,
        ),
        srt: None,
        schedules: Arc::new(Schedules::new(events.clone())),
        statistics: Arc::new(Statistics::new(None, &metrics.statistics)),
        metrics,
        readiness,
        front,
        modules: Modules::new(KindSet::new(manager.attachable_kinds()), sources.clone(), events.clone()),
        manager,
        events,
        sources,
        cluster: None,
        recordings: None,
        shelf: None,
        serving: Handle::current(),
        gate: AdminGate { hosts: Some(hosts), token: None },
        limits: limits.timeouts,
        reloader: None,
        upgrader: None,
    }
}

/// The desk of such a server.
pub(super) fn desk() -> Arc<Desk> {
    Desk::new(made(parts()), watch::channel(false).1)
}

fn made(parts: AdminParts) -> MakeParts {
    Arc::new(move || parts.clone())
}

fn state() -> Arc<AdminState> {
    desk().state()
}

async fn text(response: Reply) -> String {
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
async fn modules_publish_in_places_of_publishers_only() {
    let sources = parts().sources;
    let refused = |path: &str| sources.module_output(path).err();
    assert_eq!(refused("films/copy"), Some(UnpublishablePath::Place("films".into())));
    assert_eq!(refused("nowhere/copy"), Some(UnpublishablePath::NoPlace));
    assert!(sources.places_of_publishers().is_empty());
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
    let (socket, parts) = serving.block_on(async { (std::net::TcpListener::bind("127.0.0.1:0").unwrap(), parts()) });
    let address = socket.local_addr().unwrap();
    socket.set_nonblocking(true).unwrap();
    let (stop, stopped) = watch::channel(false);
    let entered = serving.enter();
    let ended = start(AdminSocket::Tcp(socket), made(parts), stopped).unwrap();
    drop(entered);
    let (release, stuck) = std::sync::mpsc::channel::<()>();
    serving.spawn(async move { stuck.recv() });
    for path in ["/livez", "/readyz", "/metrics", "/api/v1/overview", "/api/v1/logs"] {
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
    let server = tokio::spawn(serve(AdminDoor::Tcp(listener), desk(), stopped));
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

/// Bytes that a client sends, and its behaviour after that.
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
    tokio::spawn(serve(AdminDoor::Tcp(listener), desk(), stopped));
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
    tokio::spawn(serve(AdminDoor::Tcp(listener), desk(), stopped));
    let mut client = TcpStream::connect(address).await.unwrap();
    let head = format!("GET /livez HTTP/1.1\r\nhost: localhost\r\nx: {}", "y".repeat(MAX_HEAD));
    client.write_all(head.as_bytes()).await.unwrap();
    let mut reply = Vec::new();
    let _ = client.read_to_end(&mut reply).await;
    assert!(reply.starts_with(b"HTTP/1.1 431 "), "{}", String::from_utf8_lossy(&reply));
}
