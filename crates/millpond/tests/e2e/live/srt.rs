//! Streams by SRT: publishers and viewers of other programs, encryption, rights, and hostile callers.

use crate::{
    live::publish::{CLIP, assert_of_clip, hashes, is_of_clip, reader, serve, until_logged, until_published},
    support::{Running, Server, clips, free_port, have},
};
use std::{
    io::Read as _,
    net::UdpSocket,
    process::{Command, Stdio},
    time::Duration,
};

/// A passphrase.
const SECRET: &str = "a-long-secret";

/// A server that takes and sends streams by SRT, and its port.
fn serve_srt(more: &[&str]) -> (Server, u16) {
    let port = free_port();
    let server = serve(&[&["--srt", &format!("127.0.0.1:{port}")], more].concat());
    (server, port)
}

fn url(port: u16, id: &str, more: &str) -> String {
    format!("srt://127.0.0.1:{port}?streamid={id}{more}")
}

/// Pushes the clip round and round by ffmpeg.
fn push(url: &str) -> Running {
    let path = clips::folder().join(CLIP);
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-re", "-stream_loop", "-1", "-i"]).arg(path);
    command.args(["-map", "0:v:0", "-map", "0:a:0", "-c", "copy", "-f", "mpegts", url]);
    Running(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
}

/// Message of ffmpeg when its connection is refused.
fn refused(mut publisher: Running) -> String {
    let mut said = String::new();
    publisher.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(!publisher.0.wait().unwrap().success());
    said
}

#[test]
fn every_picture_reaches_viewers_both_ways() {
    clips::folder();
    let (server, port) = serve_srt(&[]);
    let _publisher = push(&url(port, "publish:live/cam", ""));
    until_published(&server, "live/cam");
    let by_srt = reader(&["-i", &url(port, "read:live/cam", "")], "0:v", 100);
    let standard = reader(&["-i", &url(port, "#!::r=live/cam,m=request", "")], "0:v", 100);
    let by_http = reader(&["-i", &server.url("live/cam/stream.mp4")], "0:v", 100);
    let sound = reader(&["-t", "1", "-i", &url(port, "read:live/cam", "")], "0:a", 1000);
    for viewer in [by_srt, standard, by_http] {
        assert_of_clip(&hashes(viewer), 100);
    }
    assert!(hashes(sound).len() > 20);
    until_logged(&server, &["SRT session ended", "\"method\":\"PLAY\""]);
}

#[test]
fn other_programs_publish_and_play() {
    if !have("srt-live-transmit") || !have("gst-launch-1.0") {
        return;
    }
    clips::folder();
    let (server, port) = serve_srt(&[]);
    // The program of libsrt forwards what arrives by UDP.
    let udp = free_port();
    let (from, to) = (format!("udp://127.0.0.1:{udp}"), url(port, "publish:live/cam", ""));
    let mut transmit = Command::new("srt-live-transmit");
    transmit.args(["-q", &from, &to]).stdout(Stdio::null()).stderr(Stdio::null());
    let _transmit = Running(transmit.spawn().unwrap());
    let _source = push(&format!("udp://127.0.0.1:{udp}?pkt_size=1316"));
    until_published(&server, "live/cam");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("got.ts");
    let mut play = Command::new("gst-launch-1.0");
    play.args([
        "-q",
        "srtsrc",
        &format!("uri=srt://127.0.0.1:{port}"),
        "mode=caller",
        "streamid=read:live/cam",
        "latency=200",
    ]);
    play.args(["!", "filesink", &format!("location={}", file.display())]);
    let player = Running(play.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    std::thread::sleep(Duration::from_secs(7));
    drop(player);
    let pictures = hashes(reader(&["-i", file.to_str().unwrap()], "0:v", 100));
    assert_of_clip(&pictures, 100);
    // And the other way round, by GStreamer's sink and libsrt's program.
    let mut sink = Command::new("gst-launch-1.0");
    let clip = clips::folder().join(CLIP);
    sink.args([
        "-q",
        "filesrc",
        &format!("location={}", clip.display()),
        "!",
        "qtdemux",
        "!",
        "h264parse",
        "config-interval=-1",
    ]);
    sink.args(["!", "mpegtsmux", "alignment=7", "!", "srtsink", &format!("uri=srt://127.0.0.1:{port}"), "mode=caller"]);
    let _sink = Running(sink.arg("streamid=#!::r=live/gst,m=publish").stdout(Stdio::null()).spawn().unwrap());
    until_published(&server, "live/gst");
    let file = folder.path().join("transmitted.ts");
    let mut receive = Command::new("srt-live-transmit");
    receive.args(["-q", "-chunk:1316", &url(port, "read:live/gst", ""), "file://con"]);
    let output = std::fs::File::create(&file).unwrap();
    let receiver = Running(receive.stdout(output).stderr(Stdio::null()).spawn().unwrap());
    std::thread::sleep(Duration::from_secs(4));
    drop(receiver);
    let pictures = hashes(reader(&["-i", file.to_str().unwrap()], "0:v", 20));
    assert_of_clip(&pictures, 20);
}

#[test]
fn media_is_encrypted_both_ways_and_other_passphrases_are_refused() {
    clips::folder();
    let (server, port) = serve_srt(&["--srt-passphrase", SECRET]);
    for (name, length) in [("a", 16), ("b", 24), ("c", 32)] {
        let keys = format!("&passphrase={SECRET}&pbkeylen={length}");
        let path = format!("live/{name}");
        let _publisher = push(&url(port, &format!("publish:{path}"), &keys));
        until_published(&server, &path);
        assert_of_clip(&hashes(reader(&["-i", &url(port, &format!("read:{path}"), &keys)], "0:v", 50)), 50);
    }
    for keys in ["", "&passphrase=another-secret"] {
        refused(push(&url(port, "publish:live/d", keys)));
    }
    until_logged(&server, &["SRT connection refused", "wrong passphrase"]);
    until_logged(&server, &["SRT connection refused", "on both sides"]);
    assert!(!server.log_text().contains(SECRET));
}

#[test]
fn publishers_have_passwords_of_their_own() {
    clips::folder();
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    std::fs::write(&users, "ann:sesame\n").unwrap();
    let (server, port) = serve_srt(&["--publish-users", users.to_str().unwrap()]);
    for id in ["publish:live/cam", "publish:live/cam:ann:guess", "#!::r=live/cam,m=publish,u=bob,s=sesame"] {
        refused(push(&url(port, id, "")));
    }
    until_logged(&server, &["SRT connection refused", "\"code\":1401,"]);
    let _publisher = push(&url(port, "#!::r=live/cam,m=publish,u=ann,s=sesame", ""));
    until_published(&server, "live/cam");
    let log = server.log_text();
    assert!(log.contains("SRT session publishes") && !log.contains("sesame") && !log.contains("guess"), "{log}");
}

#[test]
fn a_second_publisher_is_refused_or_replaces_the_first() {
    clips::folder();
    for conflict in ["refuse", "replace"] {
        let (server, port) = serve_srt(&["--publish-conflict", conflict]);
        let url = url(port, "publish:live/cam", "");
        let _first = push(&url);
        until_published(&server, "live/cam");
        let second = push(&url);
        if conflict == "refuse" {
            refused(second);
            until_logged(&server, &["SRT connection refused", "\"code\":1409,"]);
        } else {
            until_logged(&server, &["SRT session ended", "another publisher took the place"]);
        }
    }
}

#[test]
fn names_that_are_no_streams_are_refused() {
    let films = format!("films={}", clips::folder().display());
    let (server, port) = serve_srt(&[&films]);
    for (id, code) in [
        ("cam", 1400),
        ("publish:films/a", 1405),
        ("publish:lives/a", 1404),
        ("write:live/cam", 1400),
        ("read:lives/a", 1404),
    ] {
        refused(push(&url(port, id, "")));
        until_logged(&server, &["SRT connection refused", &format!("\"code\":{code},")]);
    }
}

#[test]
fn a_place_is_a_listener_that_is_called_again() {
    clips::folder();
    let (source, port) = serve_srt(&["--srt-passphrase", SECRET, "--publish-conflict", "replace"]);
    let keys = format!("&passphrase={SECRET}");
    let publisher = push(&url(port, "publish:live/cam", &keys));
    until_published(&source, "live/cam");
    let place = format!("tv=srt://127.0.0.1:{port}?latency=200ms&passphrase={SECRET}&streamid=read:live/cam");
    let server = Server::start(&[&place]);
    assert_of_clip(&hashes(reader(&["-i", &server.url("tv/stream.mp4")], "0:v", 50)), 50);
    drop(publisher);
    let _publisher = push(&url(port, "publish:live/cam", &keys));
    // The clip begins again where the second publisher begins. Behind that, all pictures follow each other.
    let follows = || {
        let pictures = hashes(reader(&["-i", &server.url("tv/stream.mp4")], "0:v", 50));
        is_of_clip(&pictures, 50)
    };
    assert!((0..10).any(|_| follows()), "{}", server.log_text());
    assert!(!server.log_text().contains(SECRET));
}

#[test]
fn a_flood_of_handshakes_makes_no_sessions_and_no_long_answers() {
    clips::folder();
    let (server, port) = serve_srt(&[]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    socket.connect(("127.0.0.1", port)).unwrap();
    // The first step of a caller, and a second one with a cookie that was never given.
    let step = |kind: u32, socket: u32, cookie: u32| {
        let words = [0x8000_0000, 0, 0, 0, 5, 0x0000_0001, 7, 1500, 8192, kind, socket, cookie, 0, 0, 0, 0_u32];
        words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>()
    };
    for number in 1..5000 {
        let _ = socket.send(&step(1, number, 0));
        let _ = socket.send(&step(u32::MAX, number, number));
    }
    let mut answer = [0; 2048];
    while let Ok(length) = socket.recv(&mut answer) {
        assert!(length <= 64, "{length}");
    }
    let _publisher = push(&url(port, "publish:live/cam", ""));
    until_published(&server, "live/cam");
    assert!(!server.log_text().contains("panicked"));
}
