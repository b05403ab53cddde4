//! Datagrams to both ends of an SRT connection and to a listener, each behind four bytes: two of length, one of time, and one that chooses
//! who gets it, and whether its socket is made right. No answer of the listener is longer than its question; what a peer keeps has bounds.
#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::Bytes;
use millpond_fuzz::fuzz_target;
use millpond_srt::{Caller, CallerOptions, KeyLength, Passphrase, SocketId, SrtArrival, SrtConnection, SrtListener};
use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

/// Most datagrams that a peer sends because of one datagram: what it has to say, and packets of its buffer.
const MOST: usize = 10_000;

fn options(is_encrypted: bool) -> CallerOptions {
    let passphrase = Passphrase::new("a long secret").expect("a passphrase");
    CallerOptions {
        listener: Ipv4Addr::LOCALHOST.into(),
        stream_id: "publish:live/cam".to_owned(),
        encryption: is_encrypted.then_some((passphrase, KeyLength::Aes128)),
        latency: Duration::from_millis(120),
        timeout: Duration::from_secs(3),
    }
}

/// Connects a caller and a listener.
fn connect(listener: &SrtListener, from: SocketAddr, is_encrypted: bool, now: Duration) -> [SrtConnection; 2] {
    let options = options(is_encrypted);
    let passphrase = options.encryption.clone().map(|(passphrase, _)| passphrase);
    let mut caller = Caller::new(options, &[7; 56], now).expect("a caller");
    let first = caller.poll(now).expect("in time").expect("a first step");
    let SrtArrival::Answer(answer) = listener.receive(from, &first, now) else { panic!("no cookie") };
    assert!(caller.receive(&answer, now).expect("a cookie").is_none());
    let second = caller.poll(now).expect("in time").expect("a second step");
    let SrtArrival::Request(request) = listener.receive(from, &second, now) else { panic!("no request") };
    let unlocked = request.unlock(passphrase.as_ref()).unwrap_or_else(|_| panic!("another passphrase"));
    let mut accepted = unlocked.accept(SocketId(77), Duration::from_millis(120), now);
    let answer = accepted.poll(now).expect("an answer");
    let called = caller.receive(&answer, now).expect("accepted").expect("a connection");
    [called, accepted]
}

fuzz_target!(|bytes: &[u8]| {
    let Some((flags, mut rest)) = bytes.split_first() else { return };
    let (listener, from) = (SrtListener::new([9; 32]), SocketAddr::from((Ipv4Addr::LOCALHOST, 4242)));
    let mut now = Duration::from_secs(100);
    let mut peers = connect(&listener, from, flags & 1 != 0, now);
    let mut caller = Caller::new(options(flags & 2 != 0), &[5; 56], now).expect("a caller");
    while let Some((head, behind)) = rest.split_first_chunk::<4>() {
        let length = usize::from(u16::from_be_bytes([head[0], head[1]])).min(behind.len());
        let (datagram, next) = behind.split_at(length);
        rest = next;
        now += Duration::from_millis(u64::from(head[2]));
        let mut datagram = datagram.to_vec();
        let at = usize::from(head[3] & 1);
        let socket = match head[3] >> 1 & 3 {
            0 => None,
            1 => Some(SocketId::LISTENER),
            2 => Some(peers[at].socket()),
            _ => Some(caller.socket()),
        };
        if let (Some(socket), Some(to)) = (socket, datagram.get_mut(12..16)) {
            to.copy_from_slice(&socket.0.to_be_bytes());
        }
        if let SrtArrival::Answer(answer) = listener.receive(from, &datagram, now) {
            assert!(answer.len() <= datagram.len());
        }
        if caller.poll(now).is_err() || caller.receive(&datagram, now).is_err() {
            caller = Caller::new(options(flags & 2 != 0), &[5; 56], now).expect("a caller");
        }
        if head[3] & 0x80 != 0 {
            peers[at].send(Bytes::from(vec![head[2]; 1316]), now);
        }
        let received = peers[at].receive(&datagram, now);
        for (index, peer) in peers.iter_mut().enumerate() {
            let is_over = index == at && received.is_err();
            if peer.tick(now).is_err() || is_over {
                return;
            }
            let sent = std::iter::from_fn(|| peer.poll(now))
                .take(MOST)
                .inspect(|datagram| assert!(datagram.len() <= 1472))
                .count();
            let delivered = std::iter::from_fn(|| peer.deliver(now)).take(MOST).count();
            assert!(sent < MOST && delivered < MOST);
            assert!(peer.next() > now, "what is due was done");
        }
    }
});
