//! Running streams by HTTP, each in one long response: equal to their source for ffmpeg, and released when nobody takes them.

use crate::support::{
    self, Server, clips, get, request,
    wire::{self, frames as h2},
};
use serde_json::Value;
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::Command,
    time::{Duration, Instant},
};

/// 9 seconds, 25 pictures a second, key frames two seconds apart, B-frames, AAC.
const CLIP: &str = "h264_aac.mp4";

fn serve(channels: &str, more: &[&str]) -> Server {
    Server::start(&[&[clips::folder().to_str().unwrap(), "--rtsp-channels", channels], more].concat())
}

fn kinds(server: &Server) -> Vec<String> {
    let graph: Value = support::api::api(server.admin, "graph");
    let modules = graph["modules"].as_array().unwrap();
    let mut kinds: Vec<String> = modules.iter().map(|module| module["kind"].as_str().unwrap().to_owned()).collect();
    kinds.sort();
    kinds
}

#[track_caller]
fn until_kinds(server: &Server, expected: &[&str]) {
    let began = Instant::now();
    while kinds(server) != expected {
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}, expected {expected:?}", kinds(server));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Hashes of the first decoded frames of a track.
fn hashes(input: &str, track: &str, count: usize) -> Vec<String> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-i", input, "-map", track, "-fps_mode", "passthrough"]);
    let frames = if track == "0:v" { "-frames:v" } else { "-frames:a" };
    if track == "0:a" {
        command.args(["-c", "copy"]);
    }
    let output = command.args([frames, &count.to_string(), "-f", "framemd5", "-"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{input}: {said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let hash = |line: &str| line.rsplit(',').next().unwrap().trim().to_owned();
    text.lines().filter(|line| !line.starts_with('#')).map(hash).collect()
}

/// Checks that frames are a part of a source that plays round and round. Returns the number of the first frame.
fn assert_part_of(received: &[String], source: &[String]) -> usize {
    let offset = source.iter().position(|hash| *hash == received[0]).expect("a frame of the source");
    let round: Vec<&String> = source.iter().cycle().skip(offset).take(received.len()).collect();
    let same = received.iter().zip(&round).take_while(|(a, b)| a == *b).count();
    assert_eq!(same, received.len(), "frames are equal up to there");
    offset
}

/// A connection that has sent a request for a path, and has read the head of its reply.
fn open(server: &Server, path: &str, version: &str, fields: &str) -> (BufReader<TcpStream>, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET {path} HTTP/{version}\r\nHost: localhost\r\n{fields}\r\n").unwrap();
    let (mut stream, mut head) = (BufReader::new(stream), String::new());
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "{head}");
    }
    (stream, head.to_ascii_lowercase())
}

/// The next chunk of the chunked coding; empty at the end.
fn chunk(stream: &mut BufReader<TcpStream>) -> Vec<u8> {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    let length = usize::from_str_radix(line.trim(), 16).unwrap_or_else(|_| panic!("{line:?}"));
    let mut bytes = vec![0; length + 2];
    stream.read_exact(&mut bytes).unwrap();
    bytes.truncate(length);
    bytes
}

fn is_start(bytes: &[u8]) -> bool {
    bytes.get(4..8) == Some(b"ftyp")
}

#[test]
fn a_long_response_has_the_frames_of_the_channel() {
    let server = serve(CLIP, &[]);
    let (url, path) = (server.url(&format!("{CLIP}/stream.mp4")), clips::folder().join(CLIP));
    let file = path.to_str().unwrap();
    // Into the second lap.
    let (pictures, source) = (hashes(&url, "0:v", 300), hashes(file, "0:v", 1000));
    assert_eq!(pictures.len(), 300);
    assert_eq!(assert_part_of(&pictures, &source) % 50, 0, "it begins with a key frame");
    let (sound, source) = (hashes(&url, "0:a", 200), hashes(file, "0:a", 1000));
    assert!(sound.len() == 200 && sound.iter().all(|hash| source.contains(hash)));
    until_kinds(&server, &[]);
    let sent = server.metric("millpond_http_response_bytes_total", "kind=\"stream\"");
    assert!(sent > 100_000.0, "{sent}");
    assert_eq!(server.metric("millpond_http_stream_viewers", ""), 0.0);
}

#[test]
fn codecs_and_orders_of_frames() {
    let names = ["h264_open_gop.mp4", "hevc_hvc1.mp4", "vp9_opus.mp4"];
    let server = serve(&names.join(","), &[]);
    for name in names {
        let source = hashes(clips::folder().join(name).to_str().unwrap(), "0:v", 1000);
        let received = hashes(&server.url(&format!("{name}/stream.mp4")), "0:v", 100);
        assert_part_of(&received, &source);
    }
}

#[test]
fn viewers_share_the_channel_and_release_it() {
    let server = serve(CLIP, &[]);
    let path = format!("/{CLIP}/stream.mp4");
    let (mut first, head) = open(&server, &path, "1.1", "Range: bytes=100-200\r\n");
    for field in [
        "http/1.1 200 ok",
        "cache-control: no-store",
        "accept-ranges: none",
        "transfer-encoding: chunked",
        "content-type: video/mp4; codecs=\"avc1.",
    ] {
        assert!(head.contains(field), "{field}: {head}");
    }
    for field in ["etag", "content-length", "last-modified"] {
        assert!(!head.contains(&format!("\n{field}:")), "{field}: {head}");
    }
    assert!(is_start(&chunk(&mut first)));
    let (mut second, head) = open(&server, &path, "1.0", "");
    assert!(head.contains("connection: close") && !head.contains("transfer-encoding"), "{head}");
    let mut start = [0; 8];
    second.read_exact(&mut start).unwrap();
    assert!(is_start(&start));
    assert_eq!(kinds(&server), ["channel", "loader", "viewing", "viewing"]);
    assert_eq!(server.metric("millpond_http_stream_viewers", ""), 2.0);
    // Bytes count while they are sent.
    chunk(&mut first);
    assert!(server.metric("millpond_http_response_bytes_total", "kind=\"stream\"") > 0.0);
    drop(second);
    until_kinds(&server, &["channel", "loader", "viewing"]);
    drop(first);
    until_kinds(&server, &[]);
    assert_eq!(server.metric("millpond_responses_unfinished_total", "client_left"), 2.0);
}

/// Reads chunks until there are `count` fragments and the beginning of another one, or of the first one's media where it is 0.
fn fragments(stream: &mut BufReader<TcpStream>, bytes: &mut Vec<u8>, count: usize) {
    let kind = if count == 0 { b"mdat" } else { b"moof" };
    while bytes.windows(4).filter(|four| four == kind).count() <= count {
        bytes.extend(chunk(stream));
    }
}

#[test]
fn a_key_frame_is_sent_before_the_next_picture_comes() {
    let folder = tempfile::tempdir().unwrap();
    clips::make(&folder.path().join("slow.mp4"), "V -r 1/3 -c:v libx264 -preset ultrafast -tune zerolatency -g 1");
    let server = Server::start(&[folder.path().to_str().unwrap(), "--rtsp-channels", "slow.mp4"]);
    let path = "/slow.mp4/stream.mp4";
    let (mut first, _) = open(&server, path, "1.1", "");
    // A picture is sent when the next one tells its duration: a third one has just come.
    let second = (0..5).find_map(|_| {
        fragments(&mut first, &mut Vec::new(), 1);
        let began = Instant::now();
        let ((mut second, _), mut bytes) = (open(&server, path, "1.1", ""), Vec::new());
        fragments(&mut second, &mut bytes, 0);
        (began.elapsed() < Duration::from_millis(1500)).then_some((second, bytes))
    });
    let (mut second, mut bytes) = second.expect("a key frame before the next picture, which is 3 s away");
    fragments(&mut second, &mut bytes, 3);
    let end = bytes.windows(4).rposition(|four| four == b"moof").unwrap() - 4;
    let file = folder.path().join("received.mp4");
    std::fs::write(&file, &bytes[..end]).unwrap();
    let mut command = Command::new("ffprobe");
    command.args(["-v", "error", "-show_entries", "packet=pts_time,dts_time", "-of", "csv=p=0"]).arg(&file);
    let times = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert_eq!(times.trim(), "0.000000,0.000000\n3.000000,3.000000\n6.000000,6.000000");
}

#[test]
fn a_stream_of_http2_that_is_reset_is_released() {
    let server = serve(CLIP, &[]);
    let mut client = wire::Client::plain(server.port);
    client.write_all(&h2::hello(1 << 20)).unwrap();
    client.write_all(&h2::get(1, &format!("/{CLIP}/stream.mp4"))).unwrap();
    let mut body = Vec::new();
    while body.len() < 20_000 {
        let (kind, flags, stream, payload) = h2::read(&mut client).unwrap();
        assert!(kind != h2::RST_STREAM && kind != h2::GOAWAY, "{}", server.log_text());
        if kind == h2::DATA && stream == 1 {
            assert_eq!(flags & 1, 0, "it has no end");
            body.extend(payload);
        }
    }
    assert!(is_start(&body));
    // Another request of the connection is answered meanwhile.
    client.write_all(&h2::get(3, &format!("/{CLIP}/index.m3u8"))).unwrap();
    while !matches!(h2::read(&mut client).unwrap(), (h2::DATA, flags, 3, _) if flags & 1 == 1) {}
    assert_eq!(kinds(&server), ["channel", "loader", "viewing"]);
    client.write_all(&h2::frame(h2::RST_STREAM, 0, 1, &8_u32.to_be_bytes())).unwrap();
    until_kinds(&server, &[]);
    client.write_all(&h2::get(5, &format!("/{CLIP}/stream.mp4"))).unwrap();
    until_kinds(&server, &["channel", "loader", "viewing"]);
    drop(client);
    until_kinds(&server, &[]);
}

#[test]
fn requests_without_media_start_nothing() {
    let server = serve(&format!("{CLIP},sowt.mov"), &[]);
    let head = request(server.port, "HEAD", &format!("/{CLIP}/stream.mp4"), &[]);
    assert_eq!(head.status, 200);
    assert!(head.header("content-type").unwrap().starts_with("video/mp4; codecs="));
    assert_eq!(head.header("content-length"), None);
    for (path, status) in [
        ("/h264_open_gop.mp4/stream.mp4", 404),
        ("/missing.mp4/stream.mp4", 404),
        ("/stream.mp4", 404),
        // Transport streams carry no PCM.
        ("/sowt.mov/stream.ts", 422),
    ] {
        let reply = get(server.port, path, &[]);
        assert_eq!(reply.status, status, "{path}: {}", reply.text());
        assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{path}");
    }
    let post = request(server.port, "POST", &format!("/{CLIP}/stream.mp4"), &[]);
    assert_eq!(post.status, 405);
    // A channel that was made to answer goes by itself.
    until_kinds(&server, &[]);
}

#[test]
fn a_server_that_stops_completes_long_responses() {
    let mut server = serve(CLIP, &["--shutdown-grace", "60s"]);
    let (mut stream, _) = open(&server, &format!("/{CLIP}/stream.mp4"), "1.1", "");
    assert!(is_start(&chunk(&mut stream)));
    let began = Instant::now();
    let process = rustix::process::Pid::from_child(&server.process.0);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    while !chunk(&mut stream).is_empty() {}
    assert!(server.process.0.wait().unwrap().success());
    assert!(began.elapsed() < Duration::from_secs(30), "it does not wait for the grace");
    assert!(server.log_text().contains("complete"), "{}", server.log_text());
}

#[test]
fn a_client_that_takes_nothing_is_left() {
    let server = serve(CLIP, &["--write-timeout", "2s"]);
    let mut client = wire::Client::plain(server.port);
    write!(client, "GET /{CLIP}/stream.mp4 HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    until_kinds(&server, &["channel", "loader", "viewing"]);
    // The clip has little more than the system buffers: a slow client of a slow stream is one that waits.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(kinds(&server), ["channel", "loader", "viewing"], "the client is not late while it is sent nothing");
    drop(client);
    until_kinds(&server, &[]);
}

/// A server whose place is the RTSP of another one.
fn edge(origin: &Server, more: &[&str]) -> Server {
    let place = format!("cams=rtsp://user:secret@127.0.0.1:{}/", origin.rtsp);
    Server::start(&[&[&*place, "--source-transport", "tcp"], more].concat())
}

#[track_caller]
fn until_playing(origin: &Server, expected: f64) {
    let began = Instant::now();
    while origin.metric("millpond_rtsp_playing", "") != expected {
        assert!(began.elapsed() < Duration::from_secs(30), "{}", origin.log_text());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_live_source_is_opened_once_and_left_after_the_last_viewer() {
    let origin = serve(CLIP, &[]);
    let server = edge(&origin, &["--linger", "0s"]);
    let path = format!("/cams/{CLIP}/stream.mp4");
    let head = request(server.port, "HEAD", &path, &[]);
    assert_eq!((head.status, head.header("content-type")), (200, Some("video/mp4")));
    assert_eq!(origin.metric("millpond_rtsp_playing", ""), 0.0, "HEAD opens nothing");
    let (mut first, head) = open(&server, &path, "1.1", "");
    assert!(head.contains("http/1.1 200 ok") && head.contains("codecs=\"avc1."), "{head}: {}", server.log_text());
    assert!(is_start(&chunk(&mut first)));
    let (mut second, _) = open(&server, &path, "1.1", "");
    assert!(is_start(&chunk(&mut second)));
    assert_eq!(origin.metric("millpond_rtsp_playing", ""), 1.0);
    drop(first);
    chunk(&mut second);
    drop(second);
    until_playing(&origin, 0.0);
    until_kinds(&server, &[]);
    assert!(!server.log_text().contains("secret"));
}

#[test]
fn a_live_source_has_the_frames_of_the_file() {
    let origin = serve(CLIP, &[]);
    let server = edge(&origin, &[]);
    let source = hashes(clips::folder().join(CLIP).to_str().unwrap(), "0:v", 1000);
    let received = hashes(&server.url(&format!("cams/{CLIP}/stream.mp4")), "0:v", 150);
    assert_eq!(received.len(), 150);
    assert_part_of(&received, &source);
}

#[test]
fn failures_of_a_live_source_are_told() {
    let origin = serve(CLIP, &[]);
    let server = edge(&origin, &[]);
    let closed = support::free_port();
    let nowhere = Server::start(&[&format!("rtsp://127.0.0.1:{closed}/"), "--source-timeout", "2s"]);
    for (server, path, status) in [
        (&server, "/cams/missing.mp4/stream.mp4", 404),
        (&server, "/cams/door/index.m3u8", 404),
        (&server, "/cams/door", 404),
        (&server, "/cams/.door/stream.mp4", 400),
        (&nowhere, "/stream.mp4", 502),
        (&nowhere, "/door/stream.mp4", 502),
    ] {
        let reply = get(server.port, path, &[]);
        assert_eq!(reply.status, status, "{path}: {}", reply.text());
        assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{path}");
        let text = reply.text();
        assert!(!text.contains("127.0.0.1") && !text.contains("secret"), "{path}: {text}");
    }
    assert_eq!(get(server.admin, "/readyz", &[]).status, 200, "live places do not hold the server back");
}

/// Bytes that wait in the kernel for the other end of a connection, at the end of it whose port is `from`: /proc/net/tcp.
fn unsent(from: u16, to: u16) -> Option<u64> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let port = |address: &str| u16::from_str_radix(address.rsplit(':').next().unwrap(), 16).unwrap();
    let entry = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let ours = entry.into_iter().find(|field| port(field[1]) == from && port(field[2]) == to)?;
    u64::from_str_radix(ours[4].split(':').next().unwrap(), 16).ok()
}

#[test]
fn little_old_media_waits_for_a_client_that_reads_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // About 8 Mbit/s.
    clips::make(
        &folder.path().join("noise.mp4"),
        "V -vf noise=alls=40:allf=t -c:v libx264 -preset ultrafast -g 25 -b:v 8M",
    );
    let server = Server::start(&[folder.path().to_str().unwrap(), "--rtsp-channels", "noise.mp4"]);
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 4096).unwrap();
    write!(stream, "GET /noise.mp4/stream.mp4 HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let port = stream.local_addr().unwrap().port();
    let (began, mut most, mut full) = (Instant::now(), 0, None::<Instant>);
    // Without a bound, more than a megabyte would be there after two seconds.
    while full.is_none_or(|full| full.elapsed() < Duration::from_secs(2)) {
        most = unsent(server.port, port).unwrap_or(0).max(most);
        if most >= 16 << 10 {
            full.get_or_insert_with(Instant::now);
        }
        assert!(most < 200 << 10, "{most} bytes wait");
        assert!(began.elapsed() < Duration::from_secs(60), "{most} bytes only: {}", server.log_text());
        std::thread::sleep(Duration::from_millis(20));
    }
}
