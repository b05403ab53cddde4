//! Storage that refuses, lies or goes away: each has a name, a status and a line in the log.

use crate::support::{self, Server, clips, origins};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
};

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

/// A proxy that everything but the loopback goes through: it notes what is asked of it, and has nothing.
fn proxy() -> (String, std::sync::Arc<std::sync::Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = std::sync::Arc::<std::sync::Mutex<Vec<String>>>::default();
    let notes = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut line = String::new();
            let _ = BufReader::new(stream.try_clone().unwrap()).read_line(&mut line);
            notes.lock().unwrap().push(line);
            let _ = (&stream).write_all(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    (url, asked)
}

#[test]
fn a_bucket_without_keys_asks_no_metadata_service() {
    let denied = b"HTTP/1.1 403 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let endpoint = format!("http://127.0.0.1:{}", answer_with(denied));
    let home = tempfile::tempdir().unwrap();
    for instance in [false, true] {
        let (proxy, asked) = proxy();
        let config = home.path().join("millpond.toml");
        let credentials = if instance { "instance" } else { "auto" };
        let text =
            format!("[places.b]\nurl = \"s3://bucket\"\nendpoint = \"{endpoint}\"\ncredentials = \"{credentials}\"\n");
        std::fs::write(&config, text).unwrap();
        let env = [
            ("HTTP_PROXY", proxy.as_str()),
            ("http_proxy", proxy.as_str()),
            ("NO_PROXY", "127.0.0.1"),
            ("no_proxy", "127.0.0.1"),
            ("HOME", home.path().to_str().unwrap()),
        ];
        let server = Server::start_with(&["--config", config.to_str().unwrap()], &env);
        assert!(matches!(server.get("b/a.mp4/index.m3u8").status, 403 | 502));
        let asked = asked.lock().unwrap().iter().any(|line| line.contains("169.254.169.254"));
        assert_eq!(asked, instance);
        let hinted = server.log_text().contains("AWS_ACCESS_KEY_ID");
        assert_eq!(hinted, !instance, "{}", server.log_text());
    }
}
