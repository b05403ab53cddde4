//! Streams that are pushed to WHIP endpoints: a second Millpond, and str0m, which is somebody else's.

use crate::{
    live::{
        publish::{hashes, reader, until_published},
        webrtc::{publish, seen},
    },
    support::{
        Running, Server,
        api::{items, send},
        clips, free_port, have, request,
        webrtc::{self, Viewer, is_key, packets, place, slices},
        whip_endpoint::{Endpoint, Habits, Listener, reply},
    },
};
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};
use str0m::media::MediaData;

/// Far more than anything here takes, also on a busy machine.
const LONG: Duration = Duration::from_secs(60);
/// 9 seconds, 25 pictures a second, key frames a second apart, no B-frames, Opus.
const CLIP: &str = "V S -c:v libx264 -g 25 -bf 0 -sc_threshold 0 -c:a libopus";
/// The same with B-frames and AAC.
const REORDERED: &str = "V S -c:v libx264 -g 25 -bf 2 -sc_threshold 0 -c:a aac";
/// Pictures of a group.
const GROUP: usize = 25;

/// A clip in a folder. `None` where ffmpeg is missing.
fn clip(args: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let clip = folder.path().join("clip.mp4");
    have("ffmpeg").then(|| clips::make(&clip, args))?;
    Some((folder, clip))
}

fn serve(more: &[&str]) -> Server {
    Server::start(&[&["live=publish:", "--linger", "0s"], more].concat())
}

/// A server to which a clip is pushed as `live/cam`, and which pushes it to a URL.
fn pushing(args: &str, url: &str) -> Option<(Server, Running, PathBuf, tempfile::TempDir)> {
    let (folder, clip) = clip(args)?;
    let server = serve(&["--push", &format!("live/cam {url}")]);
    let publisher = publish(&server, &clip);
    Some((server, publisher, clip, folder))
}

/// Attaches a module that pushes.
fn attach(server: &Server, url: &str) -> (u16, String) {
    let body = json!({ "stream": "live/cam", "kind": "push", "options": { "url": url } });
    let reply = send(server.admin, "POST", "modules", &body, &[]);
    (reply.status, reply.text())
}

#[track_caller]
fn eventually(words: &str, limit: Duration, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < limit, "{words}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn state(server: &Server) -> String {
    items(server.admin, "modules")[0]["state"].as_str().unwrap_or_default().to_owned()
}

/// The slices of pictures.
fn slices_of(pictures: &[MediaData]) -> Vec<Vec<&[u8]>> {
    pictures.iter().map(|picture| slices(&picture.data)).collect()
}

#[test]
fn every_picture_and_packet_of_sound_reaches_a_second_millpond() {
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    std::fs::write(&users, "ann:secret\n").unwrap();
    let (far, _) = webrtc::serve(&["--publish-users", users.to_str().unwrap()]);
    let url = format!("http://ann:secret@127.0.0.1:{}/live/copy/whip", far.port);
    let Some((near, publisher, clip, _folder)) = pushing(CLIP, &url) else { return };
    until_published(&far, "live/copy");
    let rtsp = format!("rtsp://127.0.0.1:{}/live/copy", far.rtsp);
    let decoded = hashes(reader(&["-rtsp_transport", "tcp", "-i", &rtsp], "0:v", 100));
    let source = hashes(reader(&["-i", clip.to_str().unwrap()], "0:v", 1000));
    assert!(place(&decoded, &source).is_multiple_of(GROUP), "a key frame first");
    let mut viewer = Viewer::new(&far, "live/copy");
    viewer.receive(|viewer| viewer.pictures.len() > 100 && viewer.sounds.len() > 150);
    let (video, sound) = (packets(&clip, "v:0"), packets(&clip, "a:0"));
    place(&seen(&viewer), &webrtc::pictures(&video));
    let came: Vec<&[u8]> = viewer.sounds.iter().map(|data| &*data.data).collect();
    place(&came, &sound.iter().map(|packet| &*packet.bytes).collect::<Vec<_>>());
    assert_eq!(state(&near), "running");
    webrtc::until_sessions(&far, "publishing", 1);
    drop(publisher);
    webrtc::until_sessions(&far, "publishing", 0);
    let log = near.log_text();
    assert!(!log.contains("secret"), "{log}");
    let listed = items(near.admin, "modules").to_string();
    assert!(!listed.contains("secret"), "{listed}");
}

#[test]
fn an_endpoint_of_str0m_gets_every_picture_although_packets_get_lost() {
    let endpoint = Endpoint::start(free_port(), Habits { loss: 15, ..Habits::default() });
    let url = format!("http://127.0.0.1:{}/in/cam?token=hush", endpoint.port());
    let Some((near, publisher, clip, _folder)) = pushing(CLIP, &url) else { return };
    let received = &endpoint.received;
    let counts = || (received.pictures.lock().unwrap().len(), received.sounds.lock().unwrap().len());
    eventually("media arrives", LONG, || counts().0 > 150 && counts().1 > 200);
    let (video, sound) = (packets(&clip, "v:0"), packets(&clip, "a:0"));
    {
        let pictures = received.pictures.lock().unwrap();
        assert!(is_key(&pictures[0]), "a key frame first");
        place(&slices_of(&pictures), &webrtc::pictures(&video));
        let times: Vec<u64> = pictures.iter().map(|picture| picture.time.numer()).collect();
        assert!(times.windows(2).all(|two| two[0] < two[1]), "times rise: {times:?}");
        // The clip goes round.
        let even = times.windows(2).filter(|two| two[1] - two[0] == 3600).count();
        assert!(even > times.len() * 9 / 10, "a 25th of a second: {times:?}");
        let sounds = received.sounds.lock().unwrap();
        let known: Vec<&[u8]> = sound.iter().map(|packet| &*packet.bytes).collect();
        assert!(sounds.iter().all(|data| known.contains(&&*data.data)), "sound of the clip");
    }
    assert!(received.lost.load(Ordering::Relaxed) > 10);
    let offer = received.offer.lock().unwrap().clone();
    assert!(offer.contains("a=group:BUNDLE 0 1") && offer.contains("a=ssrc-group:FID "), "{offer}");
    assert_eq!(received.requests.lock().unwrap()[..], ["POST /in/cam?token=hush"]);
    drop(publisher);
    eventually("the connection is closed", LONG, || received.is_closed.load(Ordering::Relaxed));
    eventually("the session is deleted", LONG, || {
        received.requests.lock().unwrap().last().is_some_and(|last| last == "DELETE /session/1")
    });
    assert!(!near.log_text().contains("hush"), "{}", near.log_text());
}

#[test]
fn pictures_leave_in_their_order_of_display_and_aac_stays_behind() {
    let endpoint = Endpoint::start(free_port(), Habits::default());
    let url = format!("http://127.0.0.1:{}/in/cam", endpoint.port());
    let Some((near, _publisher, clip, _folder)) = pushing(REORDERED, &url) else { return };
    let received = &endpoint.received;
    eventually("media arrives", LONG, || received.pictures.lock().unwrap().len() > 40);
    let pictures = received.pictures.lock().unwrap();
    assert!(pictures.windows(2).all(|two| two[0].time.numer() < two[1].time.numer()), "times rise");
    let video = packets(&clip, "v:0");
    let known = webrtc::pictures(&video);
    assert!(slices_of(&pictures).iter().all(|picture| known.contains(picture)));
    assert_eq!(received.sounds.lock().unwrap().len(), 0);
    assert!(!received.offer.lock().unwrap().contains("m=audio"));
    let log = near.log_text();
    assert!(log.contains("sound is left out of the push by WHIP"), "{log}");
}

#[test]
fn an_endpoint_that_was_killed_and_comes_back_is_pushed_to_again() {
    let port = free_port();
    let first = Endpoint::start(port, Habits { authorization: Some("Bearer key/1"), ..Habits::default() });
    let url = format!("http://key%2F1@127.0.0.1:{port}/in/cam");
    let Some((near, _publisher, _clip, _folder)) = pushing(CLIP, &url) else { return };
    eventually("media arrives", LONG, || first.received.pictures.lock().unwrap().len() > 20);
    assert_eq!(state(&near), "running");
    drop(first);
    eventually("the loss is noticed", 2 * LONG, || state(&near) == "waiting");
    let second = Endpoint::start(port, Habits { authorization: Some("Bearer key/1"), ..Habits::default() });
    eventually("media arrives again", LONG, || second.received.pictures.lock().unwrap().len() > 20);
    assert!(is_key(&second.received.pictures.lock().unwrap()[0]), "a key frame first");
    assert!(!near.log_text().contains("key/1") && !near.log_text().contains("key%2F1"), "{}", near.log_text());
}

/// A server with a stream `live/cam` that is not pushed yet.
fn published() -> Option<(Server, Running, tempfile::TempDir)> {
    let (folder, clip) = clip(CLIP)?;
    let server = serve(&[]);
    let publisher = publish(&server, &clip);
    Some((server, publisher, folder))
}

#[test]
fn a_refusal_names_the_endpoint_and_the_cure() {
    let Some((near, _publisher, _folder)) = published() else { return };
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    std::fs::write(&users, "ann:secret\n").unwrap();
    let (far, _) = webrtc::serve(&["--publish-users", users.to_str().unwrap()]);
    let without = serve(&[]);
    for (url, words) in [
        (format!("http://ann:hush@127.0.0.1:{}/live/cam/whip", far.port), "status 401"),
        (format!("http://127.0.0.1:{}/live/cam/whip?token=hush", far.port), "https://TOKEN@HOST/PATH"),
        (format!("http://127.0.0.1:{}/none/cam/whip", far.port), "no stream has this path"),
        (format!("http://127.0.0.1:{}/live/cam/whip", without.port), "turn WebRTC on at the server"),
        (format!("http://127.0.0.1:{}/live/cam/whip", free_port()), "no reply to the offer"),
    ] {
        let (status, problem) = attach(&near, &url);
        let (_, address) = url.split_once("127").unwrap();
        let shown = format!("http://127{}", address.split('?').next().unwrap());
        assert!(status == 502 && problem.contains(words) && problem.contains(&shown), "{url}: {status} {problem}");
        assert!(!problem.contains("hush"), "{problem}");
    }
    let taken = format!("http://ann:secret@127.0.0.1:{}/live/cam/whip", far.port);
    assert_eq!(attach(&near, &taken).0, 201);
    until_published(&far, "live/cam");
    let (status, problem) = attach(&near, &taken);
    assert!(status == 502 && problem.contains("status 409") && problem.contains("another publisher"), "{problem}");
    let log = near.log_text();
    assert!(!log.contains("hush") && !log.contains("secret"), "{log}");
}

#[test]
fn an_endpoint_that_answers_garbage_is_refused() {
    let Some((near, _publisher, _folder)) = published() else { return };
    let created = |body: &str| reply("201 Created", "Location: /s\r\n", body);
    let unbundled = "v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:0\r\na=rtcp-mux\r\na=ice-ufrag:abcd\r\n";
    for (answer, words) in [
        ("nonsense\r\n\r\n".to_owned(), "no reply to the offer"),
        (reply("200 OK", "Content-Type: text/html\r\n", "<html>hello</html>"), "expected 201"),
        (reply("302 Found", "Location: /other\r\n", ""), "only redirects with 307 and 308"),
        (reply("307 Temporary Redirect", "Location: http://192.0.2.1/\r\n", ""), "leads to another host"),
        (reply("307 Temporary Redirect", "Location: /again\r\n", ""), "more than 5 redirects"),
        (reply("503 Service Unavailable", "", r#"{"detail":"full up"}"#), "full up"),
        (created(""), "expected a session description"),
        (created(&"x".repeat(100_000)), "more than 65536 bytes"),
        (created("v=0\r\nm=video 0 UDP/TLS/RTP/SAVPF 96\r\n"), "accepts no section"),
        (created(unbundled), "a=ice-pwd"),
    ] {
        let shown = answer.chars().take(200).collect::<String>();
        let listener = Listener::start(free_port(), move |_| answer.clone());
        let (status, problem) = attach(&near, &format!("http://127.0.0.1:{}/in", listener.port));
        assert!(status == 502 && problem.contains(words), "{shown}: {status} {problem}");
    }
}

#[test]
fn redirects_on_the_host_are_followed() {
    let Some((near, _publisher, _folder)) = published() else { return };
    let endpoint = Endpoint::start(free_port(), Habits::default());
    let target = format!("Location: http://127.0.0.1:{}/there\r\n", endpoint.port());
    let listener = Listener::start(free_port(), move |_| reply("308 Permanent Redirect", &target, ""));
    let (status, attached) = attach(&near, &format!("http://127.0.0.1:{}/here", listener.port));
    assert_eq!(status, 201, "{attached}");
    eventually("media arrives", LONG, || endpoint.received.pictures.lock().unwrap().len() > 5);
    let attached: Value = serde_json::from_str(&attached).unwrap();
    let removed = request(near.admin, "DELETE", &format!("/api/v1/modules/{}", attached["id"]), &[]);
    assert_eq!(removed.status, 200);
    eventually("the session is deleted", LONG, || {
        endpoint.received.requests.lock().unwrap().last().is_some_and(|last| last == "DELETE /session/1")
    });
}

#[test]
fn a_peer_that_is_not_the_one_of_the_answer_gets_nothing() {
    let Some((near, _publisher, _folder)) = published() else { return };
    for (habits, words) in [
        (Habits { lies: true, ..Habits::default() }, "the certificate of DTLS is not the one of the answer"),
        (Habits { is_deaf: true, ..Habits::default() }, "no check of ICE was answered by 127.0.0.1:"),
    ] {
        let endpoint = Endpoint::start(free_port(), habits);
        let (status, problem) = attach(&near, &format!("http://127.0.0.1:{}/in", endpoint.port()));
        assert!(status == 502 && problem.contains(words), "{status} {problem}");
        eventually("the session is deleted", LONG, || {
            endpoint.received.requests.lock().unwrap().last().is_some_and(|last| last == "DELETE /session/1")
        });
    }
}
