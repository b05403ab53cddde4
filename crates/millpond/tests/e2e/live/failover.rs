//! Streams that stay on the air: publishers die, and viewers of all protocols go on.

use super::publish::{reader, until_published};
use crate::support::{Running, Server, api::items, clips};
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// Far more than anything here takes, also on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// Pushes a test picture, with a key frame each second.
fn push(server: &Server, path: &str) -> Running {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-re", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25"]);
    command.args(["-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-f", "rtsp", "-rtsp_transport", "tcp"]);
    command.arg(format!("rtsp://127.0.0.1:{}/{path}", server.rtsp));
    Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// Moments at which bytes of a long response arrive. It ends where another input has other formats, and is requested again, as the page does.
fn arrivals(server: &Server, path: &str) -> Arc<Mutex<Vec<Instant>>> {
    let (port, request) =
        (server.port, format!("GET /{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
    let moments = Arc::<Mutex<Vec<Instant>>>::default();
    let of_thread = moments.clone();
    std::thread::spawn(move || {
        let mut bytes = [0; 65_536];
        while let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
            let _ = stream.write_all(request.as_bytes());
            while stream.read(&mut bytes).is_ok_and(|length| length > 0) {
                of_thread.lock().unwrap().push(Instant::now());
            }
        }
    });
    moments
}

/// Waits until an input plays.
fn until_plays(server: &Server, input: &str) {
    let began = Instant::now();
    let plays = format!("\"to\":\"{input}\"");
    let is_last = || {
        let log = server.log_text();
        log.lines().rfind(|line| line.contains("a failover plays an input")).is_some_and(|line| line.contains(&plays))
    };
    while !is_last() {
        assert!(began.elapsed() < LONG, "{input} does not play: {}", server.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Lines of a player that copies packets: one for each packet.
fn packets(server: &Server, path: &str) -> (Running, Arc<Mutex<Vec<Instant>>>) {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-fflags", "nobuffer", "-rtsp_transport", "tcp", "-i"]);
    command.arg(format!("rtsp://127.0.0.1:{}/{path}", server.rtsp));
    command.args(["-map", "0:v", "-c", "copy", "-flush_packets", "1", "-f", "framecrc", "-"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let output = child.stdout.take().unwrap();
    let moments = Arc::<Mutex<Vec<Instant>>>::default();
    let of_thread = moments.clone();
    std::thread::spawn(move || {
        for _ in BufReader::new(output).lines().map_while(Result::ok) {
            of_thread.lock().unwrap().push(Instant::now());
        }
    });
    (Running(child), moments)
}

/// The longest time without an arrival, up to now.
fn longest(moments: &Mutex<Vec<Instant>>) -> Duration {
    let moments = moments.lock().unwrap();
    let pairs = moments.windows(2).map(|pair| pair[1] - pair[0]);
    pairs.chain(moments.last().map(Instant::elapsed)).max().expect("something arrived")
}

#[test]
fn viewers_go_on_while_inputs_die_and_come_back() {
    let films = clips::folder();
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(films.join(super::publish::CLIP), folder.path().join("wait.mp4")).unwrap();
    let films = format!("films={}", folder.path().display());
    let line = "live/main=live/a live/b films/wait.mp4";
    let server =
        Server::start(&["live=publish:", &films, "--failover", line, "--failover-back", "2s", "--linger", "0s"]);
    let first = push(&server, "live/a");
    let second = push(&server, "live/b");
    until_plays(&server, "live/a");
    until_published(&server, "live/main");
    let (by_http, (_player, by_rtsp)) = (arrivals(&server, "live/main/stream.mp4"), packets(&server, "live/main"));
    let began = Instant::now();
    while by_rtsp.lock().unwrap().len() < 50 || by_http.lock().unwrap().len() < 50 {
        assert!(began.elapsed() < LONG, "{}", server.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(first);
    until_plays(&server, "live/b");
    drop(second);
    until_plays(&server, "films/wait.mp4");
    let _third = push(&server, "live/b");
    until_plays(&server, "live/b");
    let _fourth = push(&server, "live/a");
    until_plays(&server, "live/a");
    std::thread::sleep(Duration::from_secs(2));
    // One group of pictures and a second, and what a busy machine adds.
    for moments in [&by_http, &by_rtsp] {
        let longest = longest(moments);
        println!("longest standstill: {longest:?}");
        assert!(longest < Duration::from_secs(6), "{longest:?}");
    }
    let segments = reader(&["-live_start_index", "-1", "-i", &server.url("live/main/index.m3u8")], "0:v", 25);
    assert_eq!(super::publish::hashes(segments).len(), 25);
    let modules = items(server.admin, "modules");
    assert_eq!(modules.as_array().map(Vec::len), Some(0), "a failover is no module of an operator");
}

#[test]
fn bad_failovers_are_refused_with_their_cure() {
    for (line, words) in [
        ("live/main", "a path and 2 to 16 inputs"),
        ("live/main=live/a live/a", "each input once"),
        ("live/main=live/a live/b,live/main=live/c live/d", "each stream once"),
    ] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_millpond")).args(["check", "live=publish:", "--failover", line]).output();
        let output = output.unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(!output.status.success() && said.contains(words), "{line}: {said}");
    }
}
