//! Streams that are pushed by RTSP: what viewers get of them, who may push, and what becomes of bad publishers.

use crate::support::{
    Running, Server, clips,
    rtsp::{Client, Reply},
};
use std::{
    fmt::Write as _,
    io::{Read as _, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// 9 seconds, 25 pictures a second, key frames two seconds apart, B-frames, AAC.
pub(crate) const CLIP: &str = "h264_aac.mp4";
/// A description of H.264.
const SDP: &str = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n\
                   a=control:streamid=0\r\n";

pub(crate) fn serve(more: &[&str]) -> Server {
    Server::start(&[&["live=publish:", "--linger", "0s"], more].concat())
}

fn url(server: &Server, user: &str, path: &str) -> String {
    format!("rtsp://{user}127.0.0.1:{}/{path}", server.rtsp)
}

/// Pushes what ffmpeg reads by `input`.
fn push(input: &[&str], transport: &str, url: &str) -> Running {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin"]).args(input);
    command.args(["-f", "rtsp", "-rtsp_transport", transport, url]).stdout(Stdio::null()).stderr(Stdio::piped());
    Running(command.spawn().unwrap())
}

/// Pushes a clip round and round.
pub(crate) fn push_clip(transport: &str, url: &str) -> Running {
    let path = clips::folder().join(CLIP);
    push(&["-re", "-stream_loop", "-1", "-i", path.to_str().unwrap(), "-c", "copy"], transport, url)
}

/// Pushes a test picture of a size.
fn push_picture(size: &str, url: &str) -> Running {
    let source = format!("testsrc2=size={size}:rate=25");
    let coding = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "25"];
    push(&[&["-re", "-f", "lavfi", "-i", &source][..], &coding].concat(), "tcp", url)
}

/// A reader of the hashes of the first decoded frames.
pub(crate) fn reader(input: &[&str], track: &str, count: usize) -> Child {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin"]).args(input).args(["-map", track, "-fps_mode", "passthrough"]);
    command.args(["-frames:v", &count.to_string(), "-f", "framemd5", "-"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

pub(crate) fn hashes(reader: Child) -> Vec<String> {
    let output = reader.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let hash = |line: &str| line.rsplit(',').next().unwrap().trim().to_owned();
    text.lines().filter(|line| !line.starts_with('#')).map(hash).collect()
}

/// Checks that pictures are those of the clip round and round, from a key frame on.
pub(crate) fn assert_of_clip(pictures: &[String], count: usize) {
    assert_of_film(&clips::folder().join(CLIP), pictures, count);
}

/// Checks that pictures are those of a film with a key frame each 50 pictures round and round, from a key frame on.
pub(crate) fn assert_of_film(film: &Path, pictures: &[String], count: usize) {
    assert_eq!(pictures.len(), count);
    let (offset, same) = place_in_film(film, pictures);
    assert!(offset.is_multiple_of(50), "a key frame first, not picture {offset}");
    assert_eq!(same, count, "picture {same} differs");
}

/// Whether a number of pictures are those of the clip round and round.
pub(crate) fn is_of_clip(pictures: &[String], count: usize) -> bool {
    place_in_film(&clips::folder().join(CLIP), pictures).1 == count
}

/// The place of the first picture in a film, and the number of pictures that are those of the film from there on.
fn place_in_film(film: &Path, pictures: &[String]) -> (usize, usize) {
    let source = hashes(reader(&["-i", film.to_str().unwrap()], "0:v", 1000));
    let offset = source.iter().position(|hash| *hash == pictures[0]).expect("a picture of the film");
    (offset, source.iter().cycle().skip(offset).zip(pictures).take_while(|(a, b)| a == b).count())
}

pub(crate) fn until_published(server: &Server, path: &str) {
    let began = Instant::now();
    while Client::new(server, path).ask("DESCRIBE", "", "").status != 200 {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", server.log_text());
    }
}

/// Waits until the log has a line with all words.
#[track_caller]
pub(crate) fn until_logged(server: &Server, words: &[&str]) {
    let began = Instant::now();
    while !server.log_text().lines().any(|line| words.iter().all(|word| line.contains(word))) {
        assert!(began.elapsed() < Duration::from_secs(60), "{words:?} in {}", server.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The output of ffmpeg when it ends by itself.
pub(crate) fn end(mut publisher: Running) -> String {
    let mut said = String::new();
    publisher.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(!publisher.0.wait().unwrap().success());
    said
}

fn announce(client: &mut Client, sdp: &str) -> Reply {
    let length = sdp.len();
    let body = sdp.strip_suffix("\r\n").unwrap();
    client.ask("ANNOUNCE", "", &format!("Content-Type: application/sdp\r\nContent-Length: {length}\r\n\r\n{body}"))
}

#[test]
fn every_picture_that_is_pushed_reaches_viewers() {
    // Clips take longer to make than viewers wait.
    clips::folder();
    for transport in ["tcp", "udp"] {
        let server = serve(&[]);
        let url = url(&server, "", "live/cam");
        // The first viewer comes before the publisher.
        let early = reader(&["-rtsp_transport", "tcp", "-i", &url], "0:v", 100);
        let publisher = push_clip(transport, &url);
        assert_of_clip(&hashes(early), 100);
        let by_http = reader(&["-i", &server.url("live/cam/stream.mp4")], "0:v", 100);
        let by_rtsp = reader(&["-rtsp_transport", "tcp", "-i", &url], "0:v", 100);
        assert_of_clip(&hashes(by_http), 100);
        assert_of_clip(&hashes(by_rtsp), 100);
        drop(publisher);
    }
}

#[test]
fn a_second_publisher_is_refused_or_replaces_the_first() {
    for (conflict, status) in [("refuse", 455), ("replace", 200)] {
        let server = serve(&["--publish-conflict", conflict]);
        let first = push_clip("tcp", &url(&server, "", "live/cam"));
        until_published(&server, "live/cam");
        let mut second = Client::new(&server, "live/cam");
        assert_eq!(announce(&mut second, SDP).status, status);
        assert_eq!(announce(&mut Client::new(&server, "live/other"), SDP).status, 200);
        if conflict == "replace" {
            assert_eq!(second.set_up("streamid=0", "RTP/AVP/TCP;unicast;interleaved=0-1;mode=record").status, 200);
            assert_eq!(second.ask("RECORD", "", "").status, 200);
            end(first);
            assert_eq!(second.ask("TEARDOWN", "", "").status, 200);
        }
    }
}

#[test]
fn publishers_have_passwords_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    std::fs::write(&users, "ann:pass\n").unwrap();
    let server = serve(&["--publish-users", users.to_str().unwrap()]);
    for user in ["", "ann:guess@"] {
        let said = end(push_clip("tcp", &url(&server, user, "live/cam")));
        assert!(said.contains("401"), "{said}");
    }
    let _publisher = push_clip("tcp", &url(&server, "ann:pass@", "live/cam"));
    until_published(&server, "live/cam");
}

#[test]
fn viewers_stay_while_publishers_come_and_go() {
    let server = serve(&[]);
    let url = url(&server, "", "live/cam");
    let first = push_clip("tcp", &url);
    until_published(&server, "live/cam");
    let mut viewer = Client::new(&server, "live/cam");
    assert_eq!(viewer.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1").status, 200);
    assert_eq!(viewer.ask("PLAY", "", "").status, 200);
    viewer.receive(|packets| packets.len() > 50);
    drop(first);
    let second = push_picture("640x360", &url);
    let before = viewer.packets.len();
    viewer.receive(|packets| packets.len() > before + 200);
    let size = || {
        let mut command = Command::new("ffprobe");
        command.args(["-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0"]);
        let output = command.arg(server.url("live/cam/stream.mp4")).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(size(), "640,360");
    drop(second);
    // Nobody publishes: viewers stay for 15 s, and none comes after.
    let began = Instant::now();
    while Client::new(&server, "live/cam").ask("DESCRIBE", "", "").status != 404 {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", server.log_text());
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn bad_publishers_are_refused() {
    let folder = clips::folder();
    let files = format!("films={}", folder.display());
    let server = serve(&[&files]);
    let client = |path: &str| Client::new(&server, path);
    let status = |path: &str, sdp: &str| announce(&mut client(path), sdp).status;
    assert_eq!(status(&format!("films/{CLIP}"), SDP), 405);
    assert_eq!(status("live", SDP), 404);
    assert_eq!(status("live/.git", SDP), 400);
    let large = client("live/cam").ask("ANNOUNCE", "", "Content-Type: application/sdp\r\nContent-Length: 1000000\r\n");
    assert_eq!(large.status, 413);
    let tracks = |count: usize| {
        (0..count).fold(SDP.to_owned(), |mut sdp, track| {
            write!(sdp, "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:{track}\r\n").unwrap();
            sdp
        })
    };
    assert_eq!((status("live/cam", &tracks(100)), status("live/cam", &tracks(20))), (400, 415));
    assert_eq!(status("live/cam", &SDP.replace("H264", "H261")), 415);
    assert_eq!(status("live/cam", "nonsense\r\n"), 400);

    let transport = "RTP/AVP/TCP;unicast;interleaved=0-1;mode=record";
    let mut publisher = client("live/cam");
    assert_eq!(publisher.ask("RECORD", "", "").status, 454);
    assert_eq!(publisher.set_up("streamid=0", transport).status, 455, "without ANNOUNCE");
    assert_eq!(announce(&mut publisher, SDP).status, 200);
    assert_eq!(publisher.ask("RECORD", "", "").status, 454);
    assert_eq!(publisher.set_up("streamid=1", transport).status, 404);
    assert_eq!(announce(&mut publisher, SDP).status, 200);
    assert_eq!(publisher.set_up("streamid=0", transport).status, 200);
    assert_eq!(publisher.ask("PLAY", "", "").status, 455);
    // Packets before RECORD, of channels that were not set up, and of noise.
    let noise = |publisher: &mut Client| {
        for channel in [0, 1, 2, 255] {
            let mut packet = vec![b'$', channel, 4, 0];
            packet.resize(4 + 1024, channel ^ 0x80);
            publisher.stream.get_mut().write_all(&packet).unwrap();
        }
    };
    noise(&mut publisher);
    assert_eq!(publisher.ask("RECORD", "", "").status, 200);
    assert_eq!(publisher.ask("RECORD", "", "").status, 455);
    noise(&mut publisher);
    assert_eq!(publisher.ask("OPTIONS", "", "").status, 200);
    assert_eq!(publisher.ask("TEARDOWN", "", "").status, 200);
    let nobody = Client::new(&server, "live/nobody").ask("DESCRIBE", "", "");
    assert_eq!(nobody.status, 404);
}

#[test]
fn publishers_that_state_no_mode_and_one_pair_of_channels_publish() {
    let server = serve(&[]);
    let sound = "m=audio 0 RTP/AVP 0\r\na=control:streamid=1\r\n";
    let skipped = "m=application 0 RTP/AVP 107\r\na=control:streamid=2\r\n";
    let mut publisher = Client::new(&server, "live/cam");
    assert_eq!(announce(&mut publisher, &format!("{SDP}{sound}{skipped}")).status, 200);
    for (track, channels) in [("streamid=0", "0-1"), ("streamid=1", "2-3"), ("streamid=2", "4-5")] {
        let reply = publisher.set_up(track, "RTP/AVP/TCP;unicast;interleaved=0-1");
        let given = reply.headers.get("transport").map_or("", String::as_str);
        assert!(given.contains(&format!("interleaved={channels}")), "{track}: {} {given}", reply.status);
    }
    assert_eq!(publisher.ask("RECORD", "", "").status, 200);
}

#[test]
fn without_a_place_for_them_publishers_are_unknown() {
    let server = Server::of_clips();
    assert_eq!(announce(&mut Client::new(&server, "live/cam"), SDP).status, 501);
}
