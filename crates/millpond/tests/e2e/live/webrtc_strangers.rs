//! Datagrams of strangers to the port of WebRTC.

use crate::{
    live::webrtc::{Pushed, seen},
    support::webrtc::{Viewer, pictures, place, sessions},
};
use std::{net::UdpSocket, time::Duration};

/// Attribute of STUN with the integrity (RFC 8489 14.5).
const INTEGRITY: [u8; 4] = [0, 8, 0, 20];

fn kind(datagram: &&Vec<u8>, first: std::ops::RangeInclusive<u8>) -> bool {
    datagram.first().is_some_and(|byte| first.contains(byte))
}

/// Datagrams that arrive within a while.
fn answers(socket: &UdpSocket) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut datagram = [0; 2048];
    while let Ok(length) = socket.recv(&mut datagram) {
        all.push(datagram[..length].to_vec());
    }
    all
}

#[test]
fn strangers_get_no_answer_and_change_nothing() {
    let Some(pushed) = Pushed::start(&[]) else { return };
    let mut viewer = Viewer::new(&pushed.server, "live/cam");
    viewer.receive(|viewer| viewer.pictures.len() > 20);
    // Its reports, and one that asks for a key frame.
    viewer.ask_for_key_frame();
    viewer.receive(|viewer| viewer.sent.iter().filter(|datagram| kind(datagram, 128..=191)).count() > 1);
    viewer.receive_for(Duration::from_secs(1));
    let hellos: Vec<&Vec<u8>> = viewer.sent.iter().filter(|datagram| kind(datagram, 20..=63)).collect();
    let reports: Vec<&Vec<u8>> = viewer.sent.iter().filter(|datagram| kind(datagram, 128..=191)).collect();
    assert!(!hellos.is_empty() && reports.len() > 1, "{} and {}", hellos.len(), reports.len());
    // A session whose client has sent nothing yet, and its first check.
    let mut silent = Viewer::new(&pushed.server, "live/cam");
    silent.is_mute = true;
    silent.receive(|viewer| viewer.sent.iter().any(|datagram| kind(&datagram, 0..=3)));
    let check = silent.sent.iter().find(|datagram| kind(datagram, 0..=3)).unwrap();

    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    stranger.connect(pushed.port).unwrap();
    let integrity = check.windows(4).position(|four| four == INTEGRITY).unwrap();
    let forged = (0..integrity + 24).map(|at| {
        let mut forged = check.clone();
        forged[at] ^= 1;
        forged
    });
    let cut = (0..check.len()).step_by(5).map(|length| check[..length].to_vec());
    let noise = (0..=255).map(|first| vec![first; 100]);
    for datagram in forged.chain(cut).chain(noise) {
        stranger.send(&datagram).unwrap();
    }
    for datagram in hellos.iter().chain(&reports) {
        stranger.send(datagram).unwrap();
    }
    assert_eq!(answers(&stranger), Vec::<Vec<u8>>::new());
    stranger.send(check).unwrap();
    let [answer] = &answers(&stranger)[..] else { panic!("one answer to a valid check") };
    assert!(answer[..2] == [1, 1] && answer.len() <= check.len(), "{} bytes to {}", answer.len(), check.len());

    // The viewer plays on, and no key frame was sent for the stranger.
    let before = viewer.pictures.len();
    viewer.receive(|viewer| viewer.pictures.len() > before + 60);
    let pictures = pushed.packets("v:0");
    place(&seen(&viewer)[before..], &self::pictures(&pictures));
    assert_eq!(sessions(&pushed.server).len(), 2);
}
