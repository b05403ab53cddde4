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
fn what_is_no_description_is_named() {
    let error = |text: &str| SessionDescription::read(text.as_bytes(), "rtsp://h/").unwrap_err();
    for text in ["hello", "", "<html>a=b</html>", "HTTP/1.1 200 OK\r\n"] {
        assert!(matches!(error(text), SessionDescriptionError::Foreign { .. }), "{text}");
    }
    assert!(error("hello").to_string().contains("\"hello\""));
    assert!(matches!(
        error(&format!("v=0\r\n{}", "m=audio 0 RTP/AVP 0\r\n".repeat(65))),
        SessionDescriptionError::TooLong { found: 65, what: "streams", most: 64 }
    ));
    assert!(matches!(error(&"v=0\r\n".repeat(60_000)), SessionDescriptionError::TooLong { what: "bytes", .. }));
}

/// Descriptions of devices, which other clients play: name, what is exchanged in [`FILM`], and its replacement.
const ODDITIES: [(&str, &str, &str); 27] = [
    ("a fraction of a time", "t=0 0", "t=1698143674.9 0"),
    ("no time", "t=0 0\r\n", ""),
    ("an origin without an address", "o=- 7 1 IN IP4 0.0.0.0", "o=- 7 1 IN IP4 "),
    ("an origin of one word", "o=- 7 1 IN IP4 0.0.0.0", "o=-"),
    ("an empty connection", "c=IN IP4 0.0.0.0", "c=IN "),
    ("an unknown kind of address", "c=IN IP4 0.0.0.0", "c=IN IPV4 0.0.0.0"),
    ("a space in the version", "v=0", "v= 0"),
    ("another version", "v=0", "v=1"),
    ("no version", "v=0\r\n", ""),
    ("no version and no origin", "v=0\r\no=- 7 1 IN IP4 0.0.0.0\r\ns=film\r\n", ""),
    ("an order of its own", "v=0\r\no=- 7 1 IN IP4 0.0.0.0\r\n", "o=- 7 1 IN IP4 0.0.0.0\r\nv=0\r\n"),
    ("an empty line first", "v=0", "\r\nv=0"),
    ("a mark of the byte order", "v=0", "\u{feff}v=0"),
    ("a line that is none", "s=film", "film"),
    ("unknown lines", "s=film", "s=film\r\ny=1\r\nQ=2"),
    ("bad bandwidths", "t=0 0", "b=AS\r\nb=AS:many\r\nb=X\r\nt=0 0"),
    ("a bad range", "a=control:*", "a=control:*\r\na=range:clock=now"),
    ("indented lines", "a=rtpmap", "  a=rtpmap"),
    ("a space before the value", "a=rtpmap:96", "a=rtpmap: 96"),
    ("two spaces", "m=video 0 RTP/AVP 96", "m=video  0  RTP/AVP  96"),
    ("a small profile", "RTP/AVP 96", "rtp/avp 96"),
    ("a profile beside TCP", "RTP/AVP 96", "RTP/AVP/TCP 96"),
    ("no space before the payload type", "RTP/AVP 96", "RTP/AVP96"),
    ("no port", "m=video 0 RTP/AVP 96", "m=video RTP/AVP 96"),
    ("a port and a count", "m=video 0 RTP/AVP 96", "m=video 49170/2 RTP/AVP 96"),
    ("large names of attributes", "a=control:v1", "A=CONTROL:v1\r\na=Control:v1"),
    ("no clock rate of pictures", "H264/90000", "H264"),
];

#[test]
fn descriptions_are_read_as_devices_write_them() {
    let plain = SessionDescription::read(FILM.as_bytes(), "rtsp://h/").unwrap();
    for (name, from, to) in ODDITIES {
        let text = FILM.replace(from, to);
        assert_ne!(text, FILM, "{name}");
        let read = SessionDescription::read(text.as_bytes(), "rtsp://h/").unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(read.streams, plain.streams, "{name}");
        assert!(read.skipped.is_empty(), "{name}: {:?}", read.skipped);
    }
    let ends = [("\0", 1), ("\0\0\r\n", 1), ("\r\n\r\n", 1), ("junk", 1)];
    for (end, repeated) in ends {
        let read = SessionDescription::read((FILM.to_owned() + &end.repeat(repeated)).as_bytes(), "rtsp://h/");
        assert_eq!(read.unwrap().streams, plain.streams, "{end:?}");
    }
    let bare = FILM.replace("\r\n", "\n");
    assert_eq!(SessionDescription::read(bare.as_bytes(), "rtsp://h/").unwrap().streams, plain.streams);
}

#[test]
fn a_section_that_states_no_format_is_skipped_and_named() {
    for (section, expected) in [
        ("m=application/TP-LINK 0 RTP/AVP smart/1/90000\r\na=rtpmap:95 /90000\r\n", "smart/1/90000"),
        (
            "m=video 0 RTP/AVP 99\r\n",
            "m= is \"video 0 RTP/AVP 99\", expected a payload type from 0 to 127 with a=rtpmap",
        ),
        ("m=video 0 RTP/AVP 128\r\n", "from 0 to 127"),
        ("m=video 0 RTP/AVP\r\n", "from 0 to 127"),
        ("m=\r\n", "expected RTP/AVP"),
        ("m=application 0 TCP 5\r\n", "expected RTP/AVP"),
        ("m=video 0 RTP/AVP 96\r\na=rtpmap:96 /90000\r\n", "a=rtpmap is \"96 /90000\""),
        ("m=audio 0 RTP/AVP 98\r\na=rtpmap:98 L16\r\n", "a=rtpmap is \"98 L16\""),
        ("m=audio 0 RTP/AVP 98\r\na=rtpmap:98\r\n", "a=rtpmap is \"98\""),
    ] {
        for text in [format!("{FILM}{section}"), FILM.replace("m=video", &format!("{section}m=video"))] {
            let read = SessionDescription::read(text.as_bytes(), "rtsp://h/").unwrap();
            assert_eq!(read.streams.len(), 2, "{section}");
            let skipped = read.skipped[0].to_string();
            assert!(read.skipped.len() == 1 && skipped.contains(expected), "{skipped}");
        }
    }
}

#[test]
fn formats_are_found_where_the_payload_type_is_unclear() {
    for (section, expected) in [
        ("m=audio 0 RTP/AVP 0\r\na=rtpmap:0 /\r\n", (0, "pcmu", 8000)),
        ("m=audio 0 RTP/AVP 97\r\na=rtpmap:97 PCMA\r\n", (97, "pcma", 8000)),
        ("m=audio 0 RTP/AVP 97\r\na=rtpmap:97 opus/0/2\r\n", (97, "opus", 48_000)),
        (
            "m=audio 0 RTP/AVP 97\r\na=rtpmap:97 MPEG4-GENERIC\r\na=fmtp:97 config=1408\r\n",
            (97, "mpeg4-generic", 16_000),
        ),
        ("m=video 0 RTP/AVP 96\r\na=rtpmap:97 H265/90000\r\n", (96, "h265", 90_000)),
        ("m=video 0 RTP/AVP\r\na=rtpmap:97 HEVC/90000\r\n", (97, "h265", 90_000)),
        ("m=video 0 RTP/AVP 95 96\r\na=rtpmap:96 H264/90000\r\n", (96, "h264", 90_000)),
        ("m=video 0 RTP/AVP 96,97\r\na=rtpmap:96 H264/x\r\n", (96, "h264", 90_000)),
    ] {
        let read = SessionDescription::read(format!("v=0\r\n{section}").as_bytes(), "rtsp://h/").unwrap();
        let [stream] = &read.streams[..] else { panic!("{section}: {read:?}") };
        assert_eq!((stream.payload_type, stream.encoding.as_str(), stream.clock_rate), expected, "{section}");
    }
}

#[test]
fn streams_that_the_client_may_send_are_skipped() {
    let speaker = "m=audio 0 RTP/AVP 0\r\na=sendonly\r\na=control:back\r\n";
    let mut read = SessionDescription::read(format!("{FILM}{speaker}").as_bytes(), "rtsp://h/").unwrap();
    assert_eq!(read.streams.len(), 3);
    read.skip_back_channels();
    assert_eq!((read.streams.len(), read.skipped[0].control.as_str()), (2, "rtsp://h/back"));
    assert_eq!(read.skipped[0].to_string(), "section 2 (audio): a=sendonly: the client sends it");
    // A camera that tells its own direction.
    let text = FILM
        .replace("a=control:v1", "a=control:v1\r\na=sendonly")
        .replace("a=control:a1", "a=control:a1\r\na=sendonly");
    let mut read = SessionDescription::read(text.as_bytes(), "rtsp://h/").unwrap();
    read.skip_back_channels();
    assert_eq!((read.streams.len(), read.skipped.len()), (2, 0));
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
        let takes_key_frames = lines.contains("nack pli");
        assert_eq!(read(&lines), FeedbackOffer { profiles, retransmission: expected, takes_key_frames }, "{lines}");
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
