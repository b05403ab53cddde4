//! Streams that are pushed by HTTP: what viewers get of them, who may push, and what becomes of bad publishers.

use crate::{
    live::publish::{CLIP, assert_of_clip, end, hashes, reader, serve, until_published},
    support::{Response, Running, Server, clips, read_response},
};
use std::{
    io::{BufReader, Write as _},
    net::TcpStream,
    process::{Command, Stdio},
    time::Duration,
};

/// The arguments of ffmpeg for formats that are pushed.
const TRANSPORT: &[&str] = &["-f", "mpegts"];
const FRAGMENTS: &[&str] = &["-f", "mp4", "-movflags", "frag_keyframe+empty_moov+default_base_moof"];

/// Fragments of half a second: those of sound alone have no pictures to begin with.
const TRACK: &[&str] = &["-f", "mp4", "-movflags", "empty_moov+default_base_moof", "-frag_duration", "500000"];

/// Pushes tracks of a clip round and round.
fn push(format: &[&str], map: &[&str], method: &str, url: &str) -> Running {
    let path = clips::folder().join(CLIP);
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-re", "-stream_loop", "-1", "-i"]).arg(path).args(map);
    command.args(["-c", "copy"]).args(format).args(["-method", method, url]);
    Running(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
}

/// The URL of a path, with a user before the host.
fn url(server: &Server, user: &str, path: &str) -> String {
    format!("http://{user}127.0.0.1:{}/{path}", server.port)
}

/// A request that has sent its head, and then some bytes of its body.
fn begin(server: &Server, path: &str, fields: &str, body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "PUT /{path} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n{fields}\r\n").unwrap();
    if !body.is_empty() {
        write!(stream, "{:x}\r\n", body.len()).unwrap();
        stream.write_all(body).unwrap();
        stream.write_all(b"\r\n").unwrap();
    }
    stream
}

fn finish(mut stream: TcpStream) -> Response {
    let _ = stream.write_all(b"0\r\n\r\n");
    read_response(&mut BufReader::new(stream), false)
}

/// The reply to a body, and the words of its problem.
fn put(server: &Server, path: &str, body: &[u8]) -> (u16, String) {
    let response = finish(begin(server, path, "", body));
    (response.status, response.text())
}

#[test]
fn every_picture_that_is_pushed_reaches_viewers() {
    clips::folder();
    for (format, method) in [(TRANSPORT, "PUT"), (FRAGMENTS, "POST")] {
        let server = serve(&[]);
        let by_rtsp = format!("rtsp://127.0.0.1:{}/live/cam", server.rtsp);
        // The first viewer comes before the publisher.
        let early = reader(&["-rtsp_transport", "tcp", "-i", &by_rtsp], "0:v", 100);
        let _publisher = push(format, &["-map", "0:v:0", "-map", "0:a:0"], method, &url(&server, "", "live/cam"));
        assert_of_clip(&hashes(early), 100);
        let by_http = reader(&["-i", &server.url("live/cam/stream.mp4")], "0:v", 100);
        assert_of_clip(&hashes(by_http), 100);
    }
}

#[test]
fn tracks_that_are_pushed_on_their_own_join_one_stream() {
    let server = serve(&[]);
    let by_rtsp = format!("rtsp://127.0.0.1:{}/live/cam", server.rtsp);
    let early = reader(&["-rtsp_transport", "tcp", "-i", &by_rtsp], "0:v", 100);
    let track =
        |map, name: &str| push(TRACK, &["-map", map], "POST", &url(&server, "", &format!("live/cam/Streams({name})")));
    let _publishers = [track("0:v:0", "video.cmfv"), track("0:a:0", "audio.cmfa")];
    assert_of_clip(&hashes(early), 100);
    // A second of sound.
    let sound = reader(&["-t", "1", "-i", &server.url("live/cam/stream.mp4")], "0:a", 1);
    assert!(hashes(sound).len() > 20);
    let (status, words) = put(&server, "live/cam/Streams(video.cmfv)", b"\0\0\0\x08ftyp");
    assert!(status == 409 && words.contains("video.cmfv"), "{status} {words}");
}

#[test]
fn publishers_have_passwords_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    std::fs::write(&users, "ann:pass\n").unwrap();
    let server = serve(&["--publish-users", users.to_str().unwrap()]);
    // ann:guess
    for field in ["", "Authorization: Basic YW5uOmd1ZXNz\r\n"] {
        let refused = finish(begin(&server, "live/cam", field, b""));
        let schemes: Vec<_> =
            refused.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("www-authenticate")).collect();
        assert_eq!((refused.status, schemes.len()), (401, 3), "{schemes:?}");
    }
    // ann:pass
    let admitted = finish(begin(&server, "live/cam", "Authorization: Basic YW5uOnBhc3M=\r\n", b"none"));
    assert_eq!(admitted.status, 415);
    for user in ["", "ann:guess@"] {
        let said = end(push(TRANSPORT, &[], "PUT", &url(&server, user, "live/cam")));
        assert!(!said.is_empty());
    }
    let _publisher = push(TRANSPORT, &[], "PUT", &url(&server, "ann:pass@", "live/cam"));
    until_published(&server, "live/cam");
}

#[test]
fn publishers_come_and_go() {
    let server = serve(&[]);
    let to = url(&server, "", "live/cam");
    let first = push(TRANSPORT, &[], "PUT", &to);
    until_published(&server, "live/cam");
    let (status, words) = put(&server, "live/cam", b"");
    assert!(status == 409 && words.contains("another publisher"), "{status} {words}");
    let by_rtsp = format!("rtsp://127.0.0.1:{}/live/cam", server.rtsp);
    let viewer = reader(&["-rtsp_transport", "tcp", "-i", &by_rtsp], "0:v", 200);
    std::thread::sleep(Duration::from_secs(2));
    drop(first);
    let _second = push(FRAGMENTS, &[], "PUT", &to);
    assert_eq!(hashes(viewer).len(), 200, "the viewer stays");
}

#[test]
fn bad_publishers_are_refused() {
    let files = format!("films={}", clips::folder().display());
    let server = serve(&[&files, "--source-timeout", "2s"]);
    let refused = |path: &str, body: &[u8], status: u16, word: &str| {
        let (found, words) = put(&server, path, body);
        assert!(found == status && words.contains(word), "{path}: {found} {words}");
    };
    refused("films/x", b"", 405, "PUT");
    refused("live", b"", 404, "");
    refused("live/.git", b"", 400, "");
    refused("live/cam", b"", 415, "no bytes");
    refused("live/cam", b"GIF89a, and more", 415, "GIF89a");
    let broken = [&b"\0\0\0\x10ftypiso60000"[..], b"\0\0\0\x02moof and more"].concat();
    refused("live/cam", &broken, 400, "byte 16");
    refused("live/cam", b"\0\0\0\x10ftypiso60000\0\0\0\x08moof", 400, "before any movie box");
    let coded = finish(begin(&server, "live/cam", "Content-Encoding: gzip\r\n", b"x"));
    assert_eq!(coded.status, 415);
    assert_eq!(finish(begin(&server, "live/cam", "Origin: http://h\r\n", b"x")).status, 403);
    let mut chunks = begin(&server, "live/cam", "", b"");
    chunks.write_all(b"no size\r\n").unwrap();
    assert_eq!(finish(chunks).status, 400);
    // A sender that stops, and the name that it leaves.
    for body in [&b""[..], b"\0\0\0\x10ftypiso60000"] {
        let stalled = begin(&server, "live/cam", "", body);
        let reply = read_response(&mut BufReader::new(stalled), false);
        assert!(reply.status == 408 && reply.text().contains("2 s"), "{} {}", reply.status, reply.text());
    }
    let _publisher = push(TRANSPORT, &[], "PUT", &url(&server, "", "live/cam"));
    until_published(&server, "live/cam");
}
