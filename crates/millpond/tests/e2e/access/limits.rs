//! Limits of clients and tokens, revoked and expired tokens, and pages of other sites (CORS).

use crate::{
    access::tokens::{LIST, RTSP_CLIP, comes, file, hang_up, made, now, serve},
    operations::metrics::{By, watch::Watch},
    support::{self, Response, Server, rtsp::Client},
};
use serde_json::json;
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

const OVER_TCP: &str = "RTP/AVP/TCP;unicast;interleaved=0-1";

fn with(server: &Server, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
    support::request(server.port, method, &format!("/{path}"), headers)
}

/// Statuses of requests until one is refused, and that reply.
fn until_refused(mut ask: impl FnMut() -> Response) -> (usize, Response) {
    for count in 0..1000 {
        let reply = ask();
        if reply.status == 429 {
            return (count, reply);
        }
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    panic!("no limit");
}

#[test]
fn requests_over_the_rate_of_a_client_wait() {
    let limits = ["--client-requests", "1", "--client-burst", "20", "--trusted-proxies", "127.0.0.1"];
    let (server, _config) = serve("", &limits);
    let open = LIST.replace("closed", "open");
    let from = |address: &str| with(&server, "GET", &open, &[("X-Forwarded-For", address)]);
    let (count, reply) = until_refused(|| from("192.0.2.7"));
    assert!(count >= 20, "{count}");
    let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=2).contains(&wait) && reply.text().contains("client-requests"), "{}", reply.text());
    assert_eq!(reply.header("access-control-allow-origin"), Some("*"), "pages read why");
    // Another client, another /64, and the same /64.
    assert_eq!(from("192.0.2.8").status, 200);
    // A few seconds may pass on a busy machine, in each of which one request more is admitted.
    let is_empty = |count: usize| assert!(count < 15, "{count}");
    assert!(until_refused(|| from("2001:db8::1")).0 >= 20);
    is_empty(until_refused(|| from("2001:db8::2")).0);
    assert_eq!(from("2001:db8:0:1::2").status, 200);
    // Addresses that a client itself wrote into X-Forwarded-For are ignored.
    is_empty(until_refused(|| from("203.0.113.1, 2001:db8::3")).0);
    // RTSP has the same bucket as HTTP, and a client may always end its session.
    let mut client = Client::new(&server, &format!("open/{RTSP_CLIP}"));
    let refused = (0..1000).map(|_| client.ask("OPTIONS", "", "")).find(|reply| reply.status != 200).unwrap();
    assert_eq!(refused.status, 503);
    assert!(refused.headers.contains_key("retry-after"));
    is_empty(until_refused(|| with(&server, "GET", &open, &[])).0);
    assert_eq!(client.ask("TEARDOWN", "", "Session: 1\r\n").status, 454);
    assert!(server.metric("millpond_access_limited_total", "limit=\"client-requests\"") >= 4.0);
}

/// A header field with a Digest answer of a wrong password.
fn wrong_answer(url: &str) -> String {
    format!(
        "Authorization: Digest username=\"ann\", realm=\"millpond\", nonce=\"n\", uri=\"{url}\", response=\"{}\"\r\n",
        "0".repeat(32)
    )
}

#[test]
fn a_client_that_guesses_passwords_waits() {
    let (_folder, users) = file(b"ann:pass\nbob:word\n");
    let (server, _config) = serve(&format!("access-users = \"{users}\""), &["--trusted-proxies", "127.0.0.1"]);
    let ask = |address: &str, credentials: &str| {
        let basic = format!("Basic {credentials}");
        let headers = [("X-Forwarded-For", address), ("X-Forwarded-Proto", "https"), ("Authorization", &basic)];
        with(&server, "GET", LIST, &headers)
    };
    // "ann:guess", "ann:pass" and "bob:word".
    let [wrong, right, other] = ["YW5uOmd1ZXNz", "YW5uOnBhc3M=", "Ym9iOndvcmQ="];
    let guess = || (0..1000).map(|_| ask("192.0.2.7", wrong)).take_while(|reply| reply.status == 401).count();
    // A busy machine gives time for some more.
    assert!((10..15).contains(&guess()));
    let refused = (0..5).map(|_| (guess(), ask("192.0.2.7", right)).1).find(|reply| reply.status == 429).unwrap();
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=6).contains(&wait), "{refused:?}");
    assert!(refused.text().contains("too many wrong passwords"), "{}", refused.text());
    assert_eq!(ask("192.0.2.7", other).status, 200, "another user of the same address");
    assert_eq!(ask("192.0.2.8", right).status, 200, "the same user of another address");
    for _ in 0..3 {
        (0..9).for_each(|_| assert_eq!(ask("192.0.2.9", wrong).status, 401));
        assert_eq!(ask("192.0.2.9", right).status, 200, "it begins the count anew");
    }
    // By RTSP from this machine: the connection ends after eight, the count goes on with the next one.
    let guess_by_rtsp = |count: usize| {
        let mut client = Client::new(&server, &format!("closed/{RTSP_CLIP}"));
        let url = client.url.clone();
        (0..count).map(|_| client.ask("DESCRIBE", "", &wrong_answer(&url)).status).last().unwrap()
    };
    assert_eq!((guess_by_rtsp(7), guess_by_rtsp(3)), (401, 401));
    let last = (0..5).map(|_| guess_by_rtsp(1)).find(|status| *status != 401);
    assert_eq!(last, Some(503));
    assert!(server.metric("millpond_access_refusals_total", "why=\"guesses\"") >= 2.0);
}

#[test]
fn what_a_client_and_a_token_have_open_is_bounded() {
    let (_secret, key) = file(crate::access::tokens::SECRET.as_bytes());
    let limits = ["--client-connections", "16", "--token-streams", "2"];
    let (server, _config) = serve(&format!("access-tokens = \"{key}\""), &limits);
    let watch = Watch::begin(&server);
    let token = |name: &str| made(&json!({ "exp": now() + 600, "jti": name }));
    let (ann, bob) = (token("ann"), token("bob"));
    let session = |token: &str| {
        let mut client = Client::new(&server, &format!("~{token}/closed/{RTSP_CLIP}"));
        let status = client.set_up("v1", OVER_TCP).status;
        (client, status)
    };
    let (first, second) = (session(&ann), session(&ann));
    assert_eq!((first.1, second.1, session(&ann).1), (200, 200, 453));
    assert_eq!(server.get(&format!("~{ann}/{LIST}")).status, 429, "by HTTP too");
    let third = session(&bob);
    assert_eq!((third.1, server.get(&format!("~{bob}/{LIST}")).status), (200, 200));
    drop(second);
    comes("a place", &server, || session(&ann).1 == 200);
    drop((first, third));
    // Connections of HTTP and RTSP are counted together.
    let connect = |port| TcpStream::connect(("127.0.0.1", port)).unwrap();
    comes("the refusal", &server, || {
        let held = [server.port, server.rtsp].map(connect);
        let more: Vec<_> = (0..14).map(|_| connect(server.port)).collect();
        let mut last = BufReader::new(connect(server.port));
        last.get_ref().set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut line = String::new();
        let _ = last.read_line(&mut line);
        drop((held, more));
        line.starts_with("HTTP/1.1 429 ")
    });
    comes("a free place", &server, || {
        let mut stream = connect(server.port);
        let _ = write!(stream, "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text.starts_with("HTTP/1.1 404")
    });
    watch.end(By::AccessLimits, &server);
}

#[test]
fn streams_end_with_their_tokens() {
    let (_secret, key) = file(crate::access::tokens::SECRET.as_bytes());
    let (_list, revoked) = file(b"# none\n");
    let rules = format!("access-tokens = \"{key}\"\naccess-revoked = \"{revoked}\"");
    let channel = format!("closed/{RTSP_CLIP}");
    let (mut server, _config) = serve(&rules, &["--rtsp-channels", &channel]);
    let long = made(&json!({ "exp": now() + 600, "jti": "lost" }));
    let short = made(&json!({ "exp": now() + 15 }));
    // A stream in one response without an end, and two sessions.
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let session = |server: &Server, token: &str| {
        let mut client = Client::new(server, &format!("~{token}/closed/{RTSP_CLIP}"));
        assert_eq!(client.set_up("v1", OVER_TCP).status, 200);
        assert_eq!(client.ask("PLAY", "", "Scale: 1\r\n").status, 200);
        client
    };
    let mut sessions = [session(&server, &short), session(&server, &long)];
    write!(stream, "GET /~{short}/{channel}/stream.mp4 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // The connection ends with the session.
    let ended = |client: &mut Client| {
        let text = format!("GET_PARAMETER rtsp://127.0.0.1/{channel} RTSP/1.0\r\nCSeq: 99\r\n\r\n");
        client.stream.get_mut().write_all(text.as_bytes()).is_err() || client.reply().is_none()
    };
    comes("the end of the session", &server, || ended(&mut sessions[0]));
    assert!(!ended(&mut sessions[1]));
    let mut received = Vec::new();
    let _ = stream.read_to_end(&mut received);
    assert!(received.starts_with(b"HTTP/1.1 200 ") && received.len() > 10_000 && !received.ends_with(b"0\r\n\r\n"));
    comes("the log", &server, || server.log_text().matches("expired").count() >= 2);
    assert_eq!(server.get(&format!("~{long}/{LIST}")).status, 200);
    std::fs::write(&revoked, "lost\n").unwrap();
    hang_up(&mut server);
    comes("the refusal", &server, || server.get(&format!("~{long}/{LIST}")).status == 401);
    comes("the end of the other session", &server, || ended(&mut sessions[1]));
}

#[test]
fn pages_of_listed_origins_may_play() {
    let (_folder, users) = file(b"ann:pass\n");
    let rules =
        format!("access-users = \"{users}\"\ncors-origins = [\"https://a.example\", \"http://b.example:8080\"]");
    let (server, _config) = serve(&rules, &[]);
    let open = LIST.replace("closed", "open");
    let allowed = |reply: &Response| reply.header("access-control-allow-origin").map(str::to_owned);
    for (path, origin, expected) in [
        (LIST, "https://a.example", Some("https://a.example")),
        (LIST, "http://b.example:8080", Some("http://b.example:8080")),
        (LIST, "http://a.example", None),
        (LIST, "https://a.example.evil.example", None),
        (LIST, "https://evil.example", None),
        (LIST, "null", None),
        (&open, "https://evil.example", Some("*")),
    ] {
        // Errors (401), and preflights, which have no credentials.
        for (method, status) in [("GET", if path == LIST { 401 } else { 200 }), ("OPTIONS", 204), ("BREW", 501)] {
            let reply = with(&server, method, path, &[("Origin", origin), ("Access-Control-Request-Method", "GET")]);
            assert_eq!((reply.status, allowed(&reply).as_deref()), (status, expected), "{method} {path} {origin}");
            let varies = reply.headers.iter().any(|(name, value)| name == "vary" && value.contains("Origin"));
            assert_eq!(varies, path == LIST, "{method} {path}");
            assert_eq!(reply.header("access-control-allow-credentials").is_some(), path == LIST && expected.is_some());
        }
    }
    let preflight = with(&server, "OPTIONS", LIST, &[("Origin", "https://a.example")]);
    let fields = preflight.header("access-control-allow-headers").unwrap();
    assert!(["Authorization", "Range", "CMCD-Request"].iter().all(|name| fields.contains(name)), "{fields}");
    let admitted =
        with(&server, "GET", LIST, &[("Origin", "https://a.example"), ("Authorization", "Basic YW5uOnBhc3M=")]);
    assert_eq!((admitted.status, allowed(&admitted).as_deref()), (200, Some("https://a.example")));
}
