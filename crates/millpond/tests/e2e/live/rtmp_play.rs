//! Streams that players take by RTMP, and streams of RTMP servers as sources.

use crate::{
    live::publish::{CLIP, assert_of_clip, hashes, reader, serve, until_logged, until_published},
    support::{Running, Server, api::items, clips, free_port, have, wait_for_port},
};
use serde_json::{Value, json};
use std::{
    io::Read as _,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// A server that takes and sends streams by RTMP, and its port.
fn serve_rtmp(more: &[&str]) -> (Server, u16) {
    let port = free_port();
    let server = serve(&[&["--rtmp", &format!("127.0.0.1:{port}")], more].concat());
    wait_for_port(port, &server.log);
    (server, port)
}

fn url(port: u16, path: &str) -> String {
    format!("rtmp://127.0.0.1:{port}/{path}")
}

/// Sends files round and round, with maps and a format.
fn push(files: &[&str], format: &[&str], url: &str) -> Running {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin"]);
    for file in files {
        command.args(["-re", "-stream_loop", "-1", "-i"]).arg(clips::folder().join(file));
    }
    command.args(["-c", "copy"]).args(format).arg(url);
    Running(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
}

/// Pushes the clip by RTMP.
fn push_clip(url: &str) -> Running {
    push(&[CLIP], &["-map", "0:v:0", "-map", "0:a:0", "-f", "flv"], url)
}

/// Hashes of the first frames of a track as they are stored, without a decoder.
fn stored(input: &str, track: &str, count: usize) -> Vec<String> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-i", input, "-map", track, "-c", "copy"]);
    command.args(["-frames", &count.to_string(), "-f", "framemd5", "-"]);
    hashes(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

#[test]
fn every_picture_reaches_players() {
    let clip = clips::folder().join(CLIP);
    let (server, port) = serve_rtmp(&[]);
    let address = url(port, "live/cam");
    // The first player comes before the publisher.
    let early = reader(&["-i", &address], "0:v", 100);
    std::thread::sleep(Duration::from_millis(300));
    let publisher = push_clip(&address);
    assert_of_clip(&hashes(early), 100);
    assert_of_clip(&hashes(reader(&["-i", &address], "0:v", 100)), 100);
    let sound = reader(&["-t", "1", "-i", &address], "0:a", 1000);
    assert!(hashes(sound).len() > 20);
    // The bytes of pictures are those of the file.
    let (source, sent) = (stored(clip.to_str().unwrap(), "0:v", 1000), stored(&address, "0:v", 60));
    let offset = source.iter().position(|hash| *hash == sent[0]).expect("a picture of the clip");
    let whole: Vec<_> = source.iter().cycle().skip(offset).take(sent.len()).cloned().collect();
    assert_eq!(sent, whole);
    let mut probe = Command::new("ffprobe");
    probe.args(["-v", "error", "-show_entries", "stream=codec_name,width", "-of", "csv=p=0", &address]);
    let found = String::from_utf8(probe.output().unwrap().stdout).unwrap();
    assert!(found.contains("h264,") && found.contains("aac"), "{found}");
    until_logged(&server, &["RTMP session ended", "\"method\":\"PLAY\"", "live/cam"]);
    // A player whose stream ends is told so.
    let last = reader(&["-i", &address], "0:v", 100_000);
    until_logged(&server, &["RTMP session plays"]);
    std::thread::sleep(Duration::from_secs(2));
    drop(publisher);
    assert!(hashes(last).len() > 20);
    until_logged(&server, &["RTMP session ended", "the stream ended"]);
}

#[test]
fn operators_see_and_end_sessions() {
    clips::folder();
    let (server, port) = serve_rtmp(&["--statistics-file", "off"]);
    let address = url(port, "live/cam");
    let mut publisher = push_clip(&address);
    until_published(&server, "live/cam");
    let player = reader(&["-i", &address], "0:v", 100_000);
    let of_kind = |kind: &str| {
        let began = Instant::now();
        loop {
            let sessions = items(server.admin, &format!("sessions?kind={kind}"));
            if let Some(session) = sessions.as_array().unwrap().iter().find(|session| session["bytes"] != 0) {
                return session.clone();
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{}", server.log_text());
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let (viewer, sender) = (of_kind("rtmp"), of_kind("publish"));
    assert_eq!((&viewer["asset"], &viewer["state"]), (&json!("live/cam"), &json!("playing")));
    assert_eq!((&sender["asset"], &sender["state"]), (&json!("live/cam"), &json!("publishing")));
    let began = Instant::now();
    while server.metric("millpond_viewers", "protocol=\"rtmp\"") != 1.0 {
        assert!(began.elapsed() < Duration::from_secs(60), "no viewer is counted");
        std::thread::sleep(Duration::from_millis(200));
    }
    let kick = |session: &Value| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        command.args(["sessions", "kick", session["id"].as_str().unwrap(), "--admin"]);
        assert!(command.arg(format!("127.0.0.1:{}", server.admin)).status().unwrap().success());
    };
    kick(&viewer);
    assert!(hashes(player).len() > 2, "ffmpeg ends by itself");
    until_logged(&server, &["RTMP session ended", "\"method\":\"PLAY\"", "an operator ended it"]);
    kick(&sender);
    publisher.0.wait().unwrap();
    until_logged(&server, &["RTMP session ended", "\"method\":\"PUBLISH\"", "an operator ended it"]);
    assert_eq!(items(server.admin, "sessions"), json!([]));
    assert_eq!(server.metric("millpond_rtmp_viewers_ended_total", "reason=\"operator\""), 1.0);
}

#[test]
fn other_players_play() {
    if !have("gst-launch-1.0") || !have("mpv") {
        return;
    }
    clips::folder();
    let (server, port) = serve_rtmp(&[]);
    let address = url(port, "live/cam");
    let _publisher = push_clip(&address);
    until_published(&server, "live/cam");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("got.flv");
    let mut gstreamer = Command::new("gst-launch-1.0");
    gstreamer.args(["-q", "rtmp2src", &format!("location={address}"), "!", "filesink"]);
    gstreamer.arg(format!("location={}", file.display()));
    let gstreamer = Running(gstreamer.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let mut mpv = Command::new("mpv");
    mpv.args(["--no-config", "--vo=null", "--ao=null", "--frames=50", &address]).stdout(Stdio::null());
    assert!(mpv.status().unwrap().success());
    std::thread::sleep(Duration::from_secs(4));
    drop(gstreamer);
    assert_of_clip(&hashes(reader(&["-i", file.to_str().unwrap()], "0:v", 80)), 80);
}

/// Message of ffmpeg when it can't play.
fn refused(address: &str) -> String {
    let mut player = reader(&["-i", address], "0:v", 10);
    let mut said = String::new();
    player.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(!player.wait().unwrap().success());
    said
}

#[test]
fn viewers_have_passwords_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let (users, config) = (folder.path().join("users"), folder.path().join("a.toml"));
    std::fs::write(&users, "ann:sesame\n").unwrap();
    let port = free_port();
    // The rules of viewers; publishers of this machine need none.
    let text = format!(
        "rtmp = \"127.0.0.1:{port}\"\naccess-users = {users:?}\npublish-open = true\n[places]\nlive = \"publish:\"\n",
        users = users.display().to_string()
    );
    std::fs::write(&config, text).unwrap();
    let server = Server::start(&["--config", config.to_str().unwrap(), "--linger", "0s"]);
    wait_for_port(port, &server.log);
    let _publisher = push_clip(&url(port, "live/cam"));
    until_logged(&server, &["RTMP session publishes"]);
    for query in ["", "?user=ann&pass=guess"] {
        refused(&url(port, &format!("live/cam{query}")));
    }
    until_logged(&server, &["RTMP viewer refused", "this needs a user and a password"]);
    let player = reader(&["-i", &url(port, "live/cam?user=ann&pass=sesame")], "0:v", 50);
    assert_of_clip(&hashes(player), 50);
    let log = server.log_text();
    assert!(!log.contains("sesame") && !log.contains("guess"), "{log}");
}

/// A server that pulls streams of an RTMP server.
fn pull(address: &str, more: &[&str]) -> Server {
    Server::start(&[&[&*format!("tv={address}"), "--linger", "0s"], more].concat())
}

fn by_http(server: &Server, path: &str) -> String {
    server.url(&format!("{path}/stream.mp4"))
}

#[test]
fn a_stream_is_pulled_from_another_millpond() {
    clips::folder();
    let (server, port) = serve_rtmp(&[]);
    let _publisher = push_clip(&url(port, "live/cam"));
    until_published(&server, "live/cam");
    let whole = pull(&url(port, "live/cam"), &[]);
    assert_of_clip(&hashes(reader(&["-i", &by_http(&whole, "tv")], "0:v", 100)), 100);
    // A name below the application.
    let names = pull(&url(port, "live"), &[]);
    let by_rtsp = format!("rtsp://127.0.0.1:{}/tv/cam", names.rtsp);
    assert_of_clip(&hashes(reader(&["-rtsp_transport", "tcp", "-i", &by_rtsp], "0:v", 100)), 100);
    let sound = reader(&["-t", "1", "-i", &by_http(&names, "tv/cam")], "0:a", 1000);
    assert!(hashes(sound).len() > 20);
}

/// Waits until a program listens on a port, without a connection: ffmpeg takes one only. A busy machine needs seconds for that.
fn until_listening(port: u16) {
    let (began, local) = (Instant::now(), format!(":{port:04X} 00000000:0000 0A"));
    while !std::fs::read_to_string("/proc/net/tcp").unwrap().contains(&local) {
        assert!(began.elapsed() < Duration::from_secs(60), "nobody listens on {port}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_source_of_ffmpeg_is_pulled_again_when_it_comes_back() {
    clips::folder();
    let port = free_port();
    let address = url(port, "live/cam");
    let listen = ["-map", "0:v:0", "-map", "0:a:0", "-f", "flv", "-listen", "1"];
    let first = push(&[CLIP], &listen, &address);
    until_listening(port);
    let server = pull(&address, &[]);
    let viewer = reader(&["-rtsp_transport", "tcp", "-i", &format!("rtsp://127.0.0.1:{}/tv", server.rtsp)], "0:v", 150);
    std::thread::sleep(Duration::from_secs(4));
    drop(first);
    until_logged(&server, &["source lost"]);
    let _second = push(&[CLIP], &listen, &address);
    assert_eq!(hashes(viewer).len(), 150, "the viewer stays");
    // Nobody listens there.
    let none = pull(&url(free_port(), "live/cam?pass=secret"), &["--source-timeout", "2s"]);
    let mut player = reader(&["-i", &by_http(&none, "tv")], "0:v", 1);
    assert!(!player.wait().unwrap().success());
    let log = none.log_text();
    assert!(log.contains("Connection refused") && !log.contains("secret"), "{log}");
}

/// Checks that at least all but two of the first frames of a track are those of a file.
fn assert_of_file(address: &str, (track, count): (&str, usize), (file, kind): (&str, &str)) {
    let (found, known) =
        (stored(address, track, count), stored(clips::folder().join(file).to_str().unwrap(), kind, 1000));
    let same = found.iter().filter(|hash| known.contains(hash)).count();
    assert!(same + 2 >= count && found.len() == count, "{track} of {file}: {same} of {}", found.len());
}

/// Files with pictures, and files with sound.
const CODECS: [(&str, &str); 3] = [("av1.mp4", "opus.mp4"), ("vp9_opus.mp4", "ac3.mp4"), ("hevc_hvc1.mp4", "eac3.mp4")];

#[test]
fn other_codecs_reach_another_millpond() {
    for (pictures, sound) in CODECS {
        let folder = tempfile::tempdir().unwrap();
        let mut make = Command::new("ffmpeg");
        make.args(["-v", "error", "-nostdin", "-i"]).arg(clips::folder().join(pictures));
        make.arg("-i").arg(clips::folder().join(sound)).args(["-map", "0:v:0", "-map", "1:a:0", "-c", "copy"]);
        assert!(make.arg(folder.path().join("film.mp4")).status().unwrap().success());
        let port = free_port();
        let (place, rtmp) = (format!("films={}", folder.path().display()), format!("127.0.0.1:{port}"));
        let server = Server::start(&[&place, "--rtsp-channels", "news=films/film.mp4", "--rtmp", &rtmp]);
        wait_for_port(port, &server.log);
        let other = pull(&url(port, "news"), &[]);
        assert_of_file(&by_http(&other, "tv"), ("0:v", 60), (pictures, "0:v"));
        assert_of_file(&by_http(&other, "tv"), ("0:a", 30), (sound, "0:a"));
    }
}

#[test]
fn several_tracks_of_sound_reach_another_millpond() {
    clips::folder();
    let (server, port) = serve_rtmp(&[]);
    let (files, maps) =
        ([CLIP, "aac_44100.m4a", "opus.mp4"], ["-map", "0:v:0", "-map", "0:a:0", "-map", "1:a", "-map", "2:a"]);
    let rtsp = ["-f", "rtsp", "-rtsp_transport", "tcp"];
    let by_rtsp = format!("rtsp://127.0.0.1:{}/live/cam", server.rtsp);
    let _publisher = push(&files, &[&maps[..], &rtsp].concat(), &by_rtsp);
    until_published(&server, "live/cam");
    let other = pull(&url(port, "live/cam"), &[]);
    for (track, file) in [("0:a:0", CLIP), ("0:a:1", "aac_44100.m4a"), ("0:a:2", "opus.mp4")] {
        assert_of_file(&by_http(&other, "tv"), (track, 30), (file, "0:a"));
    }
}

/// nginx with its module of RTMP; `None` where it is not installed.
fn nginx(folder: &Path) -> Option<(Running, u16)> {
    let module = Path::new("/usr/lib/nginx/modules/ngx_rtmp_module.so");
    if !module.exists() || !have("nginx") {
        return None;
    }
    let port = free_port();
    let config = folder.join("nginx.conf");
    let text = format!(
        "load_module {};\ndaemon off;\nmaster_process off;\npid {dir}/pid;\nerror_log {dir}/error.log;\nevents {{}}\n\
         rtmp {{ server {{ listen 127.0.0.1:{port}; application live {{ live on; }} }} }}\n",
        module.display(),
        dir = folder.display()
    );
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new("nginx");
    command.args(["-e"]).arg(folder.join("begin.log")).arg("-c").arg(&config).stderr(Stdio::null());
    Some((Running(command.spawn().unwrap()), port))
}

#[test]
fn a_stream_is_pulled_from_nginx() {
    clips::folder();
    let folder = tempfile::tempdir().unwrap();
    let Some((_nginx, port)) = nginx(folder.path()) else { return };
    let began = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(began.elapsed() < Duration::from_secs(10), "nginx does not listen");
        std::thread::sleep(Duration::from_millis(50));
    }
    let _publisher = push_clip(&url(port, "live/cam"));
    let server = pull(&url(port, "live"), &[]);
    assert_of_clip(&hashes(reader(&["-i", &by_http(&server, "tv/cam")], "0:v", 100)), 100);
}
