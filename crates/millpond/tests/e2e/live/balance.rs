//! A place with several servers of the same streams.

use crate::{
    live::sources::{PICTURES, Source, X264, has_gstreamer},
    support::{self, Server, free_port},
};
use serde_json::Value;
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

/// The fields of a stream in `GET /api/v1/streams`.
fn told(edge: &Server, path: &str) -> Value {
    let all: Value = support::api::items(edge.admin, "streams");
    all.as_array().unwrap().iter().find(|stream| stream["path"] == path).cloned().unwrap_or_default()
}

/// Begins a long response. Returns its connection once the head and some media have arrived.
fn watch(edge: &Server, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", edge.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
    write!(stream, "GET /{path}/stream.ts HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    let mut first = [0; 2000];
    stream.read_exact(&mut first).unwrap();
    assert!(first.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&first));
    stream
}

/// Reads until a condition holds.
#[track_caller]
fn read_until(stream: &mut TcpStream, mut holds: impl FnMut() -> bool) {
    let (began, mut bytes) = (Instant::now(), [0; 20_000]);
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "it never holds");
        assert!(stream.read(&mut bytes).unwrap() > 0, "the response ended");
    }
}

#[test]
fn a_stream_moves_to_another_server() {
    if !has_gstreamer() {
        return;
    }
    let pictures =
        format!("{PICTURES} ! x264enc tune=zerolatency {X264} ! rtph264pay name=pay0 pt=96 config-interval=-1");
    let streams = ["door", "gate"].map(|name| (name, pictures.clone()));
    let (first, second) = (Source::start(free_port(), &streams), Source::start(free_port(), &streams));
    let servers = [first.port, second.port].map(|port| format!("rtsp://127.0.0.1:{port}/"));
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    std::fs::write(&config, format!("[places.cams]\nurl = {servers:?}\nlinger = \"0s\"\n")).unwrap();
    let edge = Server::start(&["--config", config.to_str().unwrap()]);

    // Both servers get a stream.
    let mut door = watch(&edge, "cams/door");
    let _gate = watch(&edge, "cams/gate");
    let server = |path: &str| told(&edge, path)["server"].as_str().unwrap_or_default().to_owned();
    assert_eq!(
        (server("cams/door"), server("cams/gate")),
        (format!("{}door", servers[0]), format!("{}gate", servers[1]))
    );
    // One is killed. Its stream goes on from the other one, in the same response.
    drop(first);
    read_until(&mut door, || server("cams/door") == format!("{}door", servers[1]));
    let moved = Instant::now();
    read_until(&mut door, || {
        let told = told(&edge, "cams/door");
        told["state"] == "running" && told["epoch"]["reason"] == "reconnection"
    });
    let frames = |path: &str| told(&edge, path)["frames"].as_u64().unwrap();
    let before = frames("cams/door");
    read_until(&mut door, || frames("cams/door") > before + 50);
    assert!(moved.elapsed() < Duration::from_secs(60));
    assert_eq!(told(&edge, "cams/gate")["epoch"]["reason"], "start", "the other stream stays");
}
