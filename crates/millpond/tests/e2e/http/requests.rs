//! HTTP as clients meet it: ranges, conditions, errors, keep-alive, HTTP/2, TLS, a graceful stop.

use crate::support::{
    self, Server, clips, get,
    origins::{self, Kind, Stack},
    read_response, request,
};
use std::{
    io::{BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

over_every_storage! {
    every_uri_of_every_playlist_answers
    ranges_of_every_kind_of_body_are_parts_of_the_whole
    requests_share_a_connection_and_may_be_pipelined
    errors_are_problems_that_name_what_and_where
    a_changed_file_is_seen_and_an_asset_of_it_made_anew
    broken_files_are_refused_in_one_line_and_stop_nothing_else
    http2_and_tls_serve_the_same_bytes
    a_stop_finishes_the_response_under_way
}

/// A server of the bundled sample.
fn sample() -> Server {
    Server::start(&[])
}

/// The same sample from a storage.
fn sample_from(kind: Kind, args: &[&str]) -> Option<Stack> {
    origins::start(kind, &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets"), args)
}

#[test]
fn the_sample_plays_with_no_configuration() {
    let server = sample();
    let playlist = server.get("sample/index.m3u8");
    assert_eq!(playlist.status, 200);
    assert_eq!(playlist.header("content-type"), Some("application/vnd.apple.mpegurl"));
    let text = playlist.text();
    assert_eq!(text.matches("#EXT-X-STREAM-INF").count(), 2, "{text}");
    assert!(
        text.contains("LANGUAGE=\"de\"") && text.contains("LANGUAGE=\"en\"") && text.contains("TYPE=SUBTITLES"),
        "{text}"
    );
    assert_eq!(server.get("sample/index.mpd").status, 200);
    assert_eq!(server.get("sample/ts/index.m3u8").status, 200);
    assert_eq!(server.get("").header("content-type"), Some("text/html; charset=utf-8"));
}

fn every_uri_of_every_playlist_answers(kind: Kind) {
    let Some(Stack { server, .. }) = &sample_from(kind, &[]) else { return };
    let mut seen = std::collections::HashSet::new();
    let mut queue = vec!["sample/index.m3u8".to_owned(), "sample/ts/index.m3u8".to_owned()];
    while let Some(path) = queue.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let reply = server.get(&path);
        assert_eq!(reply.status, 200, "{path}");
        assert!(!reply.body.is_empty(), "{path}");
        if !path.ends_with(".m3u8") {
            continue;
        }
        let folder = path.rsplit_once('/').unwrap().0.to_owned();
        for line in reply.text().lines() {
            let uri = if line.starts_with('#') {
                line.split_once("URI=\"").and_then(|(_, r)| r.split_once('"')).map(|(u, _)| u)
            } else {
                Some(line).filter(|l| !l.is_empty())
            };
            if let Some(uri) = uri {
                assert!(!uri.starts_with('/') && !uri.contains("://"), "not relative: {uri}");
                queue.push(resolve(&folder, uri));
            }
        }
    }
    assert!(seen.len() > 40, "{}", seen.len());
}

fn resolve(folder: &str, uri: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in uri.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn ranges_of_every_kind_of_body_are_parts_of_the_whole(kind: Kind) {
    let Some(Stack { server, .. }) = &sample_from(kind, &[]) else { return };
    for path in ["sample/360p.mp4", "sample/v1/1.m4s", "sample/ts/v2/2.ts", "sample/index.m3u8", "sample/s1/all.vtt"] {
        let whole = server.get(path);
        assert_eq!(whole.status, 200, "{path}");
        let len = whole.body.len();
        for (spec, part) in [
            ("bytes=0-0".to_owned(), 0..1),
            (format!("bytes={}-{}", len / 3, len / 2), len / 3..len / 2 + 1),
            ("bytes=-7".to_owned(), len - 7..len),
            (format!("bytes={}-", len - 1), len - 1..len),
        ] {
            let reply = get(server.port, &format!("/{path}"), &[("Range", &spec)]);
            assert_eq!(reply.status, 206, "{path} {spec}");
            assert_eq!(reply.header("content-range").unwrap(), format!("bytes {}-{}/{len}", part.start, part.end - 1));
            assert!(reply.body == whole.body[part.clone()], "{path} {spec}");
        }
        let behind = get(server.port, &format!("/{path}"), &[("Range", &format!("bytes={len}-"))]);
        assert_eq!(behind.status, 416, "{path}");
        let head = request(server.port, "HEAD", &format!("/{path}"), &[]);
        assert_eq!(head.header("content-length").unwrap(), len.to_string(), "{path}");
        let etag = whole.header("etag").unwrap();
        assert_eq!(get(server.port, &format!("/{path}"), &[("If-None-Match", etag)]).status, 304, "{path}");
        assert_eq!(get(server.port, &format!("/{path}"), &[("If-Match", "\"other\"")]).status, 412, "{path}");
        let stale = get(server.port, &format!("/{path}"), &[("Range", "bytes=0-0"), ("If-Range", "\"other\"")]);
        assert_eq!((stale.status, stale.body.len()), (200, len), "{path}");
        assert_eq!(whole.header("access-control-allow-origin"), Some("*"), "{path}");
        assert_eq!(whole.header("x-request-id").unwrap().len(), 16, "{path}");
    }
}

fn requests_share_a_connection_and_may_be_pipelined(kind: Kind) {
    let Some(Stack { server, .. }) = &sample_from(kind, &[]) else { return };
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let request = |path: &str| format!("GET /{path} HTTP/1.1\r\nHost: x\r\n\r\n");
    let paths = ["sample/v1/1.m4s", "sample/index.m3u8", "sample/ts/v1/1.ts", "nothing/here", "sample/v1/2.m4s"];
    let all: String = paths.iter().map(|p| request(p)).collect();
    stream.write_all(all.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    for path in paths {
        let reply = read_response(&mut reader, false);
        let alone = server.get(path);
        assert_eq!(reply.status, alone.status, "{path}");
        if reply.status == 200 {
            assert!(reply.body == alone.body, "{path}");
        }
    }
}

fn errors_are_problems_that_name_what_and_where(kind: Kind) {
    let Some(Stack { server, .. }) = &origins::start(kind, clips::folder(), &[]) else { return };
    for (target, status) in [
        ("/nothing.mp4", 404),
        ("/nothing.mp4/index.m3u8", 404),
        ("/h264_aac.mp4/v9/index.m3u8", 404),
        ("/h264_aac.mp4/v1/999.m4s", 404),
        ("/../../etc/passwd", 400),
        ("/%2e%2e/%2e%2e/etc/passwd", 400),
        ("/a%00b", 400),
        ("/vp9_opus.mp4/ts/index.m3u8", 422),
    ] {
        let reply = get(server.port, target, &[]);
        assert_eq!(reply.status, status, "{target}: {}", reply.text());
        assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{target}");
        let problem: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(problem["status"], status, "{target}");
        assert_eq!(problem["request-id"].as_str(), reply.header("x-request-id"), "{target}");
    }
    let refused = request(server.port, "POST", "/h264_aac.mp4", &[]);
    assert_eq!(refused.status, 405);
    assert_eq!(refused.header("allow"), Some("GET, HEAD, OPTIONS"));
    assert_eq!(request(server.port, "OPTIONS", "/h264_aac.mp4", &[]).status, 204);
}

#[test]
fn bytes_that_are_no_request_get_400_and_a_closed_connection() {
    let server = sample();
    for bytes in [&b"\x16\x03\x01\x00\x05hello\r\n\r\n"[..], b"GET / HTTP/1.1\r\n\r\n", b"GET /\r\n\r\n"] {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
        stream.write_all(bytes).unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).unwrap();
        assert!(reply.starts_with(b"HTTP/1.1 400 "), "{}", String::from_utf8_lossy(&reply));
    }
    let mut long = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let _ = long.write_all(format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(40_000)).as_bytes());
    let mut reply = String::new();
    let _ = long.read_to_string(&mut reply);
    assert!(reply.is_empty() || reply.starts_with("HTTP/1.1 431 "), "{reply}");
}

#[test]
fn a_silent_client_is_sent_away() {
    let server = Server::start(&["--request-timeout", "1s", "--idle-timeout", "1s"]);
    let started = Instant::now();
    let mut half = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    half.write_all(b"GET / HT").unwrap();
    let mut reply = String::new();
    half.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 408 "), "{reply}");
    let mut idle = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let mut nothing = Vec::new();
    idle.read_to_end(&mut nothing).unwrap();
    assert!(nothing.is_empty());
    assert!(started.elapsed() < Duration::from_secs(40));
}

fn a_changed_file_is_seen_and_an_asset_of_it_made_anew(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let Some(stack) = origins::start(kind, folder.path(), &[]) else { return };
    stack.put("a.mp4", &clips::folder().join("h264_aac.mp4"));
    let before = stack.server.get("a.mp4/index.m3u8");
    assert!(before.text().contains("avc1"), "{}", before.text());
    stack.put("a.mp4", &clips::folder().join("hevc_hvc1.mp4"));
    let after = within_freshness(|| {
        let after = stack.server.get("a.mp4/index.m3u8");
        (after.header("etag") != before.header("etag")).then_some(after)
    });
    assert!(after.text().contains("hvc1"), "{}", after.text());
    stack.remove("a.mp4");
    within_freshness(|| (stack.server.get("a.mp4/index.m3u8").status == 404).then_some(()));
}

/// Asks again until what was kept of a remote object is looked at anew, which takes ten seconds at most.
fn within_freshness<T>(mut probe: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(started.elapsed() < Duration::from_secs(40), "the change is not seen");
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn broken_files_are_refused_in_one_line_and_stop_nothing_else(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(clips::folder().join("h264_moov_first.mp4")).unwrap();
    std::fs::write(folder.path().join("cut.mp4"), &whole[..2000]).unwrap();
    std::fs::write(folder.path().join("empty.mp4"), b"").unwrap();
    std::fs::write(folder.path().join("text.mp4"), b"this is not a film, it only says so\n".repeat(100)).unwrap();
    std::fs::write(folder.path().join("good.mp4"), &whole).unwrap();
    std::fs::write(
        folder.path().join("bad.smil"),
        "<smil><body><switch><video src='../../etc/passwd'/></switch></body></smil>",
    )
    .unwrap();
    // Young ones might be copies that aren't finished.
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let file = std::fs::File::options().write(true).open(file.unwrap().path()).unwrap();
        file.set_modified(std::time::SystemTime::now() - Duration::from_secs(3600)).unwrap();
    }
    let Some(Stack { server, .. }) = &origins::start(kind, folder.path(), &[]) else { return };
    for name in ["cut.mp4", "empty.mp4", "text.mp4", "bad.smil"] {
        let reply = server.get(&format!("{name}/index.m3u8"));
        assert_eq!(reply.status, 422, "{name}: {}", reply.text());
        let problem: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(name) && !detail.contains('\n'), "{detail}");
    }
    assert_eq!(server.get("good.mp4/index.m3u8").status, 200);
}

fn http2_and_tls_serve_the_same_bytes(kind: Kind) {
    if !support::have("curl") {
        return;
    }
    let https = support::free_port();
    let args = ["--tls-self-signed", "--https", &format!("127.0.0.1:{https}")];
    let Some(Stack { server, .. }) = &sample_from(kind, &args) else { return };
    support::wait_for_port(https, &server.log);
    for path in ["sample/v2/2.m4s", "sample/ts/v1/1.ts", "sample/index.mpd", "sample/360p.mp4"] {
        let plain = server.get(path).body;
        for args in [
            vec!["--http2-prior-knowledge".to_owned(), server.url(path)],
            vec!["-k".to_owned(), "--http2".to_owned(), format!("https://localhost:{https}/{path}")],
            vec!["-k".to_owned(), "--http1.1".to_owned(), format!("https://localhost:{https}/{path}")],
        ] {
            let output = Command::new("curl").args(["-sS", "--fail"]).args(&args).output().unwrap();
            assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
            assert!(
                output.stdout == plain,
                "{args:?}: {} bytes, {} over plain HTTP/1.1",
                output.stdout.len(),
                plain.len()
            );
        }
    }
}

fn a_stop_finishes_the_response_under_way(kind: Kind) {
    let Some(mut stack) = sample_from(kind, &[]) else { return };
    let server = &mut stack.server;
    let whole = server.get("sample/360p.mp4").body;
    let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    // A small receive buffer, so that most of the response waits in the server.
    set_receive_buffer(&stream, 4096);
    let mut reader = BufReader::with_capacity(1024, stream.try_clone().unwrap());
    (&stream).write_all(b"GET /sample/360p.mp4 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut first = [0; 200];
    reader.read_exact(&mut first).unwrap();
    let pid = server.process.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    std::thread::sleep(Duration::from_millis(300));
    // The rest by such a small window would take half a minute.
    set_receive_buffer(&stream, 1 << 20);
    let mut rest = first.to_vec();
    reader.read_to_end(&mut rest).unwrap();
    let at = rest.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
    assert!(rest[at..] == whole[..], "{} of {} bytes", rest.len() - at, whole.len());
    let started = Instant::now();
    let status = loop {
        if let Some(status) = server.process.0.try_wait().unwrap() {
            break status;
        }
        assert!(started.elapsed() < Duration::from_secs(40), "still running");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(status.success(), "{status}");
}

fn set_receive_buffer(stream: &TcpStream, bytes: usize) {
    rustix::net::sockopt::set_socket_recv_buffer_size(stream, bytes).unwrap();
}
