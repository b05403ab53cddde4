//! Replies of RTMP servers to a client that publishes, or plays: the same events in pieces of any size, no more media than was sent, and
//! no key in errors. The first byte is the purpose and the size of the pieces; a handshake precedes the others.
#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::BytesMut;
use millpond_fuzz::fuzz_target;
use millpond_rtmp::{ClientEvent, RtmpClient, RtmpError, RtmpMedia, RtmpPurpose, RtmpUrl};

/// Bytes of S0, S1 and S2.
const HANDSHAKE: usize = 1 + 2 * 1536;

fn events(purpose: RtmpPurpose, bytes: &[u8], size: usize) -> (Vec<ClientEvent>, Option<RtmpError>) {
    let Ok(url) = RtmpUrl::parse("rtmp://h/live/key-secret") else { unreachable!("a URL") };
    let (mut client, mut input, mut events) = (RtmpClient::new(url, purpose), BytesMut::new(), Vec::new());
    let mut handshake = [0; HANDSHAKE];
    handshake[0] = 3;
    for piece in [&handshake[..]].into_iter().chain(bytes.chunks(size)) {
        input.extend_from_slice(piece);
        loop {
            match client.receive(&mut input) {
                Ok(None) => break,
                Ok(Some(event)) => events.push(event),
                Err(error) => {
                    assert!(!error.to_string().contains("key-secret"));
                    return (events, Some(error));
                }
            }
        }
        client.send(&RtmpMedia { kind: 9, timestamp: 0, head: &[0x17, 1], data: b"picture" });
        // Four commands, then an acknowledgement or an answer for each message at most.
        assert!(client.take_output().len() <= 2 * HANDSHAKE + 2048 + 1024 * (piece.len() + 1));
        assert!(input.len() < 32, "what is no message yet is kept once");
    }
    client.finish();
    (events, None)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let purpose = if first & 1 == 0 { RtmpPurpose::Publish } else { RtmpPurpose::Play };
    let found = events(purpose, bytes, usize::from(first >> 1) + 1);
    assert!(found == events(purpose, bytes, bytes.len().max(1)), "the events depend on the pieces");
    let media = |event: &ClientEvent| if let ClientEvent::Media(tag) = event { tag.len() - 11 } else { 0 };
    assert!(found.0.iter().map(media).sum::<usize>() <= bytes.len());
});
