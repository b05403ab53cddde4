//! The path of a request is decoded once, and its route is parsed once, whichever way the request takes.

use super::answer::parses::{self, Parses};
use crate::{
    config::{Inputs, load},
    serve::{Orders, Server},
    upgrade::Predecessor,
};
use millpond_access::{Claims, Parties, keys::Secret, sign};
use millpond_connections::Inherited;
use std::{net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::watch,
};

/// A user and a password for all of the server.
const USERS: &str = "ann:secret\n";
/// `Authorization` of that user.
const AUTHORIZATION: &str = "Authorization: Basic YW5uOnNlY3JldA==\r\n";

/// A server of the built-in sample. It runs on the thread of the test, whose parses are counted.
struct TestServer {
    address: SocketAddr,
    _folder: tempfile::TempDir,
    _orders: (watch::Sender<bool>, watch::Sender<u64>, watch::Sender<u64>),
}

impl TestServer {
    async fn start(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("users"), USERS).unwrap();
        let path = folder.path().display();
        let text = format!(
            "cache = \"{path}\"\nhttp = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nrtsp = \"127.0.0.1:0\"\n{}",
            settings.replace("FOLDER", &path.to_string())
        );
        let file = Some(folder.path().join("millpond.toml"));
        let loaded = load(&Inputs { file, text: Some(text), ..Inputs::default() }).unwrap();
        let grace = watch::Sender::new(loaded.config.limits.shutdown_grace);
        let inherited = (Predecessor::default(), Inherited::default());
        let server = Server::bind(loaded, Inputs::default(), Vec::new(), inherited).await.unwrap();
        let address = server.http_addr().unwrap();
        let ((stops, stop), (reloads, reload), (upgrades, upgrade)) =
            (watch::channel(false), watch::channel(0), watch::channel(0));
        tokio::spawn(server.run(Orders { stop, reload, upgrade, grace, program: None }));
        Self { address, _folder: folder, _orders: (stops, reloads, upgrades) }
    }

    /// Sends a request with further fields. Returns the reply and the parses that it took.
    async fn get(&self, path: &str, fields: &str) -> (String, Parses) {
        parses::take();
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{fields}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = Vec::new();
        tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut reply)).await.unwrap().unwrap();
        (String::from_utf8_lossy(&reply).into_owned(), parses::take())
    }

    /// Returns the path of the first segment of the sample's pictures, which is cached then.
    async fn cached_segment(&self, fields: &str) -> String {
        let (playlist, _) = self.get("/sample/index.m3u8", fields).await;
        let line = |text: &str, end: &str| {
            let found = text.lines().find(|line| line.ends_with(end));
            found.unwrap_or_else(|| panic!("{end} in {text}")).to_owned()
        };
        let track = format!("/sample/{}", line(&playlist, "v1/index.m3u8"));
        let (playlist, _) = self.get(&track, fields).await;
        let folder = track.rsplit_once('/').unwrap().0;
        let segment = format!("{folder}/{}", line(&playlist, ".m4s"));
        for _ in 0..2 {
            let (reply, _) = self.get(&segment, fields).await;
            assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
        }
        segment
    }
}

/// Asks for a copy of a window, and returns the connection with the first line of the reply.
async fn copy_of(server: &TestServer, prefix: &str, query: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!("GET {prefix}/cams/door/window.copy?{query} HTTP/1.1\r\nHost: h\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.push(tokio::time::timeout(Duration::from_secs(30), stream.read_u8()).await.unwrap().unwrap());
    }
    (stream, String::from_utf8(line).unwrap())
}

const NODE: &str = "cluster = [\"http://127.0.0.1:9\"]\nnode = \"a\"\ncluster-steering = \"none\"\n";
const CAMERAS: &str = "[places.cams]\nurl = \"rtsp://127.0.0.1:9/\"\n";

#[tokio::test]
async fn copies_of_windows_are_for_nodes() {
    const SECRET: &[u8] = b"a secret of thirty-two bytes....";
    let alone = TestServer::start(CAMERAS).await;
    assert!(copy_of(&alone, "", "_millpond_relay=1").await.1.contains(" 404 "), "it is no node");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    std::fs::write(&file, SECRET).unwrap();
    let secret = format!("cluster-secret = \"{}\"\n", file.display());
    let server = TestServer::start(&format!("{NODE}{secret}access-users = \"FOLDER/users\"\n{CAMERAS}")).await;
    for query in ["_millpond_relay=1", "_millpond_relay=1&_millpond_watch=1&_millpond_node=b"] {
        let (_, line) = copy_of(&server, "", query).await;
        assert!(line.contains(" 401 "), "{query}: {line}");
    }
    let exp = u64::MAX >> 1;
    let claims = |sub: &str| Claims { exp, paths: None, net: None, jti: None, sub: Some(sub.to_owned()), filter: None };
    let pass = |sub: &str| sign(&claims(sub), &Parties::default(), &Secret::parse(SECRET).unwrap()).unwrap();
    let (_, line) = copy_of(&server, &format!("/~{}", pass("millpond-home")), "_millpond_relay=1").await;
    assert!(line.contains(" 200 "), "a node has applied the rules to its viewers: {line}");
    let open = TestServer::start(&format!("{NODE}{secret}{CAMERAS}")).await;
    for prefix in [String::new(), format!("/~{}", pass("ann"))] {
        let (_, line) = copy_of(&open, &prefix, "_millpond_relay=1").await;
        assert!(line.contains(" 404 "), "{line}");
    }
}

#[tokio::test]
async fn strangers_get_few_copies_of_windows() {
    let server = TestServer::start(&format!("{NODE}{CAMERAS}")).await;
    let all = (0..70).map(|_| copy_of(&server, "", "_millpond_relay=1"));
    let replies = futures_util::future::join_all(all).await;
    let given = replies.iter().filter(|(_, line)| line.contains(" 200 ")).count();
    assert_eq!((given, replies.iter().filter(|(_, line)| line.contains(" 503 ")).count()), (64, 6));
    assert!(copy_of(&server, "", "").await.1.contains(" 404 "));
}

/// The parses of a request for stored media.
const ASSET: Parses = Parses { paths: 1, routes: 1, live_routes: 0 };

#[tokio::test]
async fn a_cached_segment_is_parsed_once() {
    let server = TestServer::start("").await;
    let segment = server.cached_segment("").await;
    let (reply, parses) = server.get(&segment, "").await;
    assert!(reply.starts_with("HTTP/1.1 200") && reply.contains("video/mp4"), "{reply}");
    assert_eq!(parses, ASSET, "{segment}");
}

#[tokio::test]
async fn a_cached_segment_behind_access_rules_is_parsed_once() {
    let server = TestServer::start("access-users = \"FOLDER/users\"\n").await;
    let segment = server.cached_segment(AUTHORIZATION).await;
    let (reply, parses) = server.get(&segment, AUTHORIZATION).await;
    assert!(reply.starts_with("HTTP/1.1 200") && reply.contains("private"), "{reply}");
    assert_eq!(parses, ASSET, "{segment}");
    let (reply, parses) = server.get(&segment, "").await;
    assert!(reply.starts_with("HTTP/1.1 401"), "{reply}");
    assert_eq!(parses, ASSET, "{segment}");
}

#[tokio::test]
async fn a_cached_segment_of_a_node_that_passes_requests_on_is_parsed_once() {
    let server =
        TestServer::start("cluster = [\"http://127.0.0.1:9\"]\nnode = \"a\"\ncluster-steering = \"proxy\"\n").await;
    let segment = server.cached_segment("").await;
    let (reply, parses) = server.get(&segment, "").await;
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    assert_eq!(parses, ASSET, "{segment}");
}
