//! Log lines of requests and sessions, however they end.

use crate::support::{Server, get, have, rtsp::Client};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/sample");
/// Length of the large file: far more than sockets hold.
const LARGE: u64 = 256 << 20;

/// A server of a large file and a title, with a log in JSON.
fn serve(args: &[&str]) -> (Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::File::create(folder.path().join("large.bin")).unwrap().set_len(LARGE).unwrap();
    std::fs::copy(Path::new(SAMPLE).join("180p.mp4"), folder.path().join("a.mp4")).unwrap();
    let server = Server::start(&[&[folder.path().to_str().unwrap(), "--log-format", "json"], args].concat());
    (server, folder)
}

/// Lines of a message, once one of them is as wanted.
fn lines(server: &Server, message: &str, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
    let began = Instant::now();
    loop {
        let text = server.log_text();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let lines: Vec<Value> = lines.filter(|line| line["message"] == message).collect();
        if lines.iter().any(&wanted) {
            return lines;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "no such line in {text}");
    }
}

fn line(server: &Server, message: &str, wanted: impl Fn(&Value) -> bool + Copy) -> Value {
    lines(server, message, wanted).into_iter().find(wanted).unwrap()
}

/// Begins to read the large file.
fn begin(port: u16, agent: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET /large.bin HTTP/1.1\r\nHost: localhost\r\nUser-Agent: {agent}\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 100_000]).unwrap();
    stream
}

#[test]
fn each_line_of_a_start_is_json() {
    let (server, _folder) = serve(&[]);
    server.get("a.mp4/index.m3u8");
    line(&server, "request", |line| line["uri"] == "/a.mp4/index.m3u8");
    let text = server.log_text();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(lines.iter().all(|line| line["level"].is_string() && line["message"].is_string()), "{text}");
    let of_root = lines.iter().filter(|line| line["message"] == "the admin address needs no token");
    let reasons: Vec<_> = of_root.map(|line| (&line["level"], line["why"].as_str().unwrap())).collect();
    assert_eq!(reasons.len(), usize::from(rustix::process::geteuid().is_root()), "{text}");
    let tells_cure =
        |why: &str| why.contains("runs as root") && why.contains("admin = \"unix:/run/millpond/admin.sock\"");
    assert!(reasons.iter().all(|(level, why)| *level == "WARN" && tells_cure(why)), "{text}");
}

#[test]
fn a_request_has_a_line_with_its_program() {
    let (server, _folder) = serve(&[]);
    get(server.port, "/a.mp4", &[("User-Agent", &"long ".repeat(100))]);
    let told = line(&server, "request", |line| line["uri"] == "/a.mp4");
    assert_eq!(
        (&told["status"], &told["ended"], told["agent"].as_str().unwrap().len()),
        (&200.into(), &"complete".into(), 200)
    );
    assert_eq!(told["bytes"].as_u64().unwrap(), std::fs::metadata(Path::new(SAMPLE).join("180p.mp4")).unwrap().len());
    // Bytes that are no request have a line too, and are counted.
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
    assert_eq!(line(&server, "not a request", |_| true)["status"], 400);
    assert_eq!(server.metric("millpond_http_requests_total", "kind=\"other\",status=\"4xx\""), 1.0);
}

#[test]
fn chunks_and_heads_are_no_bytes_of_a_body() {
    let (server, _folder) = serve(&[]);
    let body = server.get("a.mp4/ts/v1/1.ts").body.len();
    let told = line(&server, "request", |line| line["uri"] == "/a.mp4/ts/v1/1.ts");
    assert_eq!(told["bytes"], body);
    assert_eq!(server.metric("millpond_http_response_bytes_total", "kind=\"segment\""), body as f64);
}

#[test]
fn a_client_that_leaves_has_a_line_with_what_it_was_sent() {
    let (server, _folder) = serve(&[]);
    drop(begin(server.port, "leaves"));
    let told = line(&server, "request", |line| line["agent"] == "leaves");
    assert_eq!((&told["ended"], &told["status"]), (&"client_left".into(), &200.into()));
    let bytes = told["bytes"].as_u64().unwrap();
    assert!((100_000..LARGE).contains(&bytes), "{told}");
    assert_eq!(server.metric("millpond_responses_unfinished_total", "client_left"), 1.0);
    assert_eq!(server.metric("millpond_http_response_bytes_total", "kind=\"file\""), bytes as f64);
    assert_eq!(server.metric("millpond_http_requests_total", "kind=\"file\",status=\"2xx\""), 1.0);
}

#[test]
fn a_client_that_leaves_http2_has_a_line_with_what_it_was_sent() {
    if !have("curl") {
        return;
    }
    let (server, _folder) = serve(&[]);
    let url = server.url("large.bin");
    let slow =
        ["-s", "-o", "/dev/null", "--http2-prior-knowledge", "--limit-rate", "200k", "--max-time", "2", "-A", "slow"];
    let left = Command::new("curl").args(slow).arg(url).status().unwrap();
    assert_eq!(left.code(), Some(28), "curl gives up");
    let told = line(&server, "request", |line| line["agent"] == "slow");
    assert_eq!(told["ended"], "client_left", "{told}");
    assert!((1..LARGE).contains(&told["bytes"].as_u64().unwrap()), "{told}");
}

#[test]
fn a_client_that_takes_nothing_is_told_apart() {
    let (server, _folder) = serve(&["--write-timeout", "500ms"]);
    let _silent = begin(server.port, "silent");
    let told = line(&server, "request", |line| line["agent"] == "silent");
    assert_eq!(told["ended"], "client_slow", "{told}");
    assert_eq!(server.metric("millpond_responses_unfinished_total", "client_slow"), 1.0);
}

#[test]
fn a_response_that_a_shutdown_cuts_has_a_line() {
    let (server, _folder) = serve(&["--shutdown-grace", "200ms"]);
    let _viewer = begin(server.port, "cut");
    kill_process(Pid::from_child(&server.process.0), Signal::TERM).unwrap();
    let told = line(&server, "request", |line| line["agent"] == "cut");
    assert_eq!(told["ended"], "shutdown", "{told}");
    assert!((100_000..LARGE).contains(&told["bytes"].as_u64().unwrap()), "{told}");
}

#[test]
fn rtsp_sessions_and_refusals_have_lines() {
    let (server, _folder) = serve(&["--rtsp-sessions", "1", "--shutdown-grace", "1s"]);
    let agent = "User-Agent: a player\r\n";
    let mut client = Client::new(&server, "a.mp4");
    let transport = format!("RTP/AVP/TCP;unicast;interleaved=0-1\r\n{}", agent.trim_end());
    client.set_up("v1", &transport);
    assert_eq!(client.ask("PLAY", "", "").status, 200);
    client.receive(|packets| packets.len() > 20);
    let told = line(&server, "RTSP session plays", |_| true);
    assert_eq!(
        (&told["asset"], &told["transport"], &told["agent"]),
        (&"a.mp4".into(), &"tcp".into(), &"a player".into())
    );
    let mut other = Client::new(&server, "a.mp4");
    assert_eq!(other.set_up("v1", &transport).status, 453);
    let refused = line(&server, "RTSP request refused", |line| line["status"] == 453);
    assert_eq!(
        (&refused["method"], &refused["why"]),
        (&"SETUP".into(), &"rtsp-sessions is reached".into()),
        "{refused}"
    );
    assert_eq!(Client::new(&server, "nothing.mp4").ask("DESCRIBE", "", "").status, 404);
    let missing = line(&server, "RTSP request refused", |line| line["status"] == 404);
    assert!(missing["uri"].as_str().unwrap().ends_with("/nothing.mp4"), "{missing}");
    assert_eq!(client.ask("TEARDOWN", "", "").status, 200);
    let ended = line(&server, "RTSP session ended", |_| true);
    assert_eq!((&ended["ended"], &ended["session"]), (&"teardown".into(), &told["session"]), "{ended}");
    assert!(ended["packets"].as_u64().unwrap() >= 20 && ended["bytes"].as_u64().unwrap() > 1000, "{ended}");
    // One whose connection is gone, and one that the server's end cuts.
    for why in ["connection_lost", "shutdown"] {
        let mut client = Client::new(&server, "a.mp4");
        let began = Instant::now();
        while client.set_up("v1", &transport).status == 453 {
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(client.ask("PLAY", "", "").status, 200);
        client.receive(|packets| packets.len() > 5);
        if why == "shutdown" {
            kill_process(Pid::from_child(&server.process.0), Signal::TERM).unwrap();
            line(&server, "RTSP session ended", |line| line["ended"] == why);
        } else {
            drop(client);
            line(&server, "RTSP session ended", |line| line["ended"] == why);
        }
    }
}

#[test]
fn without_an_access_log_there_are_no_such_lines() {
    let (server, _folder) = serve(&["--access-log", "false"]);
    get(server.port, "/a.mp4", &[]);
    drop(begin(server.port, "leaves"));
    assert_eq!(Client::new(&server, "nothing.mp4").ask("DESCRIBE", "", "").status, 404);
    let began = Instant::now();
    while server.metric("millpond_responses_unfinished_total", "") < 1.0 {
        assert!(began.elapsed() < Duration::from_secs(60));
    }
    let text = server.log_text();
    assert!(!text.contains("\"request\"") && !text.contains("RTSP request refused"), "{text}");
}
