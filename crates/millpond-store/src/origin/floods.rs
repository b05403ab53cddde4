//! Tests of replies that never end, or say nothing.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use url::Url;

use super::http::HttpOrigin;
use super::{Origin as _, Timeouts};
use crate::error::{OriginError, Phase};
use crate::path::ObjectPath;

const SECOND: Duration = Duration::from_secs(1);

/// Starts a server that answers each connection with `once` and then `again` until the client leaves, with pauses.
fn flood(once: Vec<u8>, again: Vec<u8>, pause: Duration) -> HttpOrigin {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, once, again) = (stream.unwrap(), once.clone(), again.clone());
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                let mut sent = stream.write_all(&once);
                while sent.is_ok() {
                    std::thread::sleep(pause);
                    sent = stream.write_all(&again);
                }
            });
        }
    });
    let timeouts = Timeouts { connect: SECOND, first_byte: SECOND, stall: SECOND };
    HttpOrigin::new(&Url::parse(&url).unwrap(), timeouts, &[]).unwrap()
}

/// Reads from an origin on one thread. Returns the error, the time, and the longest time without a turn of another task.
fn read(origin: &HttpOrigin) -> (OriginError, Duration, Duration) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let path = ObjectPath::parse("a.mp4").unwrap();
    let began = Instant::now();
    let (error, longest) = runtime.block_on(async {
        let heart = tokio::spawn(async move {
            let (mut longest, mut last) = (Duration::ZERO, Instant::now());
            while began.elapsed() < Duration::from_secs(60) {
                tokio::time::sleep(Duration::from_millis(5)).await;
                longest = longest.max(last.elapsed());
                last = Instant::now();
                BEATS.with(|beats| beats.set(longest));
            }
        });
        let outcome = async {
            let mut fetched = origin.read(&path, 0..1000, None).await?;
            while let Some(piece) = fetched.body.next().await {
                piece?;
            }
            Ok::<_, OriginError>(())
        };
        let error = outcome.await.expect_err("the reply is no reply");
        tokio::time::sleep(Duration::from_millis(50)).await;
        heart.abort();
        (error, BEATS.with(std::cell::Cell::get))
    });
    (error, began.elapsed(), longest)
}

thread_local! {
    static BEATS: std::cell::Cell<Duration> = const { std::cell::Cell::new(Duration::ZERO) };
}

fn head(rest: &str) -> Vec<u8> {
    format!("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-999/1000\r\nETag: \"a\"\r\n{rest}").into_bytes()
}

#[test]
fn endless_interim_replies_end_at_once_and_hold_no_thread() {
    for again in ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 x\n\n", "HTTP/1.0 199 \r\na: b\r\n\r\n"] {
        let (error, time, longest) = read(&flood(vec![], again.repeat(4096).into_bytes(), Duration::ZERO));
        eprintln!("{again:?}: {error}, {time:?}, {longest:?} without a turn");
        assert!(matches!(&error, OriginError::BadReply { found, .. } if found.contains("interim")), "{error:?}");
        assert!(time < SECOND && longest < SECOND, "{time:?}, {longest:?} without a turn");
    }
}

#[test]
fn one_interim_reply_a_moment_is_no_first_byte() {
    let origin = flood(vec![], b"HTTP/1.1 100 Continue\r\n\r\n".to_vec(), Duration::from_millis(200));
    let (error, time, _) = read(&origin);
    assert!(matches!(error, OriginError::Timeout { phase: Phase::FirstByte, .. }), "{error:?}");
    assert!(time < 4 * SECOND, "{time:?}");
}

#[test]
fn endless_heads_and_framing_end_in_time_and_hold_no_thread() {
    let chunked = |rest: &str| head(&format!("Transfer-Encoding: chunked\r\n\r\n{rest}"));
    let floods: [(&str, Vec<u8>, &[u8]); 8] = [
        ("header lines", head(""), b"x-a: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n"),
        ("a header line", head("x-a: "), b"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"),
        ("empty lines", vec![], b"\r\n\r\n\r\n\r\n"),
        ("extensions", chunked("5;"), b"a=b;a=b;a=b;a=b"),
        ("extensions of chunks", chunked(""), b"1;aaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\na\r\n"),
        ("zeros", chunked(""), b"000000000000000000000000000000000000000000"),
        ("spaces", chunked("5"), b"                                          "),
        ("trailers", chunked("0\r\n"), b"a: b\r\na: b\r\na: b\r\n"),
    ];
    for (name, once, again) in floods {
        let (error, time, longest) = read(&flood(once, again.repeat(2048), Duration::ZERO));
        eprintln!("{name}: {error}, {time:?}, {longest:?} without a turn");
        // Framing that states nothing is read until the body counts as stalled, with a pause for other tasks after each 64 KiB.
        // Timers wait for 61 pauses at most.
        let bound = if matches!(name, "zeros" | "spaces") { 4 * SECOND } else { SECOND };
        assert!(time < 4 * SECOND && longest < bound, "{name}: {time:?}, {longest:?} without a turn");
    }
}

#[test]
fn a_byte_a_moment_is_a_stalled_body() {
    let (error, time, _) =
        read(&flood(head("Content-Length: 1000\r\n\r\n"), b"a".to_vec(), Duration::from_millis(200)));
    assert!(matches!(error, OriginError::Timeout { phase: Phase::Stalled, .. }), "{error:?}");
    assert!(time < 4 * SECOND, "{time:?}");
}
