//! Sessions of WebRTC, and datagrams of nobody.

use super::{By, watch::Watch};
use crate::support::{
    Server, free_port,
    webrtc::{SDP, offer, send},
};
use std::{net::UdpSocket, path::Path};

#[test]
fn sessions_of_webrtc() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/sample/180p.mp4");
    let place = sample.parent().unwrap().to_str().unwrap();
    let port = format!("127.0.0.1:{}", free_port());
    let server = Server::start(&[place, "--rtsp-channels", "180p.mp4", "--webrtc", &port]);
    let watch = Watch::begin(&server);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    watch.until("millpond_webrtc_foreign_datagrams_total", || _ = stranger.send_to(b"\x16nobody's", &port).unwrap());
    let begun = send(server.port, "POST", "/180p.mp4/live/whep", &[SDP], &offer());
    assert_eq!(begun.status, 201, "{}", begun.text());
    watch.until("millpond_webrtc_sessions", || ());
    let session = format!("/180p.mp4/live/{}", begun.header("Location").unwrap());
    assert_eq!(send(server.port, "DELETE", &session, &[], "").status, 200);
    watch.until("millpond_webrtc_sessions_ended_total", || ());
    watch.end(By::WebRtc, &server);
    let ended = server.metric("millpond_webrtc_sessions_ended_total", "client");
    assert_eq!((ended, server.metric("millpond_webrtc_sessions", "")), (1.0, 0.0));
}
