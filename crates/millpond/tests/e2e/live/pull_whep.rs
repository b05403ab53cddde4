//! Streams that are pulled from WHEP endpoints: a second Millpond, and str0m, which is somebody else's.

use crate::{
    live::{
        publish::{hashes, reader},
        pull::until_state,
        webrtc::seen,
    },
    support::{
        Running, Server, clips, free_port, have, request,
        webrtc::{self, PATIENCE, Viewer, packets, place, send},
        whep_endpoint::{WhepEndpoint, WhepHabits},
        whip::{Publisher, Sending},
        whip_endpoint::{Listener, reply},
    },
};
use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// 9 seconds, 25 pictures a second, key frames four seconds apart with their parameter sets, no B-frames, Opus.
const CLIP: &str = "V S -c:v libx264 -x264-params repeat-headers=1 -g 100 -bf 0 -sc_threshold 0 -c:a libopus";
/// Seconds of it.
const LENGTH: f64 = 9.0;
/// Pictures of a group.
const GROUP: usize = 100;

/// The clip, in a folder. `None` where ffmpeg is missing.
fn clip() -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let clip = folder.path().join("clip.mp4");
    have("ffmpeg").then(|| clips::make(&clip, CLIP))?;
    Some((folder, clip))
}

/// A server that pulls from an address, with a port of WebRTC for viewers.
fn pull(address: &str, more: &[&str]) -> Server {
    let (place, port) = (format!("tv=whep+http://{address}"), format!("127.0.0.1:{}", free_port()));
    Server::start(&[&[&*place, "--linger", "0s", "--webrtc", &*port], more].concat())
}

fn by_rtsp(server: &Server) -> String {
    format!("rtsp://127.0.0.1:{}/tv", server.rtsp)
}

/// A viewer by RTSP that goes on.
fn watch(server: &Server) -> Running {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-rtsp_transport", "tcp", "-i", &by_rtsp(server)]);
    Running(command.args(["-c", "copy", "-f", "null", "-"]).spawn().unwrap())
}

#[track_caller]
fn eventually(words: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "never: {words}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Checks that decoded pictures are those of a clip, from a key frame on.
#[track_caller]
fn assert_decoded(server: &Server, clip: &Path, count: usize) {
    let decoded = hashes(reader(&["-rtsp_transport", "tcp", "-i", &by_rtsp(server)], "0:v", count));
    let source = hashes(reader(&["-i", clip.to_str().unwrap()], "0:v", 1000));
    assert_eq!(decoded.len(), count);
    assert!(place(&decoded, &source).is_multiple_of(GROUP), "a key frame first");
}

/// Takes pictures and sound of a stream, and checks that none is missing.
#[track_caller]
fn assert_complete(server: &Server, clip: &Path, (pictures, sounds): (usize, usize)) -> Viewer {
    let mut viewer = Viewer::new(server, "tv");
    viewer.receive(|viewer| viewer.pictures.len() > pictures && viewer.sounds.len() > sounds);
    let (video, sound) = (packets(clip, "v:0"), packets(clip, "a:0"));
    place(&seen(&viewer), &webrtc::pictures(&video));
    let came: Vec<&[u8]> = viewer.sounds.iter().map(|data| &*data.data).collect();
    let known: Vec<&[u8]> = sound.iter().map(|packet| &*packet.bytes).collect();
    place(&came, &known);
    viewer
}

/// A second Millpond, whose viewers need a password.
fn far() -> (Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let (users, config) = (folder.path().join("users"), folder.path().join("millpond.toml"));
    std::fs::write(&users, "ann:secret\n").unwrap();
    let text = format!("[places.live]\nurl = \"publish:\"\naccess-users = \"{}\"\n", users.display());
    std::fs::write(&config, text).unwrap();
    let port = format!("127.0.0.1:{}", free_port());
    let server = Server::start(&["--config", config.to_str().unwrap(), "--linger", "0s", "--webrtc", &port]);
    (server, folder)
}

/// The count of sessions of WebRTC viewers is waited for.
#[track_caller]
fn until_viewers(server: &Server, count: usize) {
    webrtc::until_sessions(server, "playing", count);
}

#[test]
fn every_picture_and_packet_of_sound_of_a_second_millpond_reaches_viewers() {
    let Some((_folder, clip)) = clip() else { return };
    let (far, _users) = far();
    let _publisher = Publisher::start(&far, "live/cam", (&clip, LENGTH), 0);
    let may = [("Authorization", "Bearer ann:secret")];
    eventually("published", || request(far.port, "GET", "/live/cam/index.m3u8", &may).status == 200);
    let near = pull(&format!("ann:secret@127.0.0.1:{}/live/cam/whep", far.port), &[]);
    let viewer = assert_complete(&near, &clip, (250, 300));
    until_viewers(&far, 1);
    assert_decoded(&near, &clip, 150);
    assert_eq!(send(near.port, "DELETE", &viewer.session, &[], "").status, 200);
    // The session is ended by its request, and not by silence.
    until_viewers(&far, 0);
    let log = near.log_text();
    assert!(!log.contains("secret"), "{log}");
}

#[test]
fn every_picture_of_an_endpoint_of_str0m_reaches_viewers_although_packets_get_lost() {
    let Some((_folder, clip)) = clip() else { return };
    let habits = WhepHabits { loss: 60, ..WhepHabits::default() };
    let endpoint = WhepEndpoint::start(free_port(), (clip.clone(), LENGTH), habits);
    let near = pull(&format!("127.0.0.1:{}/cam/whep?key=hush", endpoint.port()), &[]);
    let mut viewer = Viewer::new(&near, "tv");
    viewer.receive(|viewer| viewer.pictures.len() > 300 && viewer.sounds.len() > 350);
    place(&seen(&viewer), &webrtc::pictures(&packets(&clip, "v:0")));
    let sound = packets(&clip, "a:0");
    let known: Vec<&[u8]> = sound.iter().map(|packet| &*packet.bytes).collect();
    assert!(viewer.sounds.iter().all(|data| known.contains(&&*data.data)), "sound of the clip");
    assert!(endpoint.sum(Sending::lost) > 10);
    let (offer, answer) = endpoint.described.lock().unwrap().clone();
    assert!(offer.matches("a=recvonly").count() == 2 && !offer.contains("a=candidate"), "{offer}");
    assert!(answer.contains("a=sendonly"), "{answer}");
    let source = crate::support::api::items(near.admin, "streams")[0]["source"].to_string();
    assert!(!source.contains("hush"), "{source}");
    assert_eq!(send(near.port, "DELETE", &viewer.session, &[], "").status, 200);
    let ended = |sending: &Sending| usize::from(sending.is_closed());
    eventually("the connection is closed", || endpoint.sum(ended) == 1);
    eventually("the session is deleted", || endpoint.requests.lock().unwrap().len() == 2);
    assert_eq!(endpoint.requests.lock().unwrap()[..], ["POST /cam/whep?key=hush", "DELETE /session/1"]);
    assert!(!near.log_text().contains("hush"), "{}", near.log_text());
}

#[test]
fn the_format_that_is_sent_counts_where_an_answer_has_several() {
    let Some((_folder, clip)) = clip() else { return };
    let habits = WhepHabits { prefers_vp8: true, ..WhepHabits::default() };
    let endpoint = WhepEndpoint::start(free_port(), (clip.clone(), LENGTH), habits);
    let near = pull(&format!("127.0.0.1:{}/cam/whep", endpoint.port()), &[]);
    assert_decoded(&near, &clip, 120);
    let (_, answer) = endpoint.described.lock().unwrap().clone();
    let map = answer.lines().find(|line| line.contains(" VP8/90000")).unwrap().to_owned();
    let number = map.strip_prefix("a=rtpmap:").and_then(|map| map.split(' ').next()).unwrap();
    assert!(answer.contains(&format!("m=video 9 UDP/TLS/RTP/SAVPF {number} ")), "{answer}");
}

#[test]
fn viewers_stay_while_an_endpoint_is_lost() {
    let Some((_folder, clip)) = clip() else { return };
    let port = free_port();
    let habits = WhepHabits { authorization: Some("Bearer key/1"), ..WhepHabits::default() };
    let first = WhepEndpoint::start(port, (clip.clone(), LENGTH), habits);
    let near = pull(&format!("key%2F1@127.0.0.1:{port}/cam/whep"), &[]);
    let mut viewer = watch(&near);
    until_state(&near, "running");
    // It is gone without a word, as a server that was killed.
    drop(first);
    let asked = Arc::<AtomicUsize>::default();
    let count = asked.clone();
    let full = Listener::start(port, move |request| {
        // The lost session is deleted here too.
        count.fetch_add(usize::from(request.method == "POST"), Ordering::Relaxed);
        reply("503 Service Unavailable", "Retry-After: 8\r\n", "full up")
    });
    let why = until_state(&near, "lost");
    assert!(why.contains("no frame for") || why.contains("no room"), "{why}");
    eventually("asked again", || asked.load(Ordering::Relaxed) > 0);
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(asked.load(Ordering::Relaxed), 1, "the server asked for 8 seconds");
    let why = until_state(&near, "lost");
    assert!(why.contains("no room") && why.contains("full up"), "{why}");
    drop(full);
    let _second = WhepEndpoint::start(port, (clip.clone(), LENGTH), habits);
    until_state(&near, "running");
    assert!(viewer.0.try_wait().unwrap().is_none(), "the viewer has left");
    assert_decoded(&near, &clip, 50);
    let log = near.log_text();
    assert!(!log.contains("key/1") && !log.contains("key%2F1"), "{log}");
}

#[test]
fn a_refusal_names_the_cure() {
    let (far, _users) = far();
    let without = Server::start(&["live=publish:"]);
    for (address, status, words) in [
        (format!("ann:hush@127.0.0.1:{}/live/cam/whep", far.port), 502, "status 401"),
        (format!("127.0.0.1:{}/live/cam/whep?key=hush", far.port), 502, "whep+https://TOKEN@HOST/PATH"),
        (format!("127.0.0.1:{}/none/cam/whep?key=hush", far.port), 404, "no stream is at this path"),
        (format!("127.0.0.1:{}/live/cam/whep?key=hush", without.port), 404, "turn WebRTC on at the server"),
        (format!("127.0.0.1:{}/live/cam/whep?key=hush", free_port()), 502, "no reply to the offer"),
        (format!("ann:secret@127.0.0.1:{}/live/cam/whep?key=hush", far.port), 504, "is the stream published there"),
    ] {
        let near = pull(&address, &["--source-timeout", "3s"]);
        let refused = near.get("tv/index.m3u8");
        let text = refused.text();
        assert!(refused.status == status && text.contains(words), "{address}: {} {text}", refused.status);
        let log = near.log_text();
        assert!(!text.contains("hush") && !log.contains("hush"), "{text} {log}");
    }
}

#[test]
fn an_endpoint_that_is_none_is_refused() {
    let created = |body: &str| reply("201 Created", "Location: /s\r\n", body);
    let rejected = "v=0\r\nm=video 0 UDP/TLS/RTP/SAVPF 96\r\nm=audio 0 UDP/TLS/RTP/SAVPF 0\r\n";
    let unreached = "v=0\r\na=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuv\r\na=fingerprint:sha-256 FP\r\n\
                     m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:0\r\na=rtcp-mux\r\na=sendonly\r\na=rtpmap:96 H264/90000\r\n";
    let unreached = unreached.replace("FP", &["00"; 32].join(":"));
    let reached = format!("{unreached}a=candidate:1 1 udp 1 127.0.0.1 9 typ host\r\n");
    let deaf = reached.replace("a=sendonly", "a=recvonly");
    for (answer, words) in [
        (reply("200 OK", "Content-Type: text/html\r\n", "<html>hello</html>"), "expected 201"),
        (reply("406 Not Acceptable", "Content-Type: application/sdp\r\n", "v=0\r\n"), "counter-offer"),
        (reply("503 Service Unavailable", "", r#"{"detail":"full up"}"#), "full up"),
        (reply("307 Temporary Redirect", "Location: http://192.0.2.1/\r\n", ""), "leads to another host"),
        (created("<html>"), "expected a session description"),
        (created(rejected), "accepts no section"),
        (created(&unreached), "a=candidate"),
        (created(&deaf), "the answer sends nothing"),
        (created(&reached), "no check of ICE was answered by 127.0.0.1:9"),
    ] {
        let shown = answer.chars().take(200).collect::<String>();
        let listener = Listener::start(free_port(), move |_| answer.clone());
        let near = pull(&format!("127.0.0.1:{}/cam/whep", listener.port), &["--source-timeout", "2s"]);
        let refused = near.get("tv/index.m3u8");
        let text = refused.text();
        assert!(refused.status >= 500 && text.contains(words), "{shown}: {} {text}", refused.status);
        assert_eq!(near.get("tv/other/index.m3u8").status, 404);
    }
}
