//! Clients that send without a pause: other clients are served beside them.

use crate::support::{
    Server, get,
    wire::{Client, frames},
};
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Longest time of a request beside a flood. Without turns it takes as long as the flood.
const BOUND: Duration = Duration::from_secs(3);
/// Length of a flood.
const FLOOD: Duration = Duration::from_secs(12);

/// Sends the same requests again and again, and reads all replies.
fn flood(port: u16, requests: &[u8], ends: &AtomicBool) {
    while !ends.load(Ordering::Relaxed) {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { continue };
        let mut replies = stream.try_clone().unwrap();
        let reader = thread::spawn(move || {
            let mut buffer = vec![0; 1 << 18];
            while replies.read(&mut buffer).is_ok_and(|count| count > 0) {}
        });
        while !ends.load(Ordering::Relaxed) && stream.write_all(requests).is_ok() {}
        let _ = stream.shutdown(std::net::Shutdown::Both);
        reader.join().unwrap();
    }
}

/// Longest time of a request of another client, beside two floods, at a server with one thread.
fn longest_beside(port: fn(&Server) -> u16, requests: &str) -> Duration {
    let server = Server::start(&["--workers", "1"]);
    let (ends, began) = (AtomicBool::new(false), Instant::now());
    let mut longest = Duration::ZERO;
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| flood(port(&server), requests.repeat(200).as_bytes(), &ends));
        }
        scope.spawn(|| {
            thread::sleep(FLOOD);
            ends.store(true, Ordering::Relaxed);
        });
        thread::sleep(Duration::from_millis(500));
        while began.elapsed() < FLOOD / 2 {
            let asked = Instant::now();
            assert_eq!(get(server.port, "/sample/index.m3u8", &[]).status, 200);
            longest = longest.max(asked.elapsed());
        }
        ends.store(true, Ordering::Relaxed);
    });
    longest
}

#[test]
fn requests_that_never_end_take_turns_with_others() {
    let http = "GET /nothing/x HTTP/1.1\r\nHost: a\r\n\r\n";
    let rtsp = "OPTIONS rtsp://127.0.0.1/sample RTSP/1.0\r\nCSeq: 1\r\n\r\n";
    let of_http = longest_beside(|server| server.port, http);
    assert!(of_http < BOUND, "beside HTTP: {of_http:?}");
    let of_rtsp = longest_beside(|server| server.rtsp, rtsp);
    assert!(of_rtsp < BOUND, "beside RTSP: {of_rtsp:?}");
}

#[test]
fn frames_without_content_end_their_connection() {
    let server = Server::start(&[]);
    for (kind, payload) in [(2, &[0, 0, 0, 0, 1][..]), (4, &[]), (6, &[7; 8]), (8, &[0, 0, 0, 1]), (77, &[])] {
        let mut client = Client::plain(server.port);
        client.write_all(&frames::hello(65_535)).unwrap();
        let stream = u32::from(kind == 2);
        let flood = frames::frame(kind, 0, stream, payload).repeat(500);
        // Forty times the bound.
        let sent = (0..80).take_while(|_| client.write_all(&flood).is_ok()).count();
        client.set_timeout(Duration::from_secs(10));
        let began = Instant::now();
        client.read_all();
        assert!(began.elapsed() < Duration::from_secs(5), "frames of kind {kind}: open after {sent} times 500");
    }
}
