//! Datagrams to a WebRTC peer, each behind two bytes of length: those of strangers change nothing, and no answer of ICE is longer than
//! its question. The first byte of a datagram chooses its sender. With the highest bit, its integrity is made valid where it is a check.
#![cfg_attr(feature = "libfuzzer", no_main)]

use is::stun::{StunMessage, TransId};
use millpond_fuzz::fuzz_target;
use millpond_webrtc::{
    Identity, PeerEvent, RtcPeer,
    sdp::{Fingerprint, IceCredentials, PeerOffer},
};
use std::{
    net::SocketAddr,
    sync::LazyLock,
    time::{Duration, Instant},
};

static IDENTITY: LazyLock<Identity> = LazyLock::new(|| Identity::new().expect("a certificate"));

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 20] {
    use is::Sha1HmacProvider as _;
    is::DefaultSha1HmacProvider.sha1_hmac(key, parts)
}

fuzz_target!(|bytes: &[u8]| {
    let credentials =
        |name: &str| IceCredentials { ufrag: name.to_owned(), password: format!("password-of-{name}-22-bytes") };
    let (local, remote) = (credentials("local"), credentials("remote"));
    let mut now = Instant::now();
    // The first byte tells who begins DTLS.
    let Some((first, mut rest)) = bytes.split_first() else { return };
    let begins_dtls = first & 1 == 0;
    let offer = PeerOffer { remote, fingerprint: Fingerprint([7; 32]), begins_dtls, sections: Vec::new() };
    let mut peer = RtcPeer::new(local.clone(), &IDENTITY, &offer, now);
    while let Some((head, behind)) = rest.split_first_chunk::<3>() {
        let length = usize::from(u16::from_be_bytes([head[0], head[1]])).min(behind.len());
        let (datagram, next) = behind.split_at(length);
        rest = next;
        let from = SocketAddr::from(([192, 0, 2, head[2] & 3], 4242));
        let mut check = [0; 256];
        let datagram = match head[2] & 0x80 {
            0 => datagram,
            _ => {
                let message =
                    StunMessage::binding_request("local:remote", TransId::new(), true, 7, 9, head[2] & 0x40 != 0);
                let length = message.to_bytes(Some(local.password.as_bytes()), &mut check, hmac).expect("room");
                &check[..length]
            }
        };
        let is_known = peer.has_checked(from);
        now += Duration::from_millis(u64::from(head[2] & 0x3c));
        let result = peer.receive(from, datagram, now);
        while let Some(event) = peer.poll() {
            match event {
                PeerEvent::Send(to, answer) => {
                    assert!(is_known || peer.has_checked(to), "a stranger gets an answer");
                    assert!(!matches!(answer.first(), Some(0..=3)) || answer.len() <= datagram.len());
                }
                PeerEvent::Connected(..) => panic!("without the certificate of the offer"),
            }
        }
        assert!(peer.address().is_none_or(|to| peer.has_checked(to)));
        if result.is_err() || peer.tick(now).is_err() {
            return;
        }
        assert!(peer.next() > now - Duration::from_secs(1));
    }
});
