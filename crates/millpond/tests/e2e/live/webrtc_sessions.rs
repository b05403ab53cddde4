//! Sessions of WebRTC that end without a word of their clients.

use crate::{
    live::webrtc::Pushed,
    support::webrtc::{SDP, Viewer, offer, send, sessions, until_sessions},
};
use std::time::{Duration, Instant};

#[test]
fn sessions_of_clients_that_leave_or_never_come_end() {
    let Some(pushed) = Pushed::start(&[]) else { return };
    let server = &pushed.server;
    let mut leaves = Viewer::new(server, "live/cam");
    leaves.receive(|viewer| viewer.pictures.len() > 5);
    until_sessions(server, "playing", 1);
    // The other one never begins to check.
    let began = Instant::now();
    assert_eq!(send(server.port, "POST", "/live/cam/whep", &[SDP], &offer()).status, 201);
    until_sessions(server, "ready", 1);
    let session = sessions(server).into_iter().find(|session| session["state"] == "playing").unwrap();
    assert!(session["asset"] == "live/cam" && session["client"] == "127.0.0.1", "{session}");
    drop(leaves);
    until_sessions(server, "ready", 0);
    // A client of a slow network may come late.
    assert!(began.elapsed() > Duration::from_secs(10), "{:?}", began.elapsed());
    // RFC 7675 5.1: 30 s.
    until_sessions(server, "playing", 0);
    assert_eq!(sessions(server).len(), 0);
}

#[test]
fn sessions_end_with_their_stream() {
    let Some(mut pushed) = Pushed::start(&["--source-timeout", "2s"]) else { return };
    let mut viewer = Viewer::new(&pushed.server, "live/cam");
    viewer.receive(|viewer| viewer.pictures.len() > 5);
    pushed.leave();
    viewer.receive_to_end(&pushed.server);
    // The last word to the client is sent before the session is gone.
    until_sessions(&pushed.server, "playing", 0);
    assert_eq!(send(pushed.server.port, "GET", &viewer.session, &[], "").status, 404);
    assert_eq!(sessions(&pushed.server).len(), 0);
}

#[test]
fn an_operator_ends_a_session() {
    let Some(pushed) = Pushed::start(&[]) else { return };
    let mut viewer = Viewer::new(&pushed.server, "live/cam");
    viewer.receive(|viewer| viewer.pictures.len() > 5);
    let id = sessions(&pushed.server)[0]["id"].as_str().unwrap().to_owned();
    let reply = send(pushed.server.admin, "DELETE", &format!("/api/v1/sessions/{id}"), &[], "");
    assert!(reply.status / 100 == 2, "{}", reply.status);
    viewer.receive_to_end(&pushed.server);
    until_sessions(&pushed.server, "playing", 0);
}
