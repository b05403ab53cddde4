//! Tests of replies that never end, or say nothing.

use std::cell::Cell;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use tokio::task::LocalSet;
use url::Url;

use crate::error::{OriginError, Phase};
use crate::origin::http::HttpOrigin;
use crate::origin::{Origin as _, Timeouts};
use crate::path::ObjectPath;

const SECOND: Duration = Duration::from_secs(1);

/// A server that answers without an end, and the bytes that its connections took.
struct Flood {
    origin: HttpOrigin,
    sent: Arc<AtomicU64>,
}

/// Starts a server that answers each connection with `once` and then `again` until the client leaves, with pauses.
fn flood(once: Vec<u8>, again: Vec<u8>, pause: Duration) -> Flood {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let sent = Arc::new(AtomicU64::new(0));
    let count = sent.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, once, again, count) = (stream.unwrap(), once.clone(), again.clone(), count.clone());
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                let mut sent = stream.write_all(&once);
                while sent.is_ok() {
                    std::thread::sleep(pause);
                    sent = stream.write_all(&again);
                    count.fetch_add(again.len() as u64, Ordering::Relaxed);
                }
            });
        }
    });
    let timeouts = Timeouts { connect: SECOND, first_byte: SECOND, stall: SECOND };
    Flood { origin: HttpOrigin::new(&Url::parse(&url).unwrap(), timeouts, &[]).unwrap(), sent }
}

/// Bytes on their way between a server and its reader: both buffers of the connection, at most.
const ON_THE_WAY: u64 = 16 << 20;
/// Most bytes that are read between two turns of another task, on a busy machine too. A reader without pauses gives it no turn in
/// 60 MB.
const BETWEEN_TURNS: u64 = 8 << 20;
/// Time after which a reply counts as endless, on a busy machine too.
const ENDLESS: Duration = Duration::from_secs(30);

/// Reads from an origin on one thread. Returns the error, the time, and how many turns another task had meanwhile.
fn read(Flood { origin, .. }: &Flood) -> (OriginError, Duration, u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let path = ObjectPath::parse("a.mp4").unwrap();
    let began = Instant::now();
    let turns = Rc::new(Cell::new(0));
    let counted = Rc::clone(&turns);
    let other = async move {
        loop {
            counted.set(counted.get() + 1);
            tokio::task::yield_now().await;
        }
    };
    let outcome = async {
        let mut fetched = origin.read(&path, 0..1000, None).await?;
        while let Some(piece) = fetched.body.next().await {
            piece?;
        }
        Ok::<_, OriginError>(())
    };
    let error = LocalSet::new().block_on(&runtime, async {
        let other = tokio::task::spawn_local(other);
        let error = outcome.await.expect_err("the reply is no reply");
        other.abort();
        error
    });
    (error, began.elapsed(), turns.get())
}

fn head(rest: &str) -> Vec<u8> {
    format!("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-999/1000\r\nETag: \"a\"\r\n{rest}").into_bytes()
}

#[test]
fn endless_interim_replies_end() {
    for again in ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 x\n\n", "HTTP/1.0 199 \r\na: b\r\n\r\n"] {
        let (error, time, _) = read(&flood(vec![], again.repeat(4096).into_bytes(), Duration::ZERO));
        assert!(matches!(&error, OriginError::BadReply { found, .. } if found.contains("interim")), "{error:?}");
        assert!(time < ENDLESS, "{time:?}");
    }
}

#[test]
fn one_interim_reply_a_moment_is_no_first_byte() {
    let origin = flood(vec![], b"HTTP/1.1 100 Continue\r\n\r\n".to_vec(), Duration::from_millis(200));
    let (error, time, _) = read(&origin);
    assert!(matches!(error, OriginError::Timeout { phase: Phase::FirstByte, .. }), "{error:?}");
    assert!(time < ENDLESS, "{time:?}");
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
        let flood = flood(once, again.repeat(2048), Duration::ZERO);
        let (error, time, turns) = read(&flood);
        let sent = flood.sent.load(Ordering::Relaxed);
        eprintln!("{name}: {error}, {time:?}, {sent} bytes, {turns} turns of another task");
        assert!(time < ENDLESS, "{name}: {time:?}");
        // Framing that states nothing is read until the body counts as stalled, with a pause for other tasks after each 64 KiB.
        if matches!(name, "zeros" | "spaces") {
            let least = sent.saturating_sub(ON_THE_WAY) / BETWEEN_TURNS;
            assert!(turns > least, "{name}: another task had {turns} turns during {sent} bytes");
        }
    }
}

#[test]
fn a_byte_a_moment_is_a_stalled_body() {
    let (error, time, _) =
        read(&flood(head("Content-Length: 1000\r\n\r\n"), b"a".to_vec(), Duration::from_millis(200)));
    assert!(matches!(error, OriginError::Timeout { phase: Phase::Stalled, .. }), "{error:?}");
    assert!(time < ENDLESS, "{time:?}");
}
