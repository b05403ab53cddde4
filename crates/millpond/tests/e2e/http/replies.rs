//! Heads of replies: codings of texts, and statuses of what fails before its first byte.

use crate::support::{self, Response, Server, clips, get, origins, read_response, request};
use std::{
    collections::HashSet,
    io::{BufReader, Read as _, Write as _},
    net::TcpStream,
    process::Command,
};

/// Texts of the bundled sample and of the page.
const TEXTS: [&str; 9] = [
    "/sample/index.m3u8",
    "/sample/ts/index.m3u8",
    "/sample/v1/index.m3u8",
    "/sample/v1/iframes.m3u8",
    "/sample/index.mpd",
    "/sample/s1/all.vtt",
    "/",
    "/.millpond/player.js",
    "/.millpond/player.css",
];
const CODINGS: [&str; 2] = ["br", "gzip"];

fn decoded(reply: &Response) -> Vec<u8> {
    let mut out = Vec::new();
    match reply.header("content-encoding") {
        Some("br") => drop(brotli::Decompressor::new(&*reply.body, 4096).read_to_end(&mut out).unwrap()),
        Some("gzip") => drop(flate2::read::GzDecoder::new(&*reply.body).read_to_end(&mut out).unwrap()),
        Some(other) => panic!("coding {other}"),
        None => out.clone_from(&reply.body),
    }
    out
}

#[test]
fn texts_go_out_in_the_coding_that_the_client_prefers() {
    let server = Server::start(&[]);
    for path in TEXTS {
        let plain = server.get(path.trim_start_matches('/'));
        assert_eq!((plain.status, plain.header("content-encoding")), (200, None), "{path}");
        let mut tags = HashSet::from([plain.header("etag").unwrap().to_owned()]);
        for coding in CODINGS {
            let accept = ("Accept-Encoding", format!("{coding}, *;q=0.1"));
            let accept = (accept.0, accept.1.as_str());
            // The second is taken from memory.
            for _ in 0..2 {
                let reply = get(server.port, path, &[accept]);
                assert_eq!((reply.status, reply.header("content-encoding")), (200, Some(coding)), "{path}");
                assert!(reply.body.len() < plain.body.len(), "{path} {coding}: {}", reply.body.len());
                assert!(decoded(&reply) == plain.body, "{path} {coding}");
                assert_eq!(reply.header("vary"), Some("accept-encoding"), "{path} {coding}");
                assert_eq!(reply.header("content-type"), plain.header("content-type"), "{path} {coding}");
                tags.insert(reply.header("etag").unwrap().to_owned());
                let head = request(server.port, "HEAD", path, &[accept]);
                for name in ["content-encoding", "content-length", "etag", "vary"] {
                    assert_eq!(head.header(name), reply.header(name), "{path} {coding} {name}");
                }
                let again = get(server.port, path, &[accept, ("If-None-Match", reply.header("etag").unwrap())]);
                assert_eq!((again.status, again.header("etag")), (304, reply.header("etag")), "{path} {coding}");
                assert_eq!(again.header("vary"), Some("accept-encoding"), "{path} {coding}");
                let other = get(server.port, path, &[accept, ("If-None-Match", plain.header("etag").unwrap())]);
                assert_eq!(other.status, 200, "{path} {coding}: another coding's tag");
            }
            let part = get(server.port, path, &[accept, ("Range", "bytes=3-9")]);
            assert_eq!((part.status, part.header("content-encoding")), (206, None), "{path} {coding}");
            assert_eq!((&*part.body, part.header("etag")), (&plain.body[3..10], plain.header("etag")), "{path}");
            let refused = get(server.port, path, &[("Accept-Encoding", &format!("{coding};q=0"))]);
            assert!(refused.body == plain.body && refused.header("content-encoding").is_none(), "{path} {coding}");
        }
        assert_eq!(tags.len(), 3, "{path}: {tags:?}");
        assert_eq!(plain.header("vary"), Some("accept-encoding"), "{path}");
    }
    for path in ["/sample/v1/1.m4s", "/sample/ts/v1/1.ts", "/sample/v1/init.mp4", "/sample/360p.mp4", "/sample/deu.vtt"]
    {
        let reply = get(server.port, path, &[("Accept-Encoding", "gzip, br, zstd")]);
        assert_eq!((reply.status, reply.header("content-encoding")), (200, None), "{path}");
        assert_eq!(reply.header("vary"), None, "{path}");
    }
}

#[test]
fn a_cache_behind_keeps_each_coding() {
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::copy(clips::folder().join("h264_aac.mp4"), folder.path().join("a.mp4")).unwrap();
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    let Some((_cdn, port)) = origins::cdn(server.port, scratch.path()) else { return };
    let plain = server.get("a.mp4/index.mpd");
    for (accept, cached) in [("gzip", "MISS"), ("br", "MISS"), ("identity", "MISS"), ("gzip", "HIT"), ("br", "HIT")] {
        let reply = get(port, "/a.mp4/index.mpd", &[("Accept-Encoding", accept)]);
        let expected = Some(accept).filter(|coding| *coding != "identity");
        assert_eq!((reply.header("content-encoding"), reply.header("x-cache")), (expected, Some(cached)), "{accept}");
        assert!(decoded(&reply) == plain.body, "{accept}");
    }
}

#[test]
fn storage_that_fails_before_the_first_byte_is_a_bad_gateway() {
    if !support::have("ffmpeg") {
        return;
    }
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // Its last segments lie far behind what is read with the index.
    let picture = "-f lavfi -i testsrc2=size=640x360:rate=25:duration=20,noise=alls=40:allf=t";
    clips::make(
        &folder.path().join("a.mp4"),
        &format!("{picture} -c:v libx264 -preset ultrafast -g 100 -movflags +faststart"),
    );
    let Some((origin, port)) = origins::nginx(folder.path(), scratch.path(), "") else { return };
    let server = Server::start(&[&format!("http://127.0.0.1:{port}"), "--prefetch", "on-demand"]);
    assert_eq!(server.get("a.mp4/v1/index.m3u8").status, 200);
    drop(origin);
    for path in ["a.mp4/v1/5.m4s", "a.mp4/ts/v1/5.ts"] {
        let reply = server.get(path);
        assert_eq!((reply.status, reply.header("content-type")), (502, Some("application/problem+json")), "{path}");
    }
    let part = get(server.port, "/a.mp4", &[("Range", "bytes=-100")]);
    assert_eq!((part.status, part.header("content-range")), (502, None));
    let path = "a.mp4/ts/v1/5.ts";
    let mut reader = BufReader::new(TcpStream::connect(("127.0.0.1", server.port)).unwrap());
    // The connection stays open: the reply is complete.
    for _ in 0..4 {
        write!(reader.get_mut(), "GET /{path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let reply = read_response(&mut reader, false);
        assert_eq!((reply.status, reply.header("content-type")), (502, Some("application/problem+json")));
        let problem: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(problem["status"], 502, "{problem}");
        assert_eq!(problem["asset"], path, "{problem}");
        assert_eq!(problem["request-id"].as_str(), reply.header("x-request-id"));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
        assert_eq!(reply.header("etag"), None);
    }
    assert_eq!(server.metric("millpond_responses_broken_total", ""), 0.0);
    if support::have("curl") {
        let url = server.url(path);
        let args = ["-sS", "--http2-prior-knowledge", "-o", "/dev/null", "-w", "%{http_code} %{content_type}", &url];
        let curl = Command::new("curl").args(args).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&curl.stdout), "502 application/problem+json");
    }
}
