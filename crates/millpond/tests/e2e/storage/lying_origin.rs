//! An origin that is killed in the middle of a slice, stalls, lies about lengths or changes the object: what a client
//! gets is right or broken off, never wrong, and nothing stays behind.

use crate::support::{self, Server, web};
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

const SIZE: usize = 2 << 20;
/// Bytes that an origin sends before it breaks off.
const CUT: usize = 300_000;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    Honest,
    /// Closes in the middle of a slice.
    Cut,
    /// Sends a part, then nothing, and keeps the connection.
    Stall,
    /// Says that a range begins a byte later than it does.
    Shifted,
    /// Says that the object is longer.
    Longer,
    /// Sends more than it announced.
    Babbles,
}

#[derive(Clone)]
struct Origin(Arc<Mutex<(Manner, Vec<u8>, u32)>>, u16);

impl Origin {
    fn start() -> Self {
        let mut origin = Self(Arc::new(Mutex::new((Manner::Honest, Vec::new(), 0))), 0);
        origin.change(1);
        let shared = origin.clone();
        origin.1 = web::serve(move |stream, head| shared.answer(stream, head));
        origin
    }

    fn behaves(&self, manner: Manner) {
        self.0.lock().unwrap().0 = manner;
    }

    /// Another content, under another entity tag.
    fn change(&self, version: u32) {
        let byte = |place: usize| (place as u32).wrapping_mul(2_654_435_761).wrapping_mul(version).to_be_bytes()[0];
        let mut state = self.0.lock().unwrap();
        (state.1, state.2) = ((0..SIZE).map(byte).collect(), version);
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().1.clone()
    }

    fn answer(&self, mut stream: &TcpStream, head: &str) -> std::io::Result<()> {
        let (manner, bytes, version) = self.0.lock().unwrap().clone();
        let asked = head.lines().find_map(|line| line.strip_prefix("range: bytes="));
        let (first, last) = asked.and_then(|range| range.split_once('-')).unwrap_or(("0", ""));
        let first: usize = first.parse().unwrap();
        if first >= SIZE {
            let total = format!("Content-Range: bytes */{SIZE}\r\nContent-Length: 0\r\n\r\n");
            return write!(stream, "HTTP/1.1 416 Range Not Satisfiable\r\n{total}");
        }
        let end = last.trim().parse::<usize>().map_or(SIZE, |last| (last + 1).min(SIZE));
        let if_range = head.lines().find_map(|line| line.strip_prefix("if-range: "));
        let whole = asked.is_none() || if_range.is_some_and(|tag| tag.trim() != format!("\"{version}\""));
        let (status, first, end) = if whole { ("200 OK", 0, SIZE) } else { ("206 Partial Content", first, end) };
        let told = if manner == Manner::Shifted { first + 1 } else { first };
        let total = if manner == Manner::Longer { SIZE + 1000 + first } else { SIZE };
        let part = if whole { String::new() } else { format!("Content-Range: bytes {told}-{}/{total}\r\n", end - 1) };
        let head_only = head.starts_with("head");
        let length = end - first;
        write!(
            stream,
            "HTTP/1.1 {status}\r\nETag: \"{version}\"\r\nAccept-Ranges: bytes\r\n{part}Content-Length: {length}\r\n\r\n"
        )?;
        if head_only {
            return Ok(());
        }
        match manner {
            Manner::Cut | Manner::Stall if length > CUT => {
                stream.write_all(&bytes[first..first + CUT])?;
                if manner == Manner::Stall {
                    std::thread::sleep(Duration::from_secs(5));
                }
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
            Manner::Babbles => {
                stream.write_all(&bytes[first..end])?;
                stream.write_all(&[7; 5000])
            }
            _ => stream.write_all(&bytes[first..end]),
        }
    }
}

/// A request for a range, and as much of the body as came.
fn read(port: u16, from: usize, to: usize) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(
        stream,
        "GET /films/film.bin HTTP/1.1\r\nHost: a\r\nRange: bytes={from}-{}\r\nConnection: close\r\n\r\n",
        to - 1
    )
    .unwrap();
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    let head = all.windows(4).position(|four| four == b"\r\n\r\n").expect("a head of a reply") + 4;
    let status = String::from_utf8_lossy(&all[9..12]).parse().unwrap();
    (status, all.split_off(head))
}

/// The pipes, and the other descriptors, that a server has open.
fn descriptors(server: &Server) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.process.0.id())).unwrap();
    let names = open.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
    names.partition(|name| name.to_string_lossy().starts_with("pipe:"))
}

#[test]
fn whatever_the_origin_does_nothing_wrong_is_served_and_nothing_leaks() {
    let origin = Origin::start();
    let scratch = tempfile::tempdir().unwrap();
    let config = scratch.path().join("a.toml");
    let text = format!(
        "slice = \"64KiB\"\n[places.films]\nurl = \"http://127.0.0.1:{}\"\nstall-timeout = \"1s\"\nretries = 1\n",
        origin.1
    );
    std::fs::write(&config, text).unwrap();
    let server = Server::start(&["--config", config.to_str().unwrap()]);
    let (status, body) = read(server.port, 0, 100_000);
    assert!(status == 206 && body == origin.bytes()[..100_000]);
    // The admin address keeps descriptors for itself once it answers.
    assert_eq!(server.metric("millpond_origin_requests_in_flight", "{place=\"films\"}"), 0.0);
    let (pipes, others) = descriptors(&server);
    // Each worker keeps a pipe, which has two ends.
    let pipes = pipes.len() + 2 * std::thread::available_parallelism().unwrap().get();
    let before = others.len();
    for manner in [Manner::Cut, Manner::Stall, Manner::Shifted, Manner::Longer, Manner::Babbles] {
        origin.behaves(manner);
        let readers: Vec<_> = (0..8)
            .map(|number| {
                let (port, origin) = (server.port, origin.clone());
                std::thread::spawn(move || {
                    let from = number * 150_000;
                    let (status, body) = read(port, from, SIZE);
                    let right = body == origin.bytes()[from..(from + body.len()).min(SIZE)];
                    (status, status != 206 || right)
                })
            })
            .collect();
        for reader in readers {
            let (status, right) = reader.join().unwrap();
            assert!(right && matches!(status, 206 | 502 | 503 | 504), "{manner:?}: {status}");
        }
        origin.behaves(Manner::Honest);
        // A reader that joins a request which was answered so gets a part, and it is right.
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let (status, body) = read(server.port, 0, SIZE);
            assert!(status != 206 || origin.bytes().starts_with(&body), "after {manner:?}: {} bytes", body.len());
            if status == 206 && body.len() == SIZE {
                break;
            }
            assert!(Instant::now() < deadline, "after {manner:?}: {status}, {} bytes", body.len());
            std::thread::sleep(Duration::from_millis(50));
        }
        support::api::send(server.admin, "POST", "cache/purge", &serde_json::json!({ "path": "films/film.bin" }), &[]);
    }
    // Another version under way: who reads the old one is broken off or has it whole, who comes then gets the new one.
    let old = origin.bytes();
    let (port, early) = (server.port, origin.clone());
    origin.behaves(Manner::Stall);
    let reader = std::thread::spawn(move || read(port, 0, SIZE));
    std::thread::sleep(Duration::from_millis(300));
    early.behaves(Manner::Honest);
    early.change(3);
    let (status, body) = reader.join().unwrap();
    // A reader that is late gets the new version.
    assert!(status != 206 || old.starts_with(&body) || origin.bytes().starts_with(&body), "versions are mixed");
    let began = Instant::now();
    let new = loop {
        let (status, body) = read(server.port, 0, SIZE);
        if status == 206 && body.len() == SIZE && body != old {
            break body;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "the new version does not come: {status}, {}", body.len());
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(new == origin.bytes());
    // Nothing stays behind.
    let gone = || {
        let open = descriptors(&server);
        open.0.len() <= pipes
            && open.1.len() <= before + 2
            && server.metric("millpond_origin_requests_in_flight", "{place=\"films\"}") == 0.0
            && server.metric("millpond_disk_pinned_bytes", "") == 0.0
    };
    // Idle connections to the origin end after 30 to 60 s.
    for _ in 0..2_400 {
        if gone() {
            assert!(!server.log_text().contains("panic"), "{}", server.log_text());
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let open = descriptors(&server);
    panic!(
        "{} descriptors, {before} before, and at most {pipes} pipes: {open:?}; requests in flight {}, pinned {}",
        open.1.len(),
        server.metric("millpond_origin_requests_in_flight", "{place=\"films\"}"),
        server.metric("millpond_disk_pinned_bytes", "")
    );
}

#[test]
fn a_clock_that_jumps_changes_nothing() {
    if !std::path::Path::new(support::FAKETIME).is_file() {
        support::missing("faketime");
        return;
    }
    let origin = Origin::start();
    let scratch = tempfile::tempdir().unwrap();
    let clock = scratch.path().join("clock");
    std::fs::write(&clock, "+0").unwrap();
    let place = format!("films=http://127.0.0.1:{}", origin.1);
    let env = [
        ("LD_PRELOAD", support::FAKETIME),
        ("FAKETIME_TIMESTAMP_FILE", clock.to_str().unwrap()),
        ("FAKETIME_NO_CACHE", "1"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ];
    let server = Server::start_with(&[&place, "--slice", "64KiB"], &env);
    let date = |server: &Server| {
        let reply = support::request(server.port, "HEAD", "/films/film.bin", &[]);
        reply.header("date").unwrap().to_owned()
    };
    let (status, body) = read(server.port, 0, SIZE);
    assert!(status == 206 && body == origin.bytes());
    let now = date(&server);
    for jump in ["+400d", "-400d", "+0"] {
        std::fs::write(&clock, jump).unwrap();
        let jumped = date(&server);
        assert_eq!(jumped[12..16] == now[12..16], jump == "+0", "{now}, after {jump} {jumped}");
        let (status, body) = read(server.port, 1000, SIZE);
        assert!(status == 206 && body == origin.bytes()[1000..], "after {jump}");
    }
    // Cached bytes stay: the body was sent once.
    let sent = server.metric("millpond_origin_bytes_total", "{place=\"films\"}");
    assert!(sent <= (SIZE + (64 << 10)) as f64, "{sent}");
    origin.change(2);
    let began = Instant::now();
    while read(server.port, 0, SIZE).1 != origin.bytes() {
        assert!(began.elapsed() < Duration::from_secs(60), "the new version does not come");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(!server.log_text().contains("panic"), "{}", server.log_text());
}
