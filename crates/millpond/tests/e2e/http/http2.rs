//! HTTP/2: conformance by h2spec, rules that it shares with HTTP/1, and memory under hostile clients.

use crate::support::{
    Server, free_port, have, wait_for_port,
    wire::{Client, frames},
};
use std::{
    io::Write as _,
    process::Command,
    thread,
    time::{Duration, Instant},
};

/// The case of h2spec that fails on a plain port for a reason: there, bytes that aren't the preface are HTTP/1, and a
/// reply says what is wrong with them before the connection closes.
const EXCUSED: &str = "Sends invalid connection preface";

#[test]
fn h2spec_finds_nothing() {
    if !have("h2spec") {
        return;
    }
    let https = free_port();
    let server = Server::start(&["--tls-self-signed", "--https", &format!("127.0.0.1:{https}")]);
    wait_for_port(https, &server.log);
    for (port, tls) in [(server.port, &[][..]), (https, &["-t", "-k"][..])] {
        let output = Command::new("h2spec")
            // A body larger than the first window: its stream is open for as long as a case lasts.
            .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-P", "/sample/360p.mp4", "-o", "20"])
            .args(tls)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let failures: Vec<&str> =
            text.lines().filter(|l| l.contains('×') && (!tls.is_empty() || !l.contains(EXCUSED))).collect();
        assert!(text.contains(" passed") && failures.is_empty(), "{tls:?}: {failures:#?}\n{text}");
    }
}

/// The reply to a request of these fields: status, and bytes of the body; `None` where the stream is reset.
fn reply(client: &mut Client, stream: u32, pairs: &[(&str, &str)]) -> Option<(String, usize)> {
    client.write_all(&frames::frame(frames::HEADERS, 0x5, stream, &frames::fields(pairs))).unwrap();
    client.flush().unwrap();
    let (mut status, mut len) = (String::new(), 0);
    loop {
        let (kind, flags, at, payload) = frames::read(client).unwrap();
        match kind {
            frames::HEADERS if at == stream => status = status_of(&payload),
            frames::DATA if at == stream => len += payload.len(),
            frames::RST_STREAM if at == stream => return None,
            frames::GOAWAY => panic!("the connection ends: {payload:?}"),
            _ => {}
        }
        if at == stream && flags & 1 == 1 && matches!(kind, frames::HEADERS | frames::DATA) {
            return Some((status, len));
        }
    }
}

/// The status that a field block begins with (RFC 7541, static table), by its index where it has one.
fn status_of(block: &[u8]) -> String {
    match block {
        [0x88, ..] => "200".to_owned(),
        [0x89, ..] => "204".to_owned(),
        [0x8a, ..] => "206".to_owned(),
        [0x8b, ..] => "304".to_owned(),
        [0x8c, ..] => "400".to_owned(),
        [0x8d, ..] => "404".to_owned(),
        _ => "other".to_owned(),
    }
}

/// Name with its section, fields beside the pseudo-fields of a GET, and status and length of the reply; none for a reset.
type Row = (&'static str, &'static [(&'static str, &'static str)], Option<(&'static str, usize)>);

#[test]
fn requests_follow_the_rules_of_http1() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.bin"), "0123456789".repeat(10)).unwrap();
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    let mut client = Client::plain(server.port);
    client.write_all(&frames::hello(65_535)).unwrap();
    let base = [(":method", "GET"), (":scheme", "http"), (":path", "/f.bin")];
    let rows: [Row; 13] = [
        ("9113 8.3.1: :authority", &[(":authority", "x")], Some(("200", 100))),
        ("9113 8.3.1: Host alone", &[("host", "x")], Some(("200", 100))),
        ("9113 8.3.1: neither", &[], Some(("400", 0))),
        ("9113 8.3.1: both the same", &[(":authority", "x:1"), ("host", "X:1")], Some(("200", 100))),
        ("9113 8.3.1: both, different", &[(":authority", "x"), ("host", "y")], Some(("400", 0))),
        ("9112 3.2: two Hosts", &[(":authority", "x"), ("host", "x"), ("host", "x")], Some(("400", 0))),
        (
            "9110 8.6: two lengths",
            &[(":authority", "x"), ("content-length", "0"), ("content-length", "0")],
            Some(("400", 0)),
        ),
        ("9113 8.2.2: Connection", &[(":authority", "x"), ("connection", "close")], None),
        ("9113 8.2.2: Transfer-Encoding", &[(":authority", "x"), ("transfer-encoding", "chunked")], None),
        ("9113 8.2.2: TE", &[(":authority", "x"), ("te", "gzip")], None),
        ("9113 8.2.2: TE: trailers", &[(":authority", "x"), ("te", "trailers")], Some(("200", 100))),
        ("9110 14.2: a range", &[(":authority", "x"), ("range", "bytes=0-1")], Some(("206", 2))),
        (
            "9110 5.3: two ranges",
            &[(":authority", "x"), ("range", "bytes=0-1"), ("range", "bytes=4-5")],
            Some(("200", 100)),
        ),
    ];
    for (number, (name, more, expected)) in rows.iter().enumerate() {
        let found = reply(&mut client, 2 * number as u32 + 1, &[&base[..], more].concat());
        match (found, expected) {
            (None, None) => {}
            (Some((status, len)), Some((wanted, bytes))) => {
                assert_eq!(status, *wanted, "{name}");
                assert!(status == "400" || len == *bytes, "{name}: {len} bytes");
            }
            (found, _) => panic!("{name}: {found:?}"),
        }
    }
}

/// Kilobytes of memory that a process has resident.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn windows_of_one_byte_cost_no_memory() {
    one_byte_windows(&[]);
}

#[test]
fn windows_of_one_byte_cost_no_memory_with_one_worker() {
    one_byte_windows(&["--workers", "1"]);
}

/// A hundred connections of a hundred streams, each for a body that must be read or made, none of which is taken.
fn one_byte_windows(args: &[&str]) {
    let server = Server::start(&[&["--memory", "64MiB", "--write-timeout", "20s"], args].concat());
    let honest = server.get("sample/ts/v1/1.ts");
    let before = resident(server.process.0.id());
    let paths = ["/sample/360p.mp4", "/sample/ts/v1/1.ts", "/sample/v1/1.m4s", "/sample/index.m3u8"];
    let mut clients: Vec<Client> = (0..100)
        .map(|_| {
            let mut client = Client::plain(server.port);
            let mut bytes = frames::hello(1);
            (0..100).for_each(|n| bytes.extend(frames::get(2 * n + 1, paths[n as usize % paths.len()])));
            client.write_all(&bytes).unwrap();
            client
        })
        .collect();
    let (mut most, began) = (before, Instant::now());
    while began.elapsed() < Duration::from_secs(6) {
        assert_eq!(server.get("sample/ts/v1/1.ts").body.len(), honest.body.len());
        assert_eq!(honest_http2(server.port), honest.body.len());
        most = most.max(resident(server.process.0.id()));
        thread::sleep(Duration::from_millis(100));
    }
    eprintln!("resident: {before} kB before, {most} kB at most under 10,000 streams");
    assert!(most - before < (64 + 100) << 10, "{before} kB before, {most} kB under 10,000 streams");
    let (kind, ..) = frames::read(&mut clients[0]).unwrap();
    assert_eq!(kind, 4, "the connections are there still");
}

/// Bytes of a body by HTTP/2, taken at once.
fn honest_http2(port: u16) -> usize {
    let mut client = Client::plain(port);
    client.write_all(&frames::hello(0x7fff_ffff)).unwrap();
    let pairs = [(":method", "GET"), (":scheme", "http"), (":path", "/sample/ts/v1/1.ts"), (":authority", "x")];
    let (status, len) = reply(&mut client, 1, &pairs).expect("an honest stream is not reset");
    assert_eq!(status, "200");
    len
}
