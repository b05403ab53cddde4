//! Streams that are pushed by WebRTC (WHIP): what viewers get of them, who may push, and what becomes of bad publishers.

use crate::{
    live::{publish::until_published, webrtc::seen},
    support::{
        Server, clips, have, request,
        webrtc::{self, PATIENCE, SDP, Viewer, offered, packets, place, send},
        whip::Publisher,
    },
};
use std::{
    path::PathBuf,
    time::{Duration, Instant},
};
use str0m::media::Direction;

/// 9 seconds, 25 pictures a second, no B-frames, Opus. Key frames have their parameter sets and are four seconds apart.
const CLIP: &str = "V S -c:v libx264 -x264-params repeat-headers=1 -g 100 -bf 0 -sc_threshold 0 -c:a libopus";
/// Seconds of it.
const LENGTH: f64 = 9.0;

/// The clip, in a folder. `None` where ffmpeg is missing.
fn clip() -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let clip = folder.path().join("clip.mp4");
    have("ffmpeg").then(|| clips::make(&clip, CLIP))?;
    Some((folder, clip))
}

/// The text of a publisher's offer.
fn offer() -> String {
    offered(Direction::SendOnly).text
}

fn post(server: &Server, headers: &[(&str, &str)], body: &str) -> (u16, String) {
    let reply = send(server.port, "POST", "/live/cam/whip", &[&[SDP], headers].concat(), body);
    (reply.status, reply.text())
}

#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn every_picture_and_packet_of_sound_reaches_viewers() {
    let Some((_folder, clip)) = clip() else { return };
    for loss in [0, 20] {
        let (server, _) = webrtc::serve(&[]);
        let publisher = Publisher::start(&server, "live/cam", (&clip, LENGTH), loss);
        until_published(&server, "live/cam");
        let mut viewer = Viewer::new(&server, "live/cam");
        viewer.receive(|viewer| viewer.pictures.len() > 250 && viewer.sounds.len() > 300);
        let (video, sound) = (packets(&clip, "v:0"), packets(&clip, "a:0"));
        place(&seen(&viewer), &webrtc::pictures(&video));
        let came: Vec<&[u8]> = viewer.sounds.iter().map(|data| &*data.data).collect();
        let known: Vec<&[u8]> = sound.iter().map(|packet| &*packet.bytes).collect();
        // Sound that is lost is not asked for: str0m offers no `nack` of Opus.
        if loss == 0 {
            place(&came, &known);
        }
        assert!(came.iter().all(|packet| known.contains(packet)));
        webrtc::until_sessions(&server, "publishing", 1);
        assert!(publisher.lost() > 20 || loss == 0, "{}", publisher.lost());
        // The key frames of the clip are far apart.
        assert!(publisher.asked() > 0, "no request for a key frame");
    }
}

#[test]
fn a_publisher_ends_by_its_own_will_and_by_that_of_others() {
    let Some((_folder, clip)) = clip() else { return };
    let (server, _) = webrtc::serve(&[]);
    let start = || {
        let publisher = Publisher::start(&server, "live/cam", (&clip, LENGTH), 0);
        webrtc::until_sessions(&server, "publishing", 1);
        publisher
    };
    let first = start();
    assert_eq!(send(server.port, "DELETE", &first.session, &[], "").status, 200);
    until("closed", || first.is_closed());
    webrtc::until_sessions(&server, "publishing", 0);
    assert_eq!(send(server.port, "DELETE", &first.session, &[], "").status, 404);
    let second = start();
    // The name is taken.
    let (status, problem) = post(&server, &[], &offer());
    assert!(status == 409 && problem.contains("another publisher"), "{status} {problem}");
    let id = webrtc::sessions(&server)[0]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/sessions/{id}");
    assert_eq!(request(server.admin, "DELETE", &path, &[]).status / 100, 2);
    until("kicked", || second.is_closed());
}

#[test]
fn a_second_publisher_replaces_the_first_where_the_operator_says_so() {
    let Some((_folder, clip)) = clip() else { return };
    let (server, _) = webrtc::serve(&["--publish-conflict", "replace"]);
    let first = Publisher::start(&server, "live/cam", (&clip, LENGTH), 0);
    webrtc::until_sessions(&server, "publishing", 1);
    let _second = Publisher::start(&server, "live/cam", (&clip, LENGTH), 0);
    until("replaced", || first.is_closed());
    webrtc::until_sessions(&server, "publishing", 1);
}

#[test]
fn offers_that_give_nothing_are_refused() {
    let (server, _) = webrtc::serve(&[]);
    let whole = offer();
    for (body, status, words) in [
        (String::new(), 400, "v=0"),
        (whole.replace("a=sendonly", "a=recvonly"), 422, "a=sendonly"),
        (whole.replace("H264", "H999").replace("opus", "ogg").replace("PCMU", "PCMX"), 422, "expected H264"),
        (whole.replace("a=setup:actpass", "a=setup:holdconn"), 400, "a=setup"),
    ] {
        let (found, problem) = post(&server, &[], &body);
        assert!(found == status && problem.contains(words), "{found} {problem}");
    }
    assert_eq!(webrtc::sessions(&server).len(), 0);
    assert_eq!(request(server.port, "GET", "/live/cam/whip", &[]).status, 200);
    assert_eq!(send(server.port, "DELETE", "/live/cam/whip", &[], "").status, 405);
}

#[test]
fn publishers_show_a_name_and_a_password_as_encoders_can() {
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    std::fs::write(&users, "ann:pass\n").unwrap();
    let (server, _) = webrtc::serve(&["--publish-users", users.to_str().unwrap()]);
    // Rights are looked at before the offer is.
    let with = |value: &str| post(&server, &[("Authorization", value)], "nonsense").0;
    let page =
        |value: &str| post(&server, &[("Authorization", value), ("Origin", "https://page.example")], "nonsense").0;
    assert_eq!((page("Bearer ann:pass"), page("Bearer ann:guess"), page("Basic YW5uOnBhc3M=")), (400, 401, 403));
    assert_eq!(post(&server, &[], "nonsense").0, 401);
    for (value, status) in [
        ("Bearer ann:guess", 401),
        ("Bearer ann", 401),
        ("Bearer ann:pass", 400),
        // ann:pass.
        ("Basic YW5uOnBhc3M=", 400),
    ] {
        assert_eq!(with(value), status, "{value}");
    }
}

#[test]
fn clients_of_an_unknown_proxy_are_not_this_machine() {
    let (server, _) = webrtc::serve(&[]);
    for (name, value) in [("X-Forwarded-For", "192.0.2.7"), ("Forwarded", "for=192.0.2.7")] {
        let (status, problem) = post(&server, &[(name, value)], "nonsense");
        assert!(status == 403 && problem.contains("trusted-proxies"), "{status} {problem}");
    }
}

#[test]
fn pages_publish_from_this_server() {
    let (server, _) = webrtc::serve(&[]);
    let own = format!("http://127.0.0.1:{}", server.port);
    let local = format!("http://localhost:{}", server.port);
    for (origin, authorization, status) in [
        ("https://page.example", None, 403),
        ("null", None, 403),
        // The name that the request states for this server is another one.
        (&*own, None, 403),
        ("http://localhost", None, 400),
        // Nobody checks the token.
        ("https://page.example", Some("Bearer ann:pass"), 403),
        (&*local, Some("Basic YW5uOnBhc3M="), 403),
    ] {
        let authorization = authorization.map(|value| ("Authorization", value));
        let headers: Vec<_> = [("Origin", origin)].into_iter().chain(authorization).collect();
        let (found, problem) = post(&server, &headers, "nonsense");
        assert_eq!(found, status, "{origin} {authorization:?}: {problem}");
    }
}
