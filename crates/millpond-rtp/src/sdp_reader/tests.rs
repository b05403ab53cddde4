//! Tests with descriptions of servers and cameras.

use super::*;
use crate::setup::RtpProfile;
use proptest::prelude::*;

const FILM: &str = "v=0\r\no=- 7 1 IN IP4 0.0.0.0\r\ns=film\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n\
    a=control:*\r\na=range:npt=0-12.500\r\n\
    m=video 0 RTP/AVP 96\r\nb=AS:1200\r\na=rtpmap:96 H264/90000\r\n\
    a=fmtp:96 packetization-mode=1; Profile-Level-Id=64001F;sprop-parameter-sets=Z2QAH6w=,aO48sA==\r\na=control:v1\r\n\
    m=audio 0 RTP/AVP 97\r\na=rtpmap:97 mpeg4-generic/48000/2\r\n\
    a=fmtp:97 mode=AAC-hbr;sizelength=13\r\na=control:a1\r\n";

#[test]
fn what_a_client_needs_is_there() {
    let film = SessionDescription::read(FILM.as_bytes(), "rtsp://host/film.mp4/").unwrap();
    assert_eq!(film.control, "rtsp://host/film.mp4/");
    assert_eq!(film.range, Some(NptRange { from: Some(0.0), to: Some(12.5) }));
    let [video, audio] = &film.streams[..] else { panic!("{film:?}") };
    assert_eq!((video.media.as_str(), video.control.as_str()), ("video", "rtsp://host/film.mp4/v1"));
    assert_eq!((video.payload_type, video.encoding.as_str(), video.clock_rate), (96, "h264", 90_000));
    assert_eq!((video.channels, video.bandwidth), (None, Some(1_200_000)));
    assert_eq!(video.parameters["sprop-parameter-sets"], "Z2QAH6w=,aO48sA==");
    assert_eq!(video.parameters["profile-level-id"], "64001F");
    assert_eq!((audio.encoding.as_str(), audio.clock_rate, audio.channels), ("mpeg4-generic", 48_000, Some(2)));
    assert_eq!(audio.parameters["mode"], "AAC-hbr");
}

#[test]
fn urls_are_relative_to_the_base() {
    for (base, control, expected) in [
        ("rtsp://h/a/", "*", "rtsp://h/a/"),
        ("rtsp://h/a", "", "rtsp://h/a"),
        ("rtsp://h/a/", "trackID=1", "rtsp://h/a/trackID=1"),
        ("rtsp://h/a", "trackID=1", "rtsp://h/a/trackID=1"),
        ("rtsp://h/a?b=1", "trackID=1", "rtsp://h/a?b=1/trackID=1"),
        ("rtsp://h:8554/a/b", "/c", "rtsp://h:8554/c"),
        ("rtsp://h", "/c", "rtsp://h/c"),
        ("rtsp://h/a/", "RTSP://other/x", "RTSP://other/x"),
        ("rtsp://h/a/", " rtsps://h/x ", "rtsps://h/x"),
    ] {
        assert_eq!(resolve(base, control), expected, "{base} {control}");
    }
}

#[test]
fn the_base_is_what_comes_first_in_the_reply() {
    assert_eq!(base(Some(" rtsp://a/b/ "), Some("rtsp://c"), "rtsp://d"), "rtsp://a/b/");
    assert_eq!(base(None, Some("rtsp://c"), "rtsp://d"), "rtsp://c");
    assert_eq!(base(Some("/b/"), Some(""), "rtsp://d"), "rtsp://d", "no URLs");
}

#[test]
fn other_forms_are_read_too() {
    let text = b"v=0\nm=audio 0 RTP/AVP 14\nm=application 0 TCP 5\nm=video 0 RTP/AVP 26 97\na=control:/x\n\
        a=rtpmap:97 H265/90000\ns=na\xefve\n";
    let read = SessionDescription::read(text, "rtsp://h/a").unwrap();
    let streams: Vec<(&str, &str, u32)> =
        read.streams.iter().map(|s| (s.encoding.as_str(), s.control.as_str(), s.clock_rate)).collect();
    assert_eq!(streams, [("mpa", "rtsp://h/a", 90_000), ("jpeg", "rtsp://h/x", 90_000)]);
}

#[test]
fn what_is_wrong_is_named() {
    let error = |text: &str| SessionDescription::read(text.as_bytes(), "rtsp://h/").unwrap_err();
    assert!(matches!(error("hello"), SessionDescriptionError::Malformed(_)));
    assert!(matches!(error("v=1\r\n"), SessionDescriptionError::Malformed(_)));
    let of = |media: &str| error(&format!("v=0\r\nm=audio 0 RTP/AVP 0\r\n{media}")).to_string();
    assert_eq!(of("m=video 0 RTP/AVP 96\r\n"), "stream 1: m= is \"96\", expected a payload type with a=rtpmap");
    assert!(of("m=video 0 RTP/AVP 128\r\n").contains("from 0 to 127"));
    for map in ["H264", "H264/0", "H264/x", "/90000"] {
        let text = of(&format!("m=video 0 RTP/AVP 96\r\na=rtpmap:96 {map}\r\n"));
        assert!(text.contains(&format!("a=rtpmap is {map:?}")), "{text}");
    }
    assert!(matches!(
        error(&format!("v=0\r\n{}", "m=audio 0 RTP/AVP 0\r\n".repeat(65))),
        SessionDescriptionError::TooLong { found: 65, what: "streams", most: 64 }
    ));
    assert!(matches!(error(&"v=0\r\n".repeat(60_000)), SessionDescriptionError::TooLong { what: "bytes", .. }));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(cuts in prop::collection::vec((0..FILM.len(), any::<u8>()), 0..8), end in 0..FILM.len()) {
        let mut bytes = FILM.as_bytes().to_vec();
        for (at, byte) in cuts {
            bytes[at] = byte;
        }
        bytes.truncate(end);
        let _ = SessionDescription::read(&bytes, "rtsp://h/");
    }
}

#[test]
fn retransmission_is_read() {
    let read = |lines: &str| {
        let text = format!("v=0\r\n{lines}a=control:v\r\n");
        SessionDescription::read(text.as_bytes(), "rtsp://h/").unwrap().streams.remove(0).feedback
    };
    let offer = |payload_type, time: Option<u64>| {
        Some(RetransmissionOffer { payload_type, time: time.map(std::time::Duration::from_millis) })
    };
    let map = "a=rtpmap:96 H264/90000\r\n";
    let rtx = "a=rtpmap:98 rtx/90000\r\na=fmtp:98 apt=96;rtx-time=2000\r\n";
    let (plain, both) = (vec![RtpProfile::Avp], vec![RtpProfile::Avpf, RtpProfile::Avp]);
    for (lines, profiles, expected) in [
        (format!("m=video 0 RTP/AVP 96\r\n{map}"), plain.clone(), None),
        (format!("m=video 0 RTP/AVP 96\r\n{map}{rtx}"), plain.clone(), None),
        (format!("m=video 0 RTP/AVPF 96\r\n{map}"), vec![RtpProfile::Avpf], None),
        // As GStreamer's server has it.
        (format!("m=video 0 RTP/AVPF 96 98\r\n{map}{rtx}"), vec![RtpProfile::Avpf], offer(Some(98), Some(2000))),
        (format!("m=video 0 RTP/AVP 96\r\n{rtx}{map}a=rtcp-fb:96 nack\r\n"), both.clone(), offer(Some(98), Some(2000))),
        (format!("m=video 0 RTP/AVP 96\r\n{map}a=rtcp-fb:* nack\r\n"), both, offer(None, None)),
        (format!("m=video 0 RTP/AVP 96\r\n{map}a=rtcp-fb:96 nack pli\r\na=rtcp-fb:97 nack\r\n"), plain.clone(), None),
        (format!("m=video 0 RTP/SAVPF 96\r\n{map}{rtx}a=rtcp-fb:96 nack\r\n"), plain, None),
        (
            format!(
                "m=video 0 RTP/AVPF 96\r\n{map}a=rtpmap:98 rtx/90000\r\na=fmtp:98 apt=97\r\na=rtpmap:99 rtx/90000\r\na=fmtp:99 apt=96\r\n"
            ),
            vec![RtpProfile::Avpf],
            offer(Some(99), None),
        ),
    ] {
        assert_eq!(read(&lines), FeedbackOffer { profiles, retransmission: expected }, "{lines}");
    }
}

#[test]
fn a_stream_that_is_described_with_each_profile_is_one() {
    let stream = |profile: &str, more: &str, control: &str| {
        format!("m=video 0 {profile} 96\r\na=rtpmap:96 H264/90000\r\n{more}a=control:{control}\r\n")
    };
    let rtx = "a=rtpmap:98 rtx/90000\r\na=fmtp:98 apt=96\r\n";
    let (plain, feedback) = (stream("RTP/AVP", "", "v"), stream("RTP/AVPF", rtx, "v"));
    for text in [format!("{plain}{feedback}"), format!("{feedback}{plain}")] {
        let text = format!("v=0\r\n{text}{}", stream("RTP/AVPF", "", "w"));
        let read = SessionDescription::read(text.as_bytes(), "rtsp://h/").unwrap().streams;
        assert_eq!(read.len(), 2);
        assert!(read[0].control.ends_with('v') && read[0].feedback.retransmission.is_some());
        assert_eq!(read[0].feedback.profiles, [RtpProfile::Avpf, RtpProfile::Avp]);
    }
    // Streams with one control URL are not always one.
    let text = format!("v=0\r\n{plain}{plain}");
    assert_eq!(SessionDescription::read(text.as_bytes(), "rtsp://h/").unwrap().streams.len(), 2);
}
