//! Storage that refuses, lies or goes away: each has a name, a status and a line in the log.

mod support;

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
};
use support::{Server, clips, origins};

#[test]
fn a_wrong_secret_and_a_missing_bucket_are_told_apart() {
    let scratch = tempfile::tempdir().unwrap();
    let Some((_origin, port)) = origins::versitygw(clips::folder(), scratch.path()) else { return };
    let endpoint = format!("http://127.0.0.1:{port}");
    let serve = |place: &str, secret: &str| {
        let env = origins::credentials(&endpoint, secret);
        let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Server::start_with(&[place], &env)
    };
    let right = serve("s3://media", origins::SECRET);
    assert_eq!(right.get("h264_aac.mp4/index.m3u8").status, 200);
    assert_eq!(right.get("nothing.mp4/index.m3u8").status, 404);
    let wrong = serve("s3://media", "another-secret");
    let refused = wrong.get("h264_aac.mp4/index.m3u8");
    assert!(matches!(refused.status, 403 | 502), "{}", refused.status);
    assert!(!refused.text().contains(&endpoint), "{}", refused.text());
    assert!(wrong.log_text().contains("SignatureDoesNotMatch"), "{}", wrong.log_text());
    let missing = serve("s3://no-such-bucket", origins::SECRET);
    assert_eq!(missing.get("h264_aac.mp4/index.m3u8").status, 502);
    assert!(missing.log_text().contains("no-such-bucket"), "{}", missing.log_text());
}

/// A web server that answers every request with the same bytes.
fn answer_with(reply: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                line.clear();
            }
            let _ = (&stream).write_all(reply);
        }
    });
    port
}

#[test]
fn origins_that_lie_or_fail_have_a_status_each() {
    for (what, reply, status) in [
        ("no ranges", &b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\nConnection: close\r\n\r\nxx"[..], 502),
        ("an error", b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 502),
        ("overload", b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 503),
        ("refusal", b"HTTP/1.1 403 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 403),
        (
            "another host",
            b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/a.mp4\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            502,
        ),
    ] {
        let port = answer_with(reply);
        let server = Server::start(&[&format!("http://127.0.0.1:{port}")]);
        let answer = server.get("a.mp4/index.m3u8");
        assert_eq!(answer.status, status, "{what}: {}", answer.text());
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{what}");
    }
    let server = Server::start(&[&format!("http://127.0.0.1:{}", support::free_port())]);
    assert_eq!(server.get("a.mp4/index.m3u8").status, 502, "nobody listens");
    assert_eq!(support::get(server.admin, "/livez", &[]).status, 200);
    assert_eq!(support::get(server.admin, "/readyz", &[]).status, 503);
}
