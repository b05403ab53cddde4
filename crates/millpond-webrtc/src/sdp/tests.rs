//! Tests with offers of browsers and encoders. That of Chromium is its own, and Chromium takes the answers in `samples`.

use super::*;
use millpond_media::codec::{
    Av1Config, AvcConfig, ByteOrder, Codec, Color, HevcConfig, OpusConfig, PcmCoding, PcmConfig, Vp9Config,
};
use millpond_rtp::payload::{Packetizer, Pcm, Values};
use proptest::prelude::*;
use std::net::SocketAddr;

const CHROMIUM: &str = include_str!("samples/chromium.sdp");
const FIREFOX: &str = include_str!("samples/firefox.sdp");
const GSTREAMER: &str = include_str!("samples/gstreamer.sdp");
const OBS: &str = include_str!("samples/obs.sdp");
const SAMPLES: [&str; 4] = [CHROMIUM, FIREFOX, GSTREAMER, OBS];

fn read(text: &str) -> PeerOffer {
    PeerOffer::read(text.as_bytes()).unwrap()
}

/// The fault of an offer.
fn fault(text: &str) -> String {
    PeerOffer::read(text.as_bytes()).unwrap_err().to_string()
}

/// A sample without the lines that begin with a text.
pub(super) fn without(sample: &str, start: &str) -> String {
    sample.lines().filter(|line| !line.starts_with(start)).collect::<Vec<_>>().join("\n")
}

pub(super) fn avc(profile: u8, compatibility: u8) -> (Codec, Packetizer) {
    let config = AvcConfig {
        fourcc: *b"avc1",
        profile,
        compatibility,
        level: 31,
        nal_length_size: 4,
        sps: Vec::new(),
        pps: Vec::new(),
        color: None,
    };
    (Codec::Avc(config), Packetizer::Avc(4))
}

pub(super) fn hevc(profile: u8) -> (Codec, Packetizer) {
    let config = HevcConfig {
        fourcc: *b"hvc1",
        profile_space: 0,
        profile,
        high_tier: false,
        compatibility: 0,
        constraints: [0; 6],
        level: 93,
        nal_length_size: 4,
        vps: Vec::new(),
        sps: Vec::new(),
        pps: Vec::new(),
        color: None,
        dolby_vision: None,
    };
    (Codec::Hevc(config), Packetizer::Hevc(4))
}

pub(super) fn vpx(fourcc: [u8; 4], profile: u8) -> (Codec, Packetizer) {
    let config = Vp9Config { fourcc, profile, level: 31, bit_depth: 8, chroma: 1, color: Color::UNSPECIFIED };
    (Codec::Vp9(config), if fourcc == *b"vp08" { Packetizer::Vp8 } else { Packetizer::Vp9 })
}

pub(super) fn av1(profile: u8) -> (Codec, Packetizer) {
    let config = Av1Config {
        profile,
        level: 5,
        high_tier: false,
        bit_depth: 8,
        monochrome: false,
        chroma: (true, true, 0),
        color: None,
        dolby_vision: None,
    };
    (Codec::Av1(config), Packetizer::Av1)
}

pub(super) fn opus(channels: u16, mapping: &[u8]) -> (Codec, Packetizer) {
    let config = OpusConfig {
        channels,
        pre_skip: 312,
        input_sample_rate: 48_000,
        output_gain: 0,
        mapping_family: u8::from(!mapping.is_empty()),
        mapping: mapping.to_vec(),
    };
    (Codec::Opus(config), Packetizer::Opus)
}

pub(super) fn pcm(coding: PcmCoding, values: Values, channels: u16, sample_rate: u32) -> (Codec, Packetizer) {
    let config = PcmConfig { fourcc: *b"test", coding, channels, sample_rate };
    (Codec::Pcm(config), Packetizer::Pcm(Pcm { values, channels }))
}

/// The payload type in a section for pictures.
fn picture(section: &Section, (codec, packetizer): &(Codec, Packetizer)) -> Option<u8> {
    format_for(section, codec, *packetizer, 90_000, 1).map(|format| format.payload_type)
}

/// The payload type in a section for sound.
fn sound(section: &Section, (codec, packetizer): &(Codec, Packetizer), rate: u32, channels: u16) -> Option<u8> {
    format_for(section, codec, *packetizer, rate, channels).map(|format| format.payload_type)
}

#[test]
fn chromium_is_read() {
    for text in [CHROMIUM.to_owned(), CHROMIUM.replace('\n', "\r\n")] {
        let offer = read(&text);
        assert_eq!(offer.remote.ufrag, "CGD+");
        assert_eq!(offer.remote.password, "lOx4FaX7hc17rF7U5Xx05uzB");
        assert!(offer.fingerprint.to_string().starts_with("EB:81:D7:"));
        let [video, audio] = &offer.sections[..] else { panic!("{offer:?}") };
        assert_eq!((&video.kind, &*video.mid, &*video.proto), (&SectionKind::Video, "0", "UDP/TLS/RTP/SAVPF"));
        assert_eq!((&audio.kind, &*audio.mid, audio.direction), (&SectionKind::Audio, "1", MediaDirection::RecvOnly));
        assert!(video.receives() && !video.sends() && video.is_bundled);
        assert!(video.format_list.starts_with("96 97 98 ") && video.format_list.ends_with(" 120 49"));
        assert_eq!(video.extensions[0], (1, "urn:ietf:params:rtp-hdrext:toffset".to_owned()));
        let avc = video.format(108).unwrap();
        assert_eq!((&*avc.encoding, avc.clock_rate, avc.channels, avc.repeat_type), ("H264", 90_000, None, Some(109)));
        assert_eq!(avc.parameter("Profile-Level-Id"), Some("42e01f"));
        assert_eq!(avc.feedback, ["goog-remb", "transport-cc", "ccm fir", "nack", "nack pli"]);
        let opus = audio.format(111).unwrap();
        assert_eq!(
            (&*opus.encoding, opus.clock_rate, opus.channels, opus.repeat_type),
            ("opus", 48_000, Some(2), None)
        );
        assert_eq!(audio.format(63).unwrap().parameters, [("111/111".to_owned(), String::new())]);
    }
}

#[test]
fn formats_of_chromium_fit_tracks() {
    let offer = read(CHROMIUM);
    let [video, audio] = &offer.sections[..] else { panic!("{offer:?}") };
    for (track, expected) in [
        (avc(66, 0xe0), Some(108)),
        (avc(66, 0xc0), Some(108)),
        (avc(66, 0), Some(102)),
        (avc(77, 0x40), Some(116)),
        (avc(77, 0x80), Some(108)),
        // There is no High, but its superset.
        (avc(100, 0), Some(41)),
        (avc(100, 0x0c), Some(41)),
        (avc(110, 0), Some(41)),
        (avc(244, 0), Some(41)),
        // The last resort.
        (avc(88, 0), Some(108)),
        (vpx(*b"vp08", 0), Some(96)),
        (vpx(*b"vp09", 0), Some(98)),
        (vpx(*b"vp09", 2), Some(100)),
        (av1(0), Some(45)),
        (av1(1), Some(47)),
        (av1(2), None),
        (hevc(1), None),
    ] {
        assert_eq!(picture(video, &track), expected, "{track:?}");
        assert_eq!(picture(audio, &track), None, "{track:?}");
    }
    assert_eq!(sound(audio, &opus(2, &[]), 48_000, 2), Some(111));
    assert_eq!(sound(audio, &opus(1, &[]), 48_000, 1), Some(111), "the count of the name is always two");
    assert_eq!(sound(audio, &opus(2, &[1, 1, 0, 1]), 48_000, 2), Some(111), "one stream");
    assert_eq!(sound(audio, &opus(6, &[4, 2, 0, 4, 1, 2, 3, 5]), 48_000, 6), None);
    assert_eq!(sound(audio, &pcm(PcmCoding::MuLaw, Values::Pcmu, 1, 8000), 8000, 1), Some(0));
    assert_eq!(sound(audio, &pcm(PcmCoding::ALaw, Values::Pcma, 1, 8000), 8000, 1), Some(8));
    assert_eq!(sound(audio, &pcm(PcmCoding::ALaw, Values::Pcma, 2, 8000), 8000, 2), None);
    assert_eq!(sound(audio, &pcm(PcmCoding::Signed16(ByteOrder::Big), Values::L16, 1, 8000), 8000, 1), None);
}

#[test]
fn all_forms_of_formats_are_read() {
    let text = "v=0\na=ice-ufrag:u\na=ice-pwd:p\na=group:bundle a v\n\
        a=fingerprint:sha-1 00\na=fingerprint:SHA-256 00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13:14:15:16:17:\
        18:19:1A:1B:1C:1D:1E:1F\na=inactive\n\
        m=audio 9 RTP/SAVPF 0 8 9 96 96 300 x\na=mid:a\na=sendrecv\na=rtcp-mux\na=rtcp-fb:* nack\n\
        a=rtpmap:96 l16/48000/2\na=rtpmap:97 opus/48000/2\n\
        m=VIDEO 0/2 TCP/DTLS/RTP/SAVPF 100 101 102 103\na=mid:v\na=bundle-only\na=recvonly\na=rtcp-mux-only\n\
        a=rtpmap:100 H265/90000\na=fmtp:100 profile-id=2\na=rtpmap:101 h265/90000\na=rtpmap:102 rtx/90000\n\
        a=fmtp:102 apt=101;rtx-time=500\na=rtcp-fb:*  nack  \na=rtpmap:103 H264/90000\n";
    let offer = read(text);
    assert_eq!(offer.fingerprint, Fingerprint(std::array::from_fn(|at| at as u8)));
    let [audio, video] = &offer.sections[..] else { panic!("{offer:?}") };
    let types: Vec<u8> = audio.formats.iter().map(|format| format.payload_type).collect();
    assert_eq!((types, &*audio.format_list), (vec![0, 8, 96], "0 8 9 96 96 300 x"));
    assert!(audio.sends() && audio.receives() && audio.formats.iter().all(|format| format.feedback == ["nack"]));
    assert_eq!(sound(audio, &pcm(PcmCoding::MuLaw, Values::Pcmu, 1, 8000), 8000, 1), Some(0), "without a=rtpmap");
    let l16 = pcm(PcmCoding::Signed16(ByteOrder::Little), Values::L16, 2, 48_000);
    assert_eq!(sound(audio, &l16, 48_000, 2), Some(96));
    assert_eq!(format_for(audio, &l16.0, Packetizer::Aac, 48_000, 2), None, "no packets of WebRTC");
    assert_eq!((picture(video, &hevc(2)), picture(video, &hevc(1))), (Some(100), Some(101)), "equal or absent");
    assert_eq!((video.format(101).unwrap().repeat_type, video.format(100).unwrap().repeat_type), (Some(102), None));
    assert_eq!(picture(video, &avc(66, 0xe0)), None, "packetization mode 0 is not sent");
}

#[test]
fn firefox_names_parameters_first() {
    let offer = read(FIREFOX);
    assert_eq!((&*offer.remote.ufrag, &*offer.remote.password), ("5e7d1c4a", "7f0cb41a5c1e4a1f8a3a54b2c6d9e013"));
    assert!(offer.fingerprint.to_string().starts_with("19:E2:"), "that of the session");
    let [video, audio] = &offer.sections[..] else { panic!("{offer:?}") };
    assert_eq!(video.format(126).unwrap().repeat_type, Some(127));
    assert_eq!(video.format(121).unwrap().repeat_type, None, "nobody would ask");
    for (track, expected) in
        [(avc(66, 0xc0), 126), (avc(66, 0), 105), (avc(77, 0), 126), (avc(100, 0), 126), (av1(0), 99)]
    {
        assert_eq!(picture(video, &track), Some(expected), "{track:?}");
    }
    assert_eq!(sound(audio, &opus(2, &[]), 48_000, 2), Some(109));
    assert_eq!(sound(audio, &pcm(PcmCoding::ALaw, Values::Pcma, 1, 8000), 8000, 1), Some(8));
    assert_eq!(audio.extensions, [(2, "urn:ietf:params:rtp-hdrext:csrc-audio-level".to_owned())]);
}

#[test]
fn publishers_are_read() {
    let gstreamer = read(GSTREAMER);
    let [video, audio, data] = &gstreamer.sections[..] else { panic!("{gstreamer:?}") };
    assert!(video.sends() && !video.receives() && audio.sends(), "a port of 0 is no refusal with bundle-only");
    assert_eq!((&data.kind, data.is_usable), (&SectionKind::Other("application".to_owned()), false));
    assert_eq!((&*data.format_list, data.formats.len()), ("webrtc-datachannel", 0));
    assert_eq!(picture(video, &avc(66, 0xe0)), None, "the offerer receives nothing");
    let obs = read(OBS);
    assert_eq!((&*obs.remote.ufrag, &*obs.remote.password), ("wE2r", "kQzg7PBwVdeNB355ciligf"));
    assert_eq!(obs.sections.iter().map(|section| &*section.mid).collect::<Vec<_>>(), ["0", "1"]);
    // FFmpeg names two sections where it sends one.
    let ffmpeg = "v=0\r\no=FFmpeg 4489045141692799359 2 IN IP4 127.0.0.1\r\ns=FFmpegPublishSession\r\nt=0 0\r\n\
        a=group:BUNDLE 0 1\r\na=extmap-allow-mixed\r\na=msid-semantic: WMS\r\nm=video 9 UDP/TLS/RTP/SAVPF 106\r\n\
        c=IN IP4 0.0.0.0\r\na=ice-ufrag:1a2b3c4d\r\na=ice-pwd:00112233445566778899aabbccddeeff\r\n\
        a=fingerprint:sha-256 5A:87:CD:A2:BF:80:CE:B9:40:C1:A2:A2:9A:DB:DD:C3:98:34:B0:FD:2E:E0:1D:54:04:22:7D:05:71:5B:82:\
        13\r\na=setup:active\r\na=mid:1\r\na=sendonly\r\na=msid:FFmpeg video\r\na=rtcp-mux\r\na=rtcp-rsize\r\n\
        a=rtpmap:106 H264/90000\r\na=fmtp:106 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f\r\n";
    let offer = read(ffmpeg);
    assert!(offer.sections[0].sends() && offer.sections[0].is_bundled);
    assert!(offer.begins_dtls && !read(&ffmpeg.replace("setup:active", "setup:passive")).begins_dtls);
}

#[test]
fn faults_name_their_place_and_cure() {
    let foreign = fault("{\"type\":\"offer\",\"sdp\":\"v=0\\r\\n\"}");
    assert!(foreign.starts_with("an offer that begins with \"{\\\"type\\\"") && foreign.contains("v=0"), "{foreign}");
    assert_eq!(
        fault(""),
        "an offer that begins with \"\", expected a session description (RFC 8866) that begins with \"v=0\""
    );
    assert!(fault("v=0\r\n").starts_with("the offer has no section for media"));
    assert!(fault(&OBS.replace("a=sendonly", "a=inactive")).starts_with("the offer has no section for media"));
    let long = "v=0\n".repeat(20_000);
    assert_eq!(fault(&long), "an offer with 80000 bytes, expected at most 65536");
    let wide = "m=video 9 RTP/SAVPF 96\n".repeat(65);
    assert_eq!(fault(&wide), "an offer with 65 sections, expected at most 64");
    let wide = format!("m=video 9 RTP/SAVPF{}\n", " 96".repeat(129));
    assert_eq!(fault(&wide), "an offer with 129 formats in a section, expected at most 128");
    for line in ["m=video 9 RTP/SAVPF", "m=video x RTP/SAVPF 96", "m=video 99999 RTP/SAVPF 96", "m="] {
        let expected = format!("line 2 of the offer is {line:?}, expected \"m=video 9 UDP/TLS/RTP/SAVPF 96\"");
        assert_eq!(fault(&format!("v=0\n{line}\n")), expected);
    }
    // The offer is one line shorter.
    let section = "in the section of line 12 (m=audio), expected";
    let credentials = "credentials of ICE (RFC 8839 5.4) there, or before the first m= line";
    for name in ["ice-ufrag", "ice-pwd"] {
        assert_eq!(
            fault(&without(OBS, &format!("a={name}"))),
            format!("the offer has no a={name} {section} {credentials}")
        );
    }
    let fingerprint = fault(&without(OBS, "a=fingerprint"));
    assert!(
        fingerprint.starts_with(&format!("the offer has no a=fingerprint {section} one of sha-256")),
        "{fingerprint}"
    );
    assert_eq!(
        fault(&without(CHROMIUM, "a=rtcp-mux")),
        "the offer has no a=rtcp-mux in the section of line 8 (m=video), expected RTCP on the port of RTP (RFC 5761)"
    );
    assert!(fault(&OBS.replace("sha-256", "sha-512")).contains("a=fingerprint has the hash function \"sha-512\""));
    assert!(
        fault(&OBS.replace("5A:87", "5A87")).contains("line 12 of the offer: a=fingerprint has no digest of SHA-256")
    );
    assert!(fault(&OBS.replace("wE2r", "w:r")).starts_with("line 9 of the offer is \"a=ice-ufrag:w:r\""));
    let password = fault(&OBS.replace("kQzg7PBwVdeNB355ciligf", "my secret"));
    assert!(password.starts_with("line 10 of the offer is \"a=ice-pwd with 9 bytes\""), "{password}");
    let lite = fault(&OBS.replace("t=0 0", "t=0 0\na=ice-lite"));
    assert!(lite.starts_with("line 5 of the offer: a=ice-lite"), "{lite}");
    assert!(fault(&OBS.replace("actpass", "holdconn")).contains("a=setup is \"holdconn\""));
}

#[test]
fn sections_share_a_transport() {
    let text = without(GSTREAMER, "a=group").replace("m=audio 0", "m=audio 9");
    let no_group = fault(&text);
    assert!(no_group.starts_with("the offer has 2 sections and no a=group:BUNDLE"), "{no_group}");
    assert!(no_group.contains("\"max-bundle\""), "{no_group}");
    let alone = read(&text.replace("m=audio 9", "m=audio 0").replace("a=bundle-only\n", ""));
    let usable: Vec<bool> = alone.sections.iter().map(|section| section.is_usable).collect();
    assert_eq!(usable, [true, false, false], "one section needs no group");
    assert!(!alone.sections[0].is_bundled);
    let outside = read(&CHROMIUM.replace("BUNDLE 0 1", "BUNDLE 1"));
    let usable: Vec<bool> = outside.sections.iter().map(|section| section.is_usable).collect();
    assert_eq!(usable, [false, true], "the transport of the group counts");
    // The first of the group has the transport.
    let (first, second) = CHROMIUM.split_once("m=audio").unwrap();
    let text = format!("{}m=audio{}", first.replace("BUNDLE 0 1", "BUNDLE 1 0"), second.replace("CGD+", "other"));
    assert_eq!(read(&text).remote.ufrag, "other");
    assert_eq!(read(&text.replace("BUNDLE 1 0", "BUNDLE 7 0 1")).remote.ufrag, "CGD+");
}

pub(super) fn local() -> (IceCredentials, Fingerprint) {
    let password = "serverPasswordOf24bytes0".to_owned();
    (IceCredentials { ufrag: "serverUfrag".to_owned(), password }, Fingerprint(std::array::from_fn(|at| at as u8)))
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[test]
fn answers_are_those_that_chromium_takes() {
    let offer = read(CHROMIUM);
    let [video, audio] = &offer.sections[..] else { panic!("{offer:?}") };
    let (local, fingerprint) = local();
    let candidates = [
        IceCandidate::udp(address("203.0.113.7:8555")),
        IceCandidate::udp(address("[2001:db8::7]:8555")),
        IceCandidate::tcp(address("203.0.113.7:8555")),
        IceCandidate { host: "media.example.com".to_owned(), port: 8555, protocol: CandidateProtocol::Udp },
    ];
    let pictures = AnsweredSection::Sends {
        section: video,
        format: video.format(108).unwrap(),
        ssrc: 1001,
        repeat_ssrc: Some(1002),
        track: "v1",
        stream: "film",
    };
    let sound = |payload_type| AnsweredSection::Sends {
        section: audio,
        format: audio.format(payload_type).unwrap(),
        ssrc: 1003,
        repeat_ssrc: Some(1004),
        track: "a1",
        stream: "film",
    };
    let both = [pictures, sound(111)];
    let answer = PeerAnswer {
        session: 7001,
        local: &local,
        fingerprint: &fingerprint,
        begins_dtls: false,
        candidates: &candidates,
        sections: &both,
        note: Some("H.264 as it is stored"),
    };
    assert_eq!(answer.write(), include_str!("samples/answer.sdp").replace('\n', "\r\n"));
    let one = [AnsweredSection::Rejected { section: video }, sound(0)];
    let answer = PeerAnswer { session: 7002, candidates: &candidates[..1], sections: &one, note: None, ..answer };
    assert_eq!(answer.write(), include_str!("samples/answer_sound_only.sdp").replace('\n', "\r\n"));
}

#[test]
fn publishers_are_answered() {
    let offer = read(GSTREAMER);
    let [video, audio, data] = &offer.sections[..] else { panic!("{offer:?}") };
    let (local, fingerprint) = local();
    let sections = [
        AnsweredSection::Receives { section: video, format: received_format(video).unwrap(), arrivals: Some(3) },
        AnsweredSection::Receives { section: audio, format: received_format(audio).unwrap(), arrivals: None },
        AnsweredSection::Rejected { section: data },
    ];
    let answer = PeerAnswer {
        session: 1,
        local: &local,
        fingerprint: &fingerprint,
        begins_dtls: false,
        candidates: &[],
        sections: &sections,
        note: None,
    };
    let text = answer.write();
    for expected in [
        "a=group:BUNDLE video0 audio1\r\n",
        // Nothing is sent again where `nack` is not offered.
        "m=video 9 UDP/TLS/RTP/SAVPF 96\r\n",
        "a=recvonly\r\na=rtcp-mux\r\na=rtcp-mux-only\r\n\
         a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01\r\na=rtpmap:96 H264/90000\r\n\
         a=fmtp:96 packetization-mode=1;profile-level-id=42E01F\r\na=rtcp-fb:96 nack pli\r\na=rtcp-fb:96 ccm fir\r\n\
         a=end-of-candidates\r\n",
        "m=audio 9 UDP/TLS/RTP/SAVPF 98\r\n",
        // Without the parameters of the publisher's own stream.
        "a=rtpmap:98 OPUS/48000/2\r\na=rtcp-fb:98 nack\r\nm=application 0 UDP/DTLS/SCTP webrtc-datachannel\r\n\
         c=IN IP4 0.0.0.0\r\na=mid:application2\r\na=inactive\r\n",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    assert!(!text.contains("ssrc") && !text.contains("msid:"), "{text}");
}

#[test]
fn names_can_not_write_lines() {
    let offer = read(&without(CHROMIUM, "a=group").replace("m=video 9", "m=video 0"));
    let [video, audio] = &offer.sections[..] else { panic!("{offer:?}") };
    let (local, fingerprint) = local();
    let sections = [
        AnsweredSection::Rejected { section: video },
        AnsweredSection::Sends {
            section: audio,
            format: audio.format(111).unwrap(),
            ssrc: 5,
            repeat_ssrc: None,
            track: "a film/1\r\na=x",
            stream: "",
        },
    ];
    let note = Some("two\r\na=lines");
    let text = PeerAnswer {
        session: 1,
        local: &local,
        fingerprint: &fingerprint,
        begins_dtls: false,
        candidates: &[],
        sections: &sections,
        note,
    }
    .write();
    assert!(text.contains("a=msid:- a-film-1--a-x\r\n") && text.contains("i=twoa=lines\r\n"), "{text}");
    assert!(!text.contains("a=group"), "one that was not offered: {text}");
}

/// Answers a section with its first format where it receives, and with all where it sends.
fn answered(section: &Section) -> AnsweredSection<'_> {
    match section.formats.first() {
        Some(format) if section.receives() => AnsweredSection::Sends {
            section,
            format,
            ssrc: 1,
            repeat_ssrc: Some(2),
            track: "a track",
            stream: "a stream",
        },
        Some(format) if section.sends() => AnsweredSection::Receives { section, format, arrivals: Some(7) },
        _ => AnsweredSection::Rejected { section },
    }
}

fn answer_somehow(offer: &PeerOffer) -> String {
    let sections: Vec<AnsweredSection<'_>> = offer.sections.iter().map(answered).collect();
    let (local, fingerprint) = local();
    let candidates = [IceCandidate::udp(address("203.0.113.7:8555"))];
    PeerAnswer {
        session: 1,
        local: &local,
        fingerprint: &fingerprint,
        begins_dtls: false,
        candidates: &candidates,
        sections: &sections,
        note: Some("a note"),
    }
    .write()
}

fn check_answer(offer: &PeerOffer) {
    let text = answer_somehow(offer);
    let session = sdp_types::Session::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(session.medias.len(), offer.sections.len(), "{text}");
    for (media, section) in session.medias.iter().zip(&offer.sections) {
        assert_eq!(media.media, section.kind.name());
        assert_eq!(media.port != 0, section.is_usable && !section.formats.is_empty(), "{text}");
    }
}

#[test]
fn answers_parse() {
    for sample in SAMPLES {
        check_answer(&read(sample));
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = PeerOffer::read(&bytes);
    }

    #[test]
    fn changed_offers_are_answered_or_refused(
        sample in 0..SAMPLES.len(),
        moves in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..3_u8), 0..6),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let mut lines: Vec<&str> = SAMPLES[sample].lines().collect();
        for (from, to, kind) in moves {
            let (from, to) = (from.index(lines.len()), to.index(lines.len()));
            match kind {
                0 => lines.swap(from, to),
                1 => lines[to] = lines[from],
                _ => {
                    lines.remove(from);
                }
            }
        }
        let mut bytes = lines.join("\r\n").into_bytes();
        for (at, byte) in cuts {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(offer) = PeerOffer::read(&bytes) {
            check_answer(&offer);
        }
    }
}
