//! Connections of RTMP publishers and players: the same events in pieces of any size, and no more media than was sent. The first byte is
//! the size of the pieces; a handshake precedes the others.
#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::BytesMut;
use millpond_fuzz::fuzz_target;
use millpond_rtmp::{RtmpError, RtmpEvent, Session};

/// Bytes of C0, C1 and C2.
const HANDSHAKE: usize = 1 + 2 * 1536;

fn events(bytes: &[u8], size: usize) -> (Vec<RtmpEvent>, Option<RtmpError>) {
    let (mut session, mut input, mut events) = (Session::default(), BytesMut::new(), Vec::new());
    let mut handshake = [0; HANDSHAKE];
    handshake[0] = 3;
    for piece in [&handshake[..]].into_iter().chain(bytes.chunks(size)) {
        input.extend_from_slice(piece);
        loop {
            match session.receive(&mut input) {
                Ok(None) => break,
                Ok(Some(event)) => {
                    if matches!(event, RtmpEvent::Publish(_) | RtmpEvent::Play(_)) {
                        session.accept();
                    }
                    events.push(event);
                }
                Err(error) => return (events, Some(error)),
            }
        }
        // An acknowledgement and an answer for each message at most.
        assert!(session.take_output().len() <= HANDSHAKE + 1024 * (piece.len() + 1));
        assert!(input.len() < 32, "what is no message yet is kept once");
    }
    (events, None)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((size, bytes)) = bytes.split_first() else { return };
    let found = events(bytes, usize::from(*size) + 1);
    assert!(found == events(bytes, bytes.len().max(1)), "the events depend on the pieces");
    let media = |event: &RtmpEvent| if let RtmpEvent::Media(tag) = event { tag.len() - 11 } else { 0 };
    assert!(found.0.iter().map(media).sum::<usize>() <= bytes.len());
});
