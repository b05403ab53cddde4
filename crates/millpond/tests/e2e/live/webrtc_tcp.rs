//! Viewers by WebRTC that UDP does not reach: str0m on a connection of TCP, and strangers on such connections.

use super::webrtc::{Pushed, seen};
use crate::support::{
    free_port,
    webrtc::{PATIENCE, Viewer, pictures, place, send, until_sessions},
};
use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};

/// The port of TCP of a server.
fn port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], free_port()))
}

#[test]
fn every_picture_comes_by_tcp() {
    let port = port();
    let Some(pushed) = Pushed::start(&["--webrtc-tcp", &port.to_string()]) else { return };
    let mut viewer = Viewer::by_tcp(&pushed.server, port, "live/cam");
    assert!(viewer.answer.contains(&format!(" {} typ host tcptype passive", port.port())), "{}", viewer.answer);
    viewer.receive(|viewer| viewer.pictures.len() > 120 && viewer.sounds.len() > 50);
    let video = pushed.packets("v:0");
    let first = place(&seen(&viewer), &pictures(&video));
    assert!(first.is_multiple_of(100), "a key frame first, not picture {first}");
    // The connection goes with its session.
    assert_eq!(send(pushed.server.port, "DELETE", &viewer.session, &[], "").status, 200);
    viewer.receive_to_end(&pushed.server);
    until_sessions(&pushed.server, "playing", 0);
}

/// The bytes that a server sends on a connection before it closes the connection.
fn until_closed(mut stream: TcpStream) -> Vec<u8> {
    let mut said = Vec::new();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // A reset is an end too.
    if let Err(error) = stream.read_to_end(&mut said) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
    said
}

#[test]
fn connections_of_strangers_end() {
    let port = port();
    let Some(pushed) = Pushed::start(&["--webrtc-tcp", &port.to_string()]) else { return };
    let begun = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(port).unwrap();
        let _ = stream.write_all(bytes);
        stream
    };
    // A check of ICE for a name that nobody has: type, length, cookie, transaction, USERNAME.
    let mut check = vec![0, 1, 0, 12, 0x21, 0x12, 0xa4, 0x42];
    check.extend([7; 12]);
    check.extend([0, 6, 0, 7]);
    check.extend(b"abc:def\0");
    let framed = [&(check.len() as u16).to_be_bytes()[..], &check].concat();
    for bytes in [&b""[..], b"GET / HTTP/1.1\r\n\r\n", &[0, 0], &[0, 3, 1, 2, 3], &framed, &[255; 5000]] {
        assert_eq!(until_closed(begun(bytes)), b"", "{bytes:?}");
    }
    let many: Vec<TcpStream> = (0..300).map(|_| begun(b"")).collect();
    let mut viewer = Viewer::new(&pushed.server, "live/cam");
    viewer.receive(|viewer| viewer.pictures.len() > 5);
    drop(many);
    assert!(!pushed.server.log_text().contains("panicked"));
}
