//! Clients that do nothing, or next to nothing: over every protocol each loses its connection, and others are served.

use crate::support::{
    Server, free_port, wait_for_port,
    wire::{Client, frames},
};
use std::{
    io::Write as _,
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

/// By then every timeout of a second or two has passed, on a busy machine too.
const BOUND: Duration = Duration::from_secs(40);
/// Connections that the server takes, all of them a slow client's.
const CONNECTIONS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Protocol {
    Http1,
    TlsHttp1,
    TlsHttp2,
    H2c,
    Handshake,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Slowness {
    /// Nothing is sent.
    Idle,
    /// Half a request head, or half a handshake.
    HalfHead,
    /// A large reply is asked for and not read.
    Unread,
    /// The window for the reply is so large and stays so.
    Window(u32),
    /// A reply was asked for that the small socket takes; nothing follows.
    Served,
}

use Protocol::*;
use Slowness::*;

const CASES: [(Protocol, Slowness); 22] = [
    (Http1, Idle),
    (Http1, HalfHead),
    (Http1, Unread),
    (Http1, Served),
    (TlsHttp1, Idle),
    (TlsHttp1, HalfHead),
    (TlsHttp1, Unread),
    (TlsHttp1, Served),
    (TlsHttp2, Idle),
    (TlsHttp2, HalfHead),
    (TlsHttp2, Unread),
    (TlsHttp2, Window(0)),
    (TlsHttp2, Window(1)),
    (TlsHttp2, Served),
    (H2c, Idle),
    (H2c, HalfHead),
    (H2c, Unread),
    (H2c, Window(0)),
    (H2c, Window(1)),
    (H2c, Served),
    (Handshake, Idle),
    (Handshake, HalfHead),
];

#[test]
fn slow_clients_lose_their_connections() {
    over_all_cases(&[]);
}

#[test]
fn slow_clients_lose_their_connections_with_one_worker() {
    over_all_cases(&["--workers", "1"]);
}

fn over_all_cases(args: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::File::create(folder.path().join("big.bin")).unwrap().set_len(256 << 20).unwrap();
    let path = folder.path().to_str().unwrap();
    thread::scope(|scope| {
        let runs: Vec<_> = CASES.iter().map(|case| (case, scope.spawn(move || run(*case, path, args)))).collect();
        for (case, run) in runs {
            assert!(run.join().is_ok(), "{case:?} {args:?}");
        }
    });
}

fn run((protocol, slowness): (Protocol, Slowness), folder: &str, args: &[&str]) {
    let https = free_port();
    let (address, most) = (format!("127.0.0.1:{https}"), CONNECTIONS.to_string());
    let mut all = vec![folder, "--tls-self-signed", "--https", &address, "--max-connections", &most];
    all.extend(["--idle-timeout", "2s", "--write-timeout", "2s", "--request-timeout", "2s"]);
    all.extend(args);
    let server = Server::start(&all);
    wait_for_port(https, &server.log);
    // Connections of the waiting above may not be counted out yet.
    fresh_clients(&server, Instant::now() + BOUND);
    let began = Instant::now();
    while server.metric("millpond_connections", "") > 0.0 {
        assert!(began.elapsed() < BOUND, "connections that nobody has: {}", server.log_text());
        thread::sleep(Duration::from_millis(20));
    }
    let mut slow: Vec<Client> = (0..CONNECTIONS).map(|_| begin(protocol, slowness, server.port, https)).collect();
    let deadline = Instant::now() + BOUND;
    fresh_clients(&server, deadline);
    for client in &mut slow {
        if slowness != Unread {
            assert!(client.closes_by(deadline), "{protocol:?} {slowness:?}: open after {BOUND:?}");
        }
    }
}

/// Waits until the server serves as many connections at once as it may have.
fn fresh_clients(server: &Server, deadline: Instant) {
    loop {
        let clients: Vec<Option<TcpStream>> = (0..CONNECTIONS).map(|_| fresh_client(server.port)).collect();
        if clients.iter().all(Option::is_some) {
            return;
        }
        assert!(Instant::now() < deadline, "slow clients hold connections after {BOUND:?}");
        drop(clients);
        thread::sleep(Duration::from_millis(200));
    }
}

fn fresh_client(port: u16) -> Option<TcpStream> {
    use std::io::Read as _;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(BOUND)).unwrap();
    stream.write_all(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
    let mut first = [0; 12];
    stream.read_exact(&mut first).ok()?;
    (&first == b"HTTP/1.1 200").then_some(stream)
}

fn begin(protocol: Protocol, slowness: Slowness, port: u16, https: u16) -> Client {
    let mut client = match protocol {
        Http1 | H2c => Client::plain(port),
        TlsHttp1 => Client::tls(https, "http/1.1").unwrap(),
        TlsHttp2 => Client::tls(https, "h2").unwrap(),
        Handshake => Client::plain(https),
    };
    match protocol {
        Http1 | TlsHttp1 => client.write_all(http1(slowness)).unwrap(),
        Handshake if slowness == HalfHead => client.write_all(b"\x16\x03\x01\x01\x00\x01").unwrap(),
        Handshake => {}
        TlsHttp2 | H2c => client.write_all(&http2(slowness)).unwrap(),
    }
    client.flush().unwrap();
    if let Window(size) = slowness {
        stream_is_reset(&mut client, size);
    }
    client
}

fn http1(slowness: Slowness) -> &'static [u8] {
    match slowness {
        HalfHead => b"GET /big.bin HTTP/1.1\r\nHos",
        Unread => b"GET /big.bin HTTP/1.1\r\nHost: x\r\n\r\n",
        Served => b"GET /.millpond/time HTTP/1.1\r\nHost: x\r\n\r\n",
        Idle | Window(_) => b"",
    }
}

fn http2(slowness: Slowness) -> Vec<u8> {
    let (window, path) = match slowness {
        Idle => return frames::hello(65_535),
        // Fields go on in a CONTINUATION that never comes.
        HalfHead => {
            let half = frames::frame(frames::HEADERS, 0x1, 1, &frames::fields(&[(":method", "GET")]));
            return [frames::hello(65_535), half].concat();
        }
        Unread => (0x7fff_ffff, "/big.bin"),
        Window(size) => (size, "/big.bin"),
        Served => (65_535, "/.millpond/time"),
    };
    [frames::hello(window), frames::get(1, path)].concat()
}

/// A client that grants no more than its first window sees its stream reset.
fn stream_is_reset(client: &mut Client, window: u32) {
    let mut bytes = 0;
    loop {
        match frames::read(client) {
            Ok((frames::DATA, _, 1, payload)) => bytes += payload.len(),
            Ok((frames::RST_STREAM, _, 1, _)) => break,
            Ok(_) => {}
            Err(error) => panic!("window {window}: {error}"),
        }
    }
    assert_eq!(bytes, window as usize, "as many bytes as were granted");
}
