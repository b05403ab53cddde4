//! What RTSP clients and servers send: messages, however they are cut, and the headers that are read.
#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::BytesMut;
use millpond_fuzz::fuzz_target;
use millpond_rtp::{
    framing::{self, ClientMessage, ServerMessage},
    message::headers::{RANGE, TRANSPORT},
    play, setup,
};

fuzz_target!(|bytes: &[u8]| {
    let mut whole = BytesMut::from(bytes);
    let mut count = 0;
    while let Ok(Some(message)) = framing::take(&mut whole) {
        count += 1;
        if let ClientMessage::Request(request) = message {
            let _ = request.header(&RANGE).map(|range| play::npt_range(range.as_str()));
            let transport = request.header(&TRANSPORT).map(|transport| transport.as_str());
            let _ = transport.map(|transport| setup::offers(transport, setup::mode(transport)));
        }
    }
    // The other side finds the same messages, but accepts irregular heads too.
    let (mut input, mut replies) = (BytesMut::from(bytes), 0);
    while let Ok(Some(reply)) = framing::take_reply(&mut input) {
        replies += 1;
        if let ServerMessage::Data(_, data) = reply {
            assert!(data.len() <= bytes.len());
        }
    }
    assert!(replies >= count || bytes.len() > 16_000 || has_line_feeds(bytes), "{replies} of {count}");
    // The same bytes one after the other are the same messages.
    let (mut input, mut again) = (BytesMut::new(), 0);
    for byte in bytes {
        input.extend_from_slice(&[*byte]);
        match framing::take(&mut input) {
            Ok(Some(_)) => again += 1,
            Ok(None) => {}
            Err(_) => break,
        }
    }
    assert!(again >= count || bytes.len() > 60_000, "{again} of {count}");
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Ok(part) = play::npt_range(text) {
            assert!([part.from, part.to].iter().flatten().all(|time| time.is_finite() && *time >= 0.0));
        }
        let _ = (setup::offers(text, setup::mode(text)), play::rate("Scale", text));
    }
});

/// Whether a line ends with LF alone.
fn has_line_feeds(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'\n') || bytes.windows(2).any(|two| two[1] == b'\n' && two[0] != b'\r')
}
