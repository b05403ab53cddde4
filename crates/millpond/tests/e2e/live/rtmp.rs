//! Streams that are pushed by RTMP: what viewers get of them, who may push, and what becomes of bad publishers.

use crate::{
    live::publish::{CLIP, assert_of_clip, end, hashes, reader, serve, until_published},
    support::{Running, Server, clips, free_port, have, wait_for_port},
};
use millpond_media::fragment_stream::{FragmentEvent, FragmentStream};
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    process::{Command, Stdio},
    time::Duration,
};

/// A server that takes streams by RTMP, and its port.
fn serve_rtmp(more: &[&str]) -> (Server, u16) {
    let port = free_port();
    let server = serve(&[&["--rtmp", &format!("127.0.0.1:{port}")], more].concat());
    wait_for_port(port, &server.log);
    (server, port)
}

fn url(port: u16, path: &str) -> String {
    format!("rtmp://127.0.0.1:{port}/{path}")
}

/// Pushes a clip round and round, with options for its encoding.
fn push(coding: &[&str], url: &str) -> Running {
    let path = clips::folder().join(CLIP);
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-re", "-stream_loop", "-1", "-i"]).arg(path).args(coding);
    command.args(["-f", "flv", url]);
    Running(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
}

/// A connection that has sent some bytes.
fn begin(port: u16, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

/// Text that the server sends until it closes the connection.
fn until_closed(mut stream: TcpStream) -> String {
    let mut said = Vec::new();
    // A connection that is reset is closed too.
    let _ = stream.read_to_end(&mut said);
    String::from_utf8_lossy(&said).into_owned()
}

/// A handshake whose random bytes are zeros.
fn handshake() -> Vec<u8> {
    [vec![3], vec![0; 2 * 1536]].concat()
}

/// A message of fewer than 128 bytes.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    timed(0, kind, body)
}

/// A message in one chunk, with a time in milliseconds.
fn timed(time: u32, kind: u8, body: &[u8]) -> Vec<u8> {
    let (time, length) = (time.to_be_bytes(), (body.len() as u32).to_be_bytes());
    [&[3][..], &time[1..], &length[1..], &[kind, 1, 0, 0, 0], body].concat()
}

/// A command with a string after null.
fn command(name: &str, argument: &str) -> Vec<u8> {
    let text = |text: &str| [&[2, 0, text.len() as u8], text.as_bytes()].concat();
    message(20, &[text(name), vec![0; 9], vec![5], text(argument)].concat())
}

#[test]
fn a_client_that_never_reads_is_not_read_for_ever() {
    let (server, port) = serve_rtmp(&[]);
    let mut stream = begin(port, &handshake());
    stream.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
    // Each ping is answered.
    let pings = message(4, &[0, 6, 1, 2, 3, 4]).repeat(4096);
    let most = 128 << 20;
    let mut sent = 0;
    while sent < most
        && let Ok(count) = stream.write(&pings[sent % pings.len()..])
    {
        sent += count;
    }
    assert!(sent < most, "{sent} bytes were read");
    assert!(server.metric("process_resident_memory_bytes", "") < 256e6, "{sent} bytes were sent");
}

#[test]
fn every_picture_that_is_pushed_reaches_viewers() {
    clips::folder();
    let (server, port) = serve_rtmp(&[]);
    let by_rtsp = format!("rtsp://127.0.0.1:{}/live/cam", server.rtsp);
    // The first viewer comes before the publisher.
    let early = reader(&["-rtsp_transport", "tcp", "-i", &by_rtsp], "0:v", 100);
    let _publisher = push(&["-map", "0:v:0", "-map", "0:a:0", "-c", "copy"], &url(port, "live/cam"));
    assert_of_clip(&hashes(early), 100);
    for path in ["live/cam/stream.mp4", "live/cam/index.m3u8"] {
        let viewer = reader(&["-i", &server.url(path)], "0:v", 100);
        assert_of_clip(&hashes(viewer), 100);
    }
    // A second of sound.
    let sound = reader(&["-t", "1", "-i", &server.url("live/cam/stream.mp4")], "0:a", 1000);
    assert!(hashes(sound).len() > 20);
}

/// The pictures of a clip as messages of Enhanced RTMP: the configuration, which is in the box `record`, and frames.
fn enhanced(clip: &str, (four_cc, record): (&[u8; 4], &[u8; 4])) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fragments.mp4");
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-i"]).arg(clips::folder().join(clip));
    command.args(["-map", "0:v:0", "-c", "copy", "-movflags", "frag_keyframe+empty_moov+default_base_moof"]).arg(&path);
    assert!(command.status().unwrap().success());
    let (mut stream, mut events, mut rate) = (FragmentStream::new(), Vec::new(), 1);
    stream.push(&std::fs::read(&path).unwrap(), &mut events).unwrap();
    let message = |event| match event {
        FragmentEvent::Tracks { tracks, .. } => {
            rate = i64::from(tracks[0].timescale.get());
            let entry = &tracks[0].sample_entry;
            let at = entry.windows(4).position(|name| name == record).unwrap();
            let length = u32::from_be_bytes(entry[at - 4..at].try_into().unwrap()) as usize;
            timed(0, 9, &[&[0x90], &four_cc[..], &entry[at + 4..at - 4 + length]].concat())
        }
        FragmentEvent::Sample(sample) => {
            let kind = if sample.is_sync { 0x91 } else { 0xa1 };
            let composition = ((sample.pts - sample.dts) * 1000 / rate) as u32;
            // Frames of AV1 have no composition time.
            let composition = &composition.to_be_bytes()[if four_cc == b"av01" { 4 } else { 1 }..];
            timed((sample.dts * 1000 / rate) as u32, 9, &[&[kind], &four_cc[..], composition, &sample.data].concat())
        }
        FragmentEvent::Fault(why) => panic!("{why}"),
    };
    events.into_iter().map(message).collect()
}

#[test]
fn hevc_and_av1_are_received() {
    for (clip, codec) in [("hevc_hvc1.mp4", (b"hvc1", b"hvcC")), ("av1.mp4", (b"av01", b"av1C"))] {
        let messages = enhanced(clip, codec);
        let (server, port) = serve_rtmp(&[]);
        let viewer = reader(&["-i", &server.url("live/cam/stream.mp4")], "0:v", 100);
        std::thread::sleep(Duration::from_secs(2));
        let chunk_size = message(1, &(1_u32 << 24).to_be_bytes());
        let mut publisher = begin(port, &[handshake(), chunk_size, command("publish", "live/cam")].concat());
        let pushing = std::thread::spawn(move || {
            for message in messages {
                publisher.write_all(&message).unwrap();
                std::thread::sleep(Duration::from_millis(35));
            }
            publisher
        });
        let pictures = hashes(viewer);
        let source = hashes(reader(&["-i", clips::folder().join(clip).to_str().unwrap()], "0:v", 1000));
        let offset = source.iter().position(|hash| *hash == pictures[0]).expect("a picture of the clip");
        assert!(pictures.len() == 100 && source[offset..].starts_with(&pictures), "{clip} from {offset} on");
        drop(pushing.join().unwrap());
    }
}

#[test]
fn gstreamer_publishes() {
    if !have("gst-launch-1.0") {
        return;
    }
    let path = clips::folder().join(CLIP);
    let (server, port) = serve_rtmp(&[]);
    let by_rtsp = format!("rtsp://127.0.0.1:{}/live/door/cam", server.rtsp);
    let viewer = reader(&["-rtsp_transport", "tcp", "-i", &by_rtsp], "0:v", 100);
    let mut publisher = Command::new("gst-launch-1.0");
    publisher.args(["-q", "filesrc", &format!("location={}", path.display()), "!", "qtdemux", "name=demux"]);
    publisher.args(["flvmux", "name=mux", "streamable=true", "!", "rtmp2sink", "sync=true"]);
    publisher.arg(format!("location={}", url(port, "live/door/cam")));
    publisher.args(["demux.video_0", "!", "queue", "!", "h264parse", "!", "mux.video"]);
    publisher.args(["demux.audio_0", "!", "queue", "!", "aacparse", "!", "mux.audio"]);
    let _publisher = Running(publisher.stdout(Stdio::null()).spawn().unwrap());
    assert_of_clip(&hashes(viewer), 100);
}

#[test]
fn other_sound_and_a_track_alone_are_received() {
    let (server, port) = serve_rtmp(&[]);
    let mp3 = ["-map", "0:v:0", "-map", "0:a:0", "-c:v", "copy", "-c:a", "libmp3lame", "-ar", "44100"];
    let _publishers =
        [push(&mp3, &url(port, "live/mp3")), push(&["-map", "0:a:0", "-c", "copy"], &url(port, "live/sound"))];
    for path in ["live/mp3", "live/sound"] {
        until_published(&server, path);
        let sound = reader(&["-t", "1", "-i", &server.url(&format!("{path}/stream.mp4"))], "0:a", 1000);
        assert!(hashes(sound).len() > 20, "{path}");
    }
}

#[test]
fn publishers_have_passwords_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    std::fs::write(&users, "ann:sesame\n").unwrap();
    let (server, port) = serve_rtmp(&["--publish-users", users.to_str().unwrap()]);
    for query in ["", "?user=ann", "?user=ann&pass=guess", "?user=bob&pass=sesame"] {
        let said = end(push(&["-c", "copy"], &url(port, &format!("live/cam{query}"))));
        assert!(said.contains("another user or password"), "{said}");
    }
    let _publisher = push(&["-c", "copy"], &url(port, "live/cam?user=ann&pass=sesame"));
    until_published(&server, "live/cam");
    let log = server.log_text();
    assert!(log.contains("RTMP session publishes") && !log.contains("sesame") && !log.contains("guess"), "{log}");
}

#[test]
fn publishers_over_tls() {
    let port = free_port();
    let (server, _) = serve_rtmp(&["--tls-self-signed", "--rtmps", &format!("127.0.0.1:{port}")]);
    wait_for_port(port, &server.log);
    let _publisher = push(&["-c", "copy"], &format!("rtmps://127.0.0.1:{port}/live/cam"));
    until_published(&server, "live/cam");
}

#[test]
fn a_second_publisher_is_refused_or_replaces_the_first() {
    for conflict in ["refuse", "replace"] {
        let (server, port) = serve_rtmp(&["--publish-conflict", conflict]);
        let url = url(port, "live/cam");
        let first = push(&["-c", "copy"], &url);
        until_published(&server, "live/cam");
        let second = push(&["-c", "copy"], &url);
        if conflict == "refuse" {
            let said = end(second);
            assert!(said.contains("another publisher"), "{said}");
        } else {
            end(first);
            let viewer = reader(&["-i", &server.url("live/cam/stream.mp4")], "0:v", 50);
            assert_of_clip(&hashes(viewer), 50);
        }
    }
}

#[test]
fn viewers_stay_while_publishers_come_and_go() {
    let (server, port) = serve_rtmp(&[]);
    let url = url(port, "live/cam");
    let first = push(&["-c", "copy"], &url);
    until_published(&server, "live/cam");
    let by_rtsp = format!("rtsp://127.0.0.1:{}/live/cam", server.rtsp);
    let viewer = reader(&["-rtsp_transport", "tcp", "-i", &by_rtsp], "0:v", 200);
    std::thread::sleep(Duration::from_secs(2));
    drop(first);
    let _second = push(&["-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-c:a", "aac"], &url);
    assert_eq!(hashes(viewer).len(), 200, "the viewer stays");
}

#[test]
fn bad_publishers_are_refused() {
    let files = format!("films={}", clips::folder().display());
    let (server, port) = serve_rtmp(&[&files, "--source-timeout", "2s", "--request-timeout", "1s"]);
    // Another protocol, noise, and nothing at all.
    assert_eq!(until_closed(begin(port, b"GET / HTTP/1.1\r\n\r\n")), "");
    let noise: Vec<u8> = (0..100_000_u32).map(|place| (place.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    until_closed(begin(port, &[&handshake(), &noise[..]].concat()));
    assert_eq!(until_closed(begin(port, b"")), "");
    assert_eq!(until_closed(begin(port, &handshake()[..1000])), "");
    // A message that is too large, before and after the publication is accepted.
    let huge = [4, 0, 0, 0, 0xff, 0xff, 0xff, 9, 1, 0, 0, 0];
    until_closed(begin(port, &[&handshake(), &huge[..]].concat()));
    let accepted = [handshake(), command("publish", "live/cam")].concat();
    let said = until_closed(begin(port, &[&accepted, &huge[..]].concat()));
    assert!(said.contains("NetStream.Publish.Start"), "{said}");
    // A publisher that stops, and the name that it leaves.
    let said = until_closed(begin(port, &accepted));
    assert!(said.contains("NetStream.Publish.Start") && said.contains("2 s"), "{said}");
    // Other places, other names, and players.
    for (name, word) in [
        (&*format!("films/{CLIP}"), "no publisher can push"),
        ("lives/cam", "there is no place \"lives\""),
        ("live", "a name is missing"),
        ("live/.git", "NetStream.Publish.BadName"),
        ("live/%ff", "UTF-8"),
    ] {
        let said = until_closed(begin(port, &[handshake(), command("publish", name)].concat()));
        assert!(said.contains(word), "{name}: {said}");
    }
    let said = until_closed(begin(port, &[handshake(), command("play", "live/cam")].concat()));
    assert!(said.contains("NetStream.Play.StreamNotFound"), "{said}");
    let said = until_closed(begin(port, &[handshake(), command("play", &format!("films/{CLIP}"))].concat()));
    assert!(said.contains("stored titles are not sent by RTMP"), "{said}");
    // A codec that is not received.
    let said = end(push(&["-map", "0:v:0", "-c:v", "flv1"], &url(port, "live/cam")));
    assert!(!said.is_empty() && server.log_text().contains("Sorenson H.263"), "{said}");
    let _publisher = push(&["-c", "copy"], &url(port, "live/cam"));
    until_published(&server, "live/cam");
}
