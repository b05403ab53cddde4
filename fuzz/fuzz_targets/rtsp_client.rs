//! A client, player or publisher, whose server is hostile: no bytes make it panic, ask for ever, or hold more than its limits. Parts of the input
//! begin with two bytes: seconds before it arrives, and its length in eights.
#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::BytesMut;
use millpond_fuzz::fuzz_target;
use millpond_rtp::{
    client::{Announcement, ClientAction, ClientOptions, Credentials, RedirectPolicy, RtspClient},
    setup::Offer,
};
use std::time::Duration;

const UDP: Offer = Offer::Unicast { ports: (5000, 5001), destination: None };

fuzz_target!(|bytes: &[u8]| {
    let Some((flags, mut rest)) = bytes.split_first() else { return };
    let credentials = Credentials { user: "user".into(), password: "password".into() };
    let mut options = ClientOptions::new("fuzz");
    options.credentials = (flags & 1 != 0).then_some(credentials);
    options.redirects = if flags & 2 != 0 { RedirectPolicy::AnyHost } else { RedirectPolicy::SameHost };
    let offer = if flags & 4 != 0 { UDP } else { Offer::Interleaved(None) };
    let mut now = Duration::ZERO;
    let announcement =
        Announcement { description: "v=0\r\n".to_owned(), controls: vec!["v".to_owned(), "a".to_owned()] };
    let client = match flags & 8 {
        0 => RtspClient::new("rtsp://host/film", options, now),
        _ => RtspClient::publisher("rtsp://host/film", announcement, options, now),
    };
    let mut client = client.expect("a URL");
    let (mut input, mut connections, mut is_over, mut has_left) = (BytesMut::new(), 0, false, false);
    loop {
        while let Some(action) = client.poll() {
            // A session that failed unseen may be torn down too.
            let is_farewell = matches!(action, ClientAction::Closed) && std::mem::take(&mut has_left);
            assert!(!is_over || is_farewell, "{action:?}");
            match action {
                ClientAction::Connect(_) => {
                    connections += 1;
                    input.clear();
                    client.connected(now);
                }
                ClientAction::Send(request) => assert_one(&request),
                ClientAction::Described(description) if description.streams.is_empty() => {
                    has_left = true;
                    client.tear_down(now);
                }
                ClientAction::Described(description) => {
                    let offers: Vec<_> = (0..description.streams.len()).map(|stream| (stream, offer)).collect();
                    client.set_up(&offers, now);
                }
                ClientAction::Opened(tracks) => {
                    assert!(!tracks.is_empty());
                    client.play(Some(0.0), now);
                }
                ClientAction::Playing(_) => client.pause(now),
                ClientAction::Recording(tracks) => assert!(!tracks.is_empty()),
                ClientAction::Paused | ClientAction::Accepted { .. } => {}
                ClientAction::Closed | ClientAction::Failed(_) => is_over = true,
            }
        }
        let [seconds, length, after @ ..] = rest else { break };
        let (part, after) = after.split_at((usize::from(*length) * 8).min(after.len()));
        rest = after;
        now += Duration::from_secs(u64::from(*seconds % 40));
        client.tick(now);
        input.extend_from_slice(part);
        while client.receive(&mut input, now).is_some() {}
        if is_over {
            break;
        }
    }
    assert!(connections <= 5, "{connections}");
});

/// Bytes that the client sends are one RTSP message, whatever the server's values are.
fn assert_one(message: &[u8]) {
    let end = message.windows(4).position(|four| four == b"\r\n\r\n");
    assert_eq!(end, Some(message.len() - 4));
    let count = |byte: u8| message.iter().filter(|other| **other == byte).count();
    let lines = message.windows(2).filter(|two| two == b"\r\n").count();
    assert!(count(b'\r') == lines && count(b'\n') == lines);
    let first = message.split(|byte| *byte == b'\r').next().unwrap_or_default();
    assert!(first.starts_with(b"RTSP/1.0 ") || first.iter().filter(|byte| **byte == b' ').count() == 2);
}
