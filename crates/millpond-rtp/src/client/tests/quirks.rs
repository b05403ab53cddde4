//! Servers and cameras that deviate from RFC 2326.

use super::*;
use proptest::prelude::*;

#[test]
fn heads_and_numbers_may_be_wrong() {
    let mut peer = Peer::new(URL, options());
    peer.client.connected(peer.now);
    peer.request();
    peer.hear("RTSP/1.0 200 OK\nCSeq: 0\nPublic: DESCRIBE\n\n");
    peer.request();
    peer.hear(format!("RTSP/1.0 200\r\ncseq: 0\r\nContent-length: {}\r\n\r\n{SDP}", SDP.len()));
    assert!(peer.requests().is_empty());
    assert!(matches!(peer.actions.last(), Some(ClientAction::Described(_))), "{:?}", peer.actions);
    peer.client.set_up(&[(1, TCP)], peer.now);
    peer.request();
    peer.hear("RTSP/1.0 100 Continue\r\nCSeq: 0\r\n\r\nRTSP/1.0 200 OK\r\nSession: 1 ; timeout=5\r\n\r\n");
    assert!(peer.requests().is_empty());
    assert!(matches!(peer.actions.last(), Some(ClientAction::Opened(_))), "{:?}", peer.actions);
}

#[test]
fn a_server_may_lack_options() {
    for status in ["400 Bad Request", "405 Method Not Allowed", "501 Not Implemented", "551 Option not supported"] {
        let mut peer = Peer::new(URL, options());
        peer.client.connected(peer.now);
        peer.expect("OPTIONS", status);
        assert_eq!(peer.request().method, "DESCRIBE");
    }
    let mut peer = Peer::new(URL, options());
    peer.client.connected(peer.now);
    peer.expect("OPTIONS", "404 Not Found");
    assert_eq!(peer.error().to_string(), format!("OPTIONS {URL}: 404 Not Found"));
}

#[test]
fn control_urls_follow_the_base_of_the_reply() {
    for (headers, first, play) in [
        ("Content-Base: rtsp://192.168.1.9/door/\r\n", "rtsp://192.168.1.9/door/v", "rtsp://192.168.1.9/door/"),
        ("Content-Location: rtsp://h/x?y=1\r\n", "rtsp://h/x?y=1/v", "rtsp://h/x?y=1"),
        ("Content-Base: /nowhere/\r\n", "rtsp://10.0.0.7:8554/door/v", URL),
        ("", "rtsp://10.0.0.7:8554/door/v", URL),
    ] {
        let mut peer = Peer::new(URL, options());
        peer.client.connected(peer.now);
        peer.expect("OPTIONS", PUBLIC);
        peer.expect("DESCRIBE", &format!("200 OK\r\n{headers}X: y"));
        peer.client.set_up(&[(0, TCP)], peer.now);
        assert_eq!(peer.expect("SETUP", "200 OK\r\nSession: s").url, first);
        peer.client.play(None, peer.now);
        assert_eq!(peer.request().url, play);
    }
}

#[test]
fn keep_alives_use_the_method_that_works() {
    let mut peer = Peer::new(URL, options());
    peer.playing();
    assert_eq!(peer.client.wake(), Some(Duration::from_secs(30)));
    peer.wait(30);
    let asked = peer.expect("GET_PARAMETER", "200 OK");
    assert_eq!((asked.url.as_str(), asked.session.as_deref()), (URL, Some("s1")));
    peer.wait(30);
    peer.expect("GET_PARAMETER", "501 Not Implemented");
    peer.wait(30);
    peer.expect("OPTIONS", "200 OK");
    peer.wait(30);
    peer.expect("OPTIONS", "454 Session Not Found");
    assert!(matches!(peer.error(), ClientError::Status { request: RequestKind::KeepAlive, status: 454, .. }));
}

#[test]
fn flowing_media_outweighs_missing_answers() {
    let mut peer = Peer::new(URL, options());
    peer.playing();
    for _ in 0..20 {
        peer.wait(30);
        assert_eq!(peer.request().session.as_deref(), Some("s1"));
        assert_eq!(peer.hear(b"$\0\0\x01a").len(), 1);
        peer.wait(10);
        assert!(peer.requests().is_empty());
    }
    peer.client.media_arrived();
    let before = peer.actions.len();
    for _ in 0..2 {
        peer.wait(30);
        peer.wait(10);
    }
    peer.requests();
    assert_eq!(peer.actions.len(), before, "two may be missing");
    peer.wait(30);
    peer.wait(10);
    assert!(matches!(peer.error(), ClientError::Timeout { request: RequestKind::KeepAlive, .. }));
}

#[test]
fn requests_wait_for_a_keep_alive_under_way() {
    let mut peer = Peer::new(URL, options());
    peer.playing();
    peer.wait(30);
    let asked = peer.request();
    peer.client.pause(peer.now);
    peer.client.play(Some(0.0), peer.now);
    assert!(peer.requests().is_empty());
    peer.answer(&asked, "200 OK", "");
    peer.expect("PAUSE", "200 OK");
    peer.expect("PLAY", "200 OK");
    peer.wait(30);
    peer.request();
    peer.client.pause(peer.now);
    peer.wait(10);
    peer.expect("PAUSE", "200 OK");
}

#[test]
fn a_server_may_name_no_session() {
    let mut peer = Peer::new(URL, options());
    peer.described();
    peer.client.set_up(&[(0, UDP)], peer.now);
    peer.expect("SETUP", "200 OK\r\nTransport: RTP/AVP;unicast;server_port=1-2");
    peer.client.play(None, peer.now);
    let asked = peer.expect("PLAY", "200 OK");
    assert_eq!(asked.session, None);
}

#[test]
fn bytes_between_packets_are_skipped() {
    let mut peer = Peer::new(URL, options());
    peer.playing();
    let packet = [&b"$\x00\x00\x0c\x80\x60"[..], &[7; 10]].concat();
    for junk in [&b"junk"[..], b"\xff\x00$\x05\x00\x01", b"$\x00\x00\x01x\x93\x94", b"half of a reply\xfe\r\n\r\n"] {
        let media = peer.hear([&packet, junk, &packet].concat());
        assert!(
            media.iter().filter(|(channel, bytes)| *channel == 0 && bytes.len() == 12).count() == 2,
            "{junk:?}: {media:?}"
        );
    }
    // A reply behind such bytes is read.
    peer.client.pause(peer.now);
    let asked = peer.request();
    peer.hear([b"\xfe\xfe", format!("RTSP/1.0 200 OK\r\nCSeq: {}\r\n\r\n", asked.number).as_bytes()].concat());
    peer.requests();
    assert!(peer.actions.contains(&ClientAction::Paused), "{:?}", peer.actions);
    // Nothing else comes.
    (0..20).for_each(|_| _ = peer.hear([0xfe; 16 << 10]));
    assert!(peer.error().to_string().contains("no RTSP message"));
}

#[test]
fn a_track_that_is_refused_behind_another_one_is_left_out() {
    for status in ["404 Not Found", "461 Unsupported Transport", "500 Internal Server Error", "454 Session Not Found"] {
        let mut peer = Peer::new(URL, options());
        peer.described();
        peer.client.set_up(&[(0, TCP), (1, TCP)], peer.now);
        peer.expect("SETUP", "200 OK\r\nSession: s1\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1");
        peer.expect("SETUP", status);
        assert!(peer.requests().is_empty());
        let Some(ClientAction::Opened(tracks)) = peer.actions.last() else { panic!("{:?}", peer.actions) };
        assert_eq!(tracks.iter().map(|track| track.stream).collect::<Vec<_>>(), [0], "{status}");
    }
}

#[test]
fn unusable_replies_are_named() {
    let mut peer = Peer::new(URL, options());
    peer.described();
    peer.client.set_up(&[(0, UDP)], peer.now);
    peer.expect("SETUP", "200 OK\r\nSession: a b\r\nTransport: RTP/AVP;unicast;server_port=1-2");
    let error = peer.error().to_string();
    assert_eq!(error, format!("SETUP {URL}/v: Session is \"a b\", expected an identifier"));
    let mut peer = Peer::new(URL, options());
    peer.described();
    peer.client.set_up(&[(0, TCP)], peer.now);
    peer.expect("SETUP", "200 OK\r\nSession: s\r\nTransport: RTP/AVP;unicast;server_port=1-2");
    assert!(peer.error().to_string().contains("expected RTP/AVP/TCP"));
    let mut peer = Peer::new(URL, options());
    peer.client.connected(peer.now);
    peer.hear("HTTP/1.1 400 Bad Request\r\n\r\n");
    let error = peer.error();
    assert!(matches!(error, ClientError::Framing { request: RequestKind::Options, .. }), "{error}");
    let mut peer = Peer::new(URL, options());
    peer.playing();
    peer.client.disconnected("reset by peer");
    assert_eq!(peer.error().to_string(), format!("PLAY {URL}: reset by peer"));
}

#[test]
fn requests_of_the_server_are_answered() {
    let mut peer = Peer::new(URL, options());
    peer.playing();
    for (method, status) in [("OPTIONS", 200), ("GET_PARAMETER", 200), ("SETUP", 501), ("ANNOUNCE", 200)] {
        peer.hear(format!("{method} {URL} RTSP/1.0\r\nCSeq: 31\r\n\r\n"));
        let Some(ClientAction::Send(reply)) = peer.client.poll() else { panic!("no reply") };
        let reply = String::from_utf8(reply.to_vec()).unwrap();
        assert!(reply.starts_with(&format!("RTSP/1.0 {status} ")) && reply.contains("CSeq: 31\r\n"), "{reply}");
    }
}

/// Replies of a server, some of them hostile.
fn reply() -> impl Strategy<Value = Vec<u8>> {
    let status = prop_oneof![Just("200 OK"), Just("401 No"), Just("302 Moved"), Just("461 No"), Just("454 Gone")];
    let headers = prop::collection::vec(
        prop_oneof![
            Just("Session: abc;timeout=1"),
            Just("Transport: RTP/AVP/TCP;interleaved=0-1"),
            Just("WWW-Authenticate: Digest realm=\"r\", nonce=\"n\""),
            Just("WWW-Authenticate: Basic realm=\"r\""),
            Just("Location: rtsp://10.0.0.7/x"),
            Just("Public: GET_PARAMETER"),
            Just("CSeq: 1"),
            Just("RTP-Info: url=v;seq=1"),
        ],
        0..5,
    );
    let body = prop_oneof![Just(SDP.as_bytes().to_vec()), Just(Vec::new()), prop::collection::vec(any::<u8>(), 0..50)];
    let whole = (status, headers, body).prop_map(|(status, headers, body)| {
        let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let head = format!("RTSP/1.0 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
        [head.into_bytes(), body].concat()
    });
    prop_oneof![4 => whole, 1 => prop::collection::vec(any::<u8>(), 0..20)]
}

proptest! {
    #[test]
    fn no_server_makes_a_client_panic_or_go_on_for_ever(
        replies in prop::collection::vec((reply(), 0..20_u64), 1..40),
        has_password: bool,
    ) {
        let credentials = has_password.then(|| Credentials { user: "a".into(), password: "b".into() });
        let mut peer = Peer::new(URL, ClientOptions { credentials, ..options() });
        let (mut connections, mut failures) = (0, 0);
        for (bytes, seconds) in replies {
            peer.hear(&bytes);
            peer.wait(seconds);
            while let Some(action) = peer.client.poll() {
                match action {
                    ClientAction::Connect(_) => {
                        connections += 1;
                        peer.input.clear();
                        peer.client.connected(peer.now);
                    }
                    ClientAction::Described(description) if !description.streams.is_empty() => {
                        peer.client.set_up(&[(0, UDP)], peer.now);
                    }
                    ClientAction::Opened(_) => peer.client.play(None, peer.now),
                    ClientAction::Playing(_) => peer.client.pause(peer.now),
                    ClientAction::Failed(_) => failures += 1,
                    _ => {}
                }
            }
            prop_assert!(failures > 0 || peer.input.len() < 70_000);
        }
        prop_assert!(connections <= 5 && failures <= 1, "{connections} {failures}");
        peer.client.tear_down(peer.now);
        peer.now += Duration::from_secs(100);
        peer.client.tick(peer.now);
        prop_assert_eq!(peer.client.wake(), None);
    }
}
