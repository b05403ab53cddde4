//! Streams that are pushed to other servers: ffmpeg, GStreamer and a second Millpond take them, and ffmpeg judges.

use super::publish::{assert_of_clip, hashes, is_of_clip, push_clip, reader, serve, until_published};
use super::sources::has_gstreamer;
use crate::support::{
    Running, Server,
    api::{items, send},
    clips, free_port, get, wait_for_port,
};
use serde_json::{Value, json};
use std::{
    io::Read as _,
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// Far more than anything here takes, also on a busy machine.
const LONG: Duration = Duration::from_secs(60);

fn rtsp(server: &Server, path: &str) -> String {
    format!("rtsp://127.0.0.1:{}/{path}", server.rtsp)
}

fn watch(server: &Server, path: &str, count: usize) -> Child {
    reader(&["-rtsp_transport", "tcp", "-i", &rtsp(server, path)], "0:v", count)
}

/// Attaches a module that pushes.
fn attach(server: &Server, stream: &str, url: &str) -> (u16, Value) {
    let body = json!({ "stream": stream, "kind": "push", "options": { "url": url } });
    let reply = send(server.admin, "POST", "modules", &body, &[]);
    (reply.status, serde_json::from_str(&reply.text()).unwrap())
}

#[track_caller]
fn eventually(words: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LONG, "{words}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The state of each module.
fn states(server: &Server) -> Vec<String> {
    let items = items(server.admin, "modules");
    items.as_array().unwrap().iter().map(|item| item["state"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_picture_reaches_ffmpeg_by_all_protocols() {
    clips::folder();
    let [srt, rtsp, udp, rtp, rtmp] = [(); 5].map(|()| free_port());
    let (srt_url, udp_url) = (format!("srt://127.0.0.1:{srt}"), format!("udp://127.0.0.1:{udp}"));
    let (rtsp_url, rtp_url) = (format!("rtsp://127.0.0.1:{rtsp}/in/cam"), format!("rtp://127.0.0.1:{rtp}"));
    let by_srt = reader(&["-i", &format!("{srt_url}?mode=listener")], "0:v", 100);
    let by_rtsp = reader(&["-rtsp_flags", "listen", "-i", &rtsp_url], "0:v", 100);
    let by_udp = reader(&["-i", &format!("{udp_url}?fifo_size=1000000")], "0:v", 100);
    let rtmp_url = format!("rtmp://127.0.0.1:{rtmp}/app/key");
    let by_rtmp = reader(&["-f", "flv", "-listen", "1", "-i", &rtmp_url], "0:v", 100);
    let folder = tempfile::tempdir().unwrap();
    let sdp = folder.path().join("rtp.sdp");
    let text = format!("v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video {rtp} RTP/AVP 33\n");
    std::fs::write(&sdp, text).unwrap();
    let sdp = sdp.to_str().unwrap();
    let by_rtp = reader(&["-protocol_whitelist", "file,rtp,udp", "-i", sdp], "0:v", 100);
    let pushes = [&srt_url, &rtsp_url, &udp_url, &rtp_url, &rtmp_url].map(|url| format!("live/cam {url}"));
    let server = serve(&["--push", &pushes.join(",")]);
    let _publisher = push_clip("tcp", &self::rtsp(&server, "live/cam"));
    let by_http = reader(&["-i", &server.url("live/cam/stream.mp4")], "0:v", 100);
    for viewer in [by_srt, by_rtsp, by_udp, by_rtp, by_rtmp, by_http] {
        assert_of_clip(&hashes(viewer), 100);
    }
    let metrics = get(server.admin, "/metrics", &[]).text();
    let pushed = metrics.lines().find_map(|line| line.strip_prefix("millpond_pushed_frames_total "));
    assert!(pushed.unwrap().parse::<u64>().unwrap() > 400, "{metrics}");
}

#[test]
fn all_streams_of_a_place_are_pushed_to_another_server_while_they_are_published() {
    clips::folder();
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    std::fs::write(&users, "ann:secret\n").unwrap();
    let far = serve(&["--publish-users", users.to_str().unwrap()]);
    let to = format!("rtsp://ann:secret@127.0.0.1:{}/live/{{name}}-copy", far.rtsp);
    let server = serve(&["--push", &format!("live/* {to}")]);
    let first = push_clip("tcp", &rtsp(&server, "live/a"));
    let _second = push_clip("tcp", &rtsp(&server, "live/b"));
    until_published(&far, "live/a-copy");
    until_published(&far, "live/b-copy");
    let viewers = ["live/a-copy", "live/b-copy"].map(|path| watch(&far, path, 50));
    viewers.into_iter().for_each(|viewer| assert_of_clip(&hashes(viewer), 50));
    assert_eq!(states(&server), ["running", "running"]);
    drop(first);
    eventually("the module of a stream that ended is gone", || states(&server).len() == 1);
    assert!(!server.log_text().contains("secret"), "{}", server.log_text());
}

#[test]
fn a_destination_that_comes_back_is_pushed_to_again() {
    clips::folder();
    let port = free_port();
    let url = format!("srt://127.0.0.1:{port}?streamid=hush");
    let listener = format!("srt://127.0.0.1:{port}?mode=listener");
    let server = serve(&[]);
    let _publisher = push_clip("tcp", &rtsp(&server, "live/cam"));
    until_published(&server, "live/cam");
    // Nobody listens: the operator is told at once.
    let (status, problem) = attach(&server, "live/cam", &url);
    assert_eq!(status, 502, "{problem}");
    let first = reader(&["-i", &listener], "0:v", 20);
    let mut id = Value::Null;
    eventually("the listener is called", || {
        let (status, attached) = attach(&server, "live/cam", &url);
        id = attached["id"].clone();
        status == 201
    });
    assert_of_clip(&hashes(first), 20);
    eventually("it waits", || states(&server) == ["waiting"]);
    let second = reader(&["-i", &listener], "0:v", 20);
    assert_of_clip(&hashes(second), 20);
    let listed = items(server.admin, "modules")[0].clone();
    assert_eq!(listed["options"]["url"], format!("srt://127.0.0.1:{port}"));
    assert_eq!(send(server.admin, "DELETE", &format!("modules/{id}"), &Value::Null, &[]).status, 200);
    assert!(states(&server).is_empty());
    assert!(!server.log_text().contains("hush"), "{}", server.log_text());
}

/// A server that takes a session of RTSP, and then nothing more.
fn hung_server() -> (u16, std::thread::JoinHandle<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut text, mut number) = (String::new(), 1);
        while !text.contains("RECORD ") {
            let mut bytes = [0; 4096];
            let length = stream.read(&mut bytes).unwrap();
            text.push_str(&String::from_utf8_lossy(&bytes[..length]));
            while text.contains(&format!("CSeq: {number}\r\n")) {
                let channels = text.rfind("interleaved=").map(|at| &text[at + 12..at + 15]);
                let transport = format!("RTP/AVP/TCP;unicast;interleaved={}", channels.unwrap_or("0-1"));
                let reply =
                    format!("RTSP/1.0 200 OK\r\nCSeq: {number}\r\nSession: 1\r\nTransport: {transport}\r\n\r\n");
                std::io::Write::write_all(&mut stream, reply.as_bytes()).unwrap();
                number += 1;
            }
        }
        stream
    };
    (port, std::thread::spawn(serve))
}

#[test]
fn a_destination_that_hangs_delays_nobody_and_is_left() {
    clips::folder();
    let (hung, serving) = hung_server();
    let port = free_port();
    let good = reader(&["-i", &format!("srt://127.0.0.1:{port}?mode=listener")], "0:v", 400);
    let pushes = format!("live/cam rtsp://127.0.0.1:{hung}/x,live/cam srt://127.0.0.1:{port}");
    let server = serve(&["--push", &pushes]);
    // Much more than the buffers of the hung connection hold.
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-re", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25"]);
    command.args([
        "-c:v",
        "libx264",
        "-preset",
        "ultrafast",
        "-b:v",
        "12M",
        "-minrate",
        "12M",
        "-g",
        "25",
        "-f",
        "rtsp",
    ]);
    command.args(["-rtsp_transport", "tcp", &rtsp(&server, "live/cam")]).stdout(Stdio::null()).stderr(Stdio::null());
    let _publisher = Running(command.spawn().unwrap());
    let stream = serving.join().unwrap();
    assert_eq!(hashes(good).len(), 400);
    eventually("the hung destination is left", || server.log_text().contains("it took no bytes for 10 s"));
    drop(stream);
}

/// GStreamer's RTSP server takes a stream and writes its pictures into a file.
const RECORDER: &str = r#"
import sys, gi
gi.require_version("Gst", "1.0"); gi.require_version("GstRtspServer", "1.0")
from gi.repository import Gst, GstRtspServer, GLib
Gst.init(None)
server = GstRtspServer.RTSPServer(); server.set_service(sys.argv[1]); server.set_address("127.0.0.1")
factory = GstRtspServer.RTSPMediaFactory()
factory.set_transport_mode(GstRtspServer.RTSPTransportMode.RECORD)
factory.set_launch("( rtph264depay name=depay0 ! h264parse ! video/x-h264,stream-format=byte-stream ! filesink async=false location=%s rtpmp4gdepay name=depay1 ! fakesink async=false )" % sys.argv[2])
server.get_mount_points().add_factory("/in", factory); server.attach(None)
GLib.MainLoop().run()
"#;

#[test]
fn the_rtsp_server_of_gstreamer_takes_a_stream() {
    if !has_gstreamer() {
        return;
    }
    clips::folder();
    let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
    let file = folder.path().join("got.h264");
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", RECORDER, &port.to_string()]).arg(&file);
    let far = Running(command.stdout(Stdio::null()).spawn().unwrap());
    wait_for_port(port, &file);
    let server = serve(&["--push", &format!("live/cam rtsp://127.0.0.1:{port}/in")]);
    let _publisher = push_clip("tcp", &rtsp(&server, "live/cam"));
    eventually("pictures are written", || std::fs::metadata(&file).is_ok_and(|file| file.len() > 200_000));
    drop(far);
    let pictures = hashes(reader(&["-f", "h264", "-i", file.to_str().unwrap()], "0:v", 50));
    assert!(is_of_clip(&pictures, 50));
}

#[test]
fn bad_destinations_are_refused_with_their_cure() {
    for (push, words) in [
        ("live/cam", "PATH URL"),
        ("live/cam ftp://h/x", "expected a URL that begins with"),
        ("live/cam srt://h", "expected a host and a port"),
        ("live/cam udp://239.1.1.1:5000?ttl=0", "ttl=1 to 255"),
        ("live/cam rtsp://u:hush@", "a host behind rtsp://"),
    ] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_millpond")).args(["check", "live=publish:", "--push", push]).output();
        let output = output.unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(!output.status.success() && said.contains(words) && !said.contains("hush"), "{push}: {said}");
    }
}
