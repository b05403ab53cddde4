//! Reports of live streams to operators and to the page.

use crate::support::{Server, clips, get};
use serde_json::{Value, json};
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

const CLIP: &str = "h264_aac.mp4";

fn told(port: u16, path: &str) -> Value {
    let reply = get(port, path, &[]);
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    let text = reply.text();
    assert!(!text.contains("secret") && !text.contains("token"), "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Waits until the only stream is in a state; returns its report.
fn until(edge: &Server, state: &str) -> Value {
    let began = Instant::now();
    loop {
        let streams = told(edge.admin, "/api/v1/streams")["items"].take();
        let all = streams.as_array().unwrap();
        // A reception tells its counts about once a second.
        if let [stream] = &all[..]
            && stream["state"] == state
            && (state != "running" || stream["packets"] != 0)
        {
            return stream.clone();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "not {state}: {streams}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn streams_are_listed_with_their_states() {
    let upstream = Server::start(&[clips::folder().to_str().unwrap(), "--rtsp-channels", CLIP]);
    let place = format!("cams=rtsp://ann:secret@127.0.0.1:{}/?token=1", upstream.rtsp);
    let edge = Server::start(&[&place, "--source-transport", "tcp"]);
    assert_eq!(told(edge.admin, "/api/v1/streams")["items"], json!([]));
    let root = told(edge.port, "/.millpond/assets?folder=");
    assert_eq!((&root["folders"], &root["live"]), (&json!(["cams/"]), &json!(["cams/"])));
    let empty = told(edge.port, "/.millpond/assets?folder=cams/");
    assert_eq!((&empty["streams"], &empty["left-out"], &empty["folder"]), (&json!([]), &json!([]), &json!("cams/")));
    let path = format!("cams/{CLIP}");
    let unopened = told(edge.port, &format!("/.millpond/asset?path={path}"));
    assert_eq!((&unopened["live"]["state"], &unopened["tracks"]), (&json!("waiting"), &json!([])));
    assert_eq!(told(edge.admin, "/api/v1/streams")["items"], json!([]), "the page opens nothing");

    let mut viewer = TcpStream::connect(("127.0.0.1", edge.port)).unwrap();
    write!(viewer, "GET /{path}/stream.mp4 HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    viewer.read_exact(&mut vec![0; 32 << 10]).unwrap();
    let stream = until(&edge, "running");
    assert_eq!(
        (&stream["path"], &stream["kind"], &stream["viewers"]),
        (&json!(path), &json!("rtsp"), &json!({"viewing": 1}))
    );
    assert_eq!(stream["source"], format!("rtsp://***@127.0.0.1:{}/{CLIP}?***", upstream.rtsp));
    assert_eq!((&stream["epoch"]["number"], &stream["epoch"]["reason"]), (&json!(0), &json!("start")));
    for field in ["since", "frames", "bytes", "memory-bytes", "packets", "sessions"] {
        assert!(stream[field].as_f64().unwrap() > 0.0, "{field} in {stream}");
    }
    for field in ["lost-packets", "broken-frames", "dropped-frames"] {
        assert_eq!(stream[field], 0, "{field} in {stream}");
    }
    let listed = told(edge.port, "/.millpond/assets?folder=cams");
    assert_eq!((&listed["streams"][0]["path"], &listed["streams"][0]["state"]), (&json!(path), &json!("running")));
    assert!(listed["streams"][0].get("source").is_none(), "addresses of sources are none of the viewers': {listed}");
    for query in ["", "?folder=cams"] {
        let list = edge.get(&format!(".millpond/all.m3u{query}")).text();
        assert!(list.contains(&format!("{CLIP}\nhttp://localhost/{path}/index.m3u8\n")), "{query}: {list}");
    }
    let opened = told(edge.port, &format!("/.millpond/asset?path={path}"));
    assert_eq!(opened["outputs"]["stream"]["url"], format!("/{path}/stream.mp4"));
    assert_eq!(
        (&opened["outputs"]["rtsp"]["port"], &opened["tracks"][0]["kind"]),
        (&json!(edge.rtsp), &json!("video"))
    );

    drop(upstream);
    let lost = until(&edge, "lost");
    assert!(lost["why"].as_str().is_some_and(|why| !why.is_empty()), "{lost}");
    assert_eq!(edge.metric("millpond_live_streams", "state=\"lost\""), 1.0);
    assert_eq!(edge.metric("millpond_live_streams", "state=\"running\""), 0.0);
}

#[test]
fn streams_are_as_many_as_the_setting_allows() {
    let upstream =
        Server::start(&[clips::folder().to_str().unwrap(), "--rtsp-channels", &format!("{CLIP},vp9_opus.mp4")]);
    let place = format!("cams=rtsp://127.0.0.1:{}/", upstream.rtsp);
    let edge = Server::start(&[&place, "--max-streams", "1", "--linger", "0s"]);
    let mut viewer = TcpStream::connect(("127.0.0.1", edge.port)).unwrap();
    write!(viewer, "GET /cams/{CLIP}/stream.mp4 HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    viewer.read_exact(&mut vec![0; 8 << 10]).unwrap();
    assert_eq!(get(edge.port, "/cams/vp9_opus.mp4/stream.mp4", &[]).status, 503);
    drop(viewer);
    let began = Instant::now();
    while told(edge.admin, "/api/v1/graph")["modules"] != json!([]) {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(50));
    }
    // The one that nobody watches makes room.
    assert_eq!(get(edge.port, "/cams/nothing/stream.mp4", &[]).status, 404);
}

#[test]
fn a_stream_that_sends_more_than_its_memory_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    // Tens of Mbit/s, and one key frame.
    let picture = "-f lavfi -i testsrc2=size=640x360:rate=25:duration=4 -vf noise=alls=100:allf=t";
    let coding = "-c:v libx264 -preset ultrafast -g 1000 -qp 10";
    clips::make(&folder.path().join("noise.mp4"), &format!("{picture} {coding}"));
    let upstream = Server::start(&[folder.path().to_str().unwrap(), "--rtsp-channels", "noise.mp4"]);
    let place = format!("cams=rtsp://127.0.0.1:{}/", upstream.rtsp);
    let edge = Server::start(&[&place, "--source-transport", "tcp", "--stream-memory", "4MiB", "--linger", "0s"]);
    let mut viewer = TcpStream::connect(("127.0.0.1", edge.port)).unwrap();
    viewer.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(viewer, "GET /cams/noise.mp4/stream.mp4 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let (began, mut bytes) = (Instant::now(), vec![0; 64 << 10]);
    while viewer.read(&mut bytes).is_ok_and(|count| count > 0) {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", told(edge.admin, "/api/v1/streams")["items"]);
    }
    let refused = until(&edge, "failed");
    assert!(refused["why"].as_str().unwrap().contains("more than 8 Mbit/s"), "{refused}");
    assert_eq!(refused["memory-limit-bytes"], 4 << 20);
    assert_eq!(edge.metric("millpond_live_refused_total", ""), 1.0);
}
