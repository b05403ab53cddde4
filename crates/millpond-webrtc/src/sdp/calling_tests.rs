//! Tests of the server's own offers, and of answers to them. One answer has the form that Pion writes, as many servers do.

use super::{
    tests::{av1, avc, hevc, local, opus, pcm, vpx, without},
    *,
};
use millpond_media::codec::{ByteOrder, Codec, PcmCoding};
use millpond_rtp::payload::{Packetizer, Values};
use proptest::prelude::*;

const OTHER: &str = include_str!("samples/other_answer.sdp");
/// The server's own answer to a viewer.
const OWN: &str = include_str!("samples/answer.sdp");

fn formats((codec, packetizer): &(Codec, Packetizer), rate: u32, channels: u16) -> Vec<SentFormat> {
    SentFormat::all_of(codec, *packetizer, rate, channels)
}

fn section(kind: SectionKind, formats: Vec<SentFormat>, ssrc: u32, track: &str) -> SentSection {
    let media = OfferedMedia::Sends { ssrc, repeat_ssrc: ssrc + 1, track: track.to_owned() };
    SentSection { kind, formats, media }
}

/// Pictures of the High profile, and Opus.
fn sections() -> [SentSection; 2] {
    let pictures = formats(&avc(100, 0), 90_000, 1);
    let sound = formats(&opus(2, &[]), 48_000, 2);
    [section(SectionKind::Video, pictures, 1001, "v1"), section(SectionKind::Audio, sound, 1003, "a1")]
}

/// Pictures and sound that are received.
fn received_sections() -> [SentSection; 2] {
    [SectionKind::Video, SectionKind::Audio].map(|kind| {
        let formats = receivable_formats(&kind);
        SentSection { kind, formats, media: OfferedMedia::Receives { arrivals: 1 } }
    })
}

fn offer_of(sections: &[SentSection]) -> String {
    let (local, fingerprint) = local();
    let (local, fingerprint) = (&local, &fingerprint);
    SentOffer { session: 7003, local, fingerprint, stream: "millpond", sections }.write()
}

fn offer() -> String {
    offer_of(&sections())
}

fn read(text: &str) -> ReceivedAnswer {
    ReceivedAnswer::read(text.as_bytes()).unwrap()
}

fn fault(text: &str) -> String {
    ReceivedAnswer::read(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn an_offer_tells_formats_and_sources() {
    assert_eq!(offer(), include_str!("samples/sent_offer.sdp").replace('\n', "\r\n"));
}

#[test]
fn tracks_are_offered_in_the_formats_of_peers() {
    let of = |track: &(Codec, Packetizer)| -> Vec<String> {
        formats(track, 90_000, 1).iter().map(|format| format!("{} {}", format.encoding, format.parameters)).collect()
    };
    let usual = "H264 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f";
    assert_eq!(of(&avc(66, 0xe0)), [usual]);
    assert_eq!(of(&avc(77, 0))[1..], [usual]);
    assert_eq!(of(&hevc(1)), ["H265 level-id=93;profile-id=1;tier-flag=0;tx-mode=SRST"]);
    assert_eq!(of(&av1(0)), ["AV1 level-idx=5;profile=0;tier=0"]);
    assert_eq!((of(&vpx(*b"vp09", 2)), of(&vpx(*b"vp08", 0))), (vec!["VP9 profile-id=2".into()], vec!["VP8 ".into()]));
    let g711 = |coding, values, rate, channels| -> Vec<u8> {
        let all = formats(&pcm(coding, values, channels, rate), rate, channels);
        all.iter().map(|format| format.payload_type).collect()
    };
    assert_eq!(g711(PcmCoding::MuLaw, Values::Pcmu, 8000, 1), [0]);
    assert_eq!(g711(PcmCoding::ALaw, Values::Pcma, 8000, 1), [8]);
    assert!(g711(PcmCoding::ALaw, Values::Pcma, 8000, 2).is_empty());
    assert!(g711(PcmCoding::MuLaw, Values::Pcmu, 16_000, 1).is_empty());
    assert!(g711(PcmCoding::Signed16(ByteOrder::Big), Values::L16, 48_000, 2).is_empty());
    assert!(formats(&opus(6, &[4, 2, 0, 4, 1, 2, 3, 5]), 48_000, 6).is_empty());
}

/// The server's own answer.
fn answer(sections: &[AnsweredSection<'_>]) -> String {
    let (local, fingerprint) = local();
    let answer = PeerAnswer {
        session: 1,
        local: &local,
        fingerprint: &fingerprint,
        begins_dtls: false,
        candidates: &[IceCandidate::udp("203.0.113.7:8189".parse().unwrap())],
        sections,
        note: None,
    };
    answer.write()
}

#[test]
fn an_offer_to_receive_tells_formats_and_no_sources() {
    let text = offer_of(&received_sections());
    for line in [
        "m=video 9 UDP/TLS/RTP/SAVPF 96 97 98 99 100 101 102 103 104 105 106 107 108 109 112 113 114 115 116 117\r\n",
        "m=audio 9 UDP/TLS/RTP/SAVPF 111 0 8\r\n",
        "a=rtcp-fb:96 nack pli\r\n",
        "a=rtcp-fb:111 transport-cc\r\n",
        "a=extmap:1 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01\r\n",
        "a=rtpmap:111 opus/48000/2\r\n",
        "a=rtpmap:116 VP8/90000\r\na=rtcp-fb:116 nack\r\n",
    ] {
        assert!(text.contains(line), "no {line:?} in {text}");
    }
    assert_eq!(text.matches("a=recvonly").count(), 2);
    assert!(!text.contains("a=ssrc") && !text.contains("a=msid:"), "{text}");
    let read = PeerOffer::read(text.as_bytes()).unwrap();
    let types = |at: usize| read.sections[at].formats.iter().map(|format| format.payload_type).collect::<Vec<_>>();
    assert_eq!((types(0).len(), types(1)), (20, vec![111, 0, 8]));
    assert!(read.sections.iter().all(Section::receives));
}

#[test]
fn the_formats_that_a_peer_sends_are_those_of_its_answer() {
    let offer = PeerOffer::read(offer_of(&received_sections()).as_bytes()).unwrap();
    for (track, encoding, repeat) in [
        (avc(100, 0), "H264", Some(103)),
        (hevc(1), "H265", Some(105)),
        (hevc(2), "H265", Some(107)),
        (av1(0), "AV1", Some(109)),
        (vpx(*b"vp09", 0), "VP9", Some(113)),
        (vpx(*b"vp09", 2), "VP9", Some(115)),
        (vpx(*b"vp08", 0), "VP8", Some(117)),
    ] {
        let format = format_for(&offer.sections[0], &track.0, track.1, 90_000, 1).unwrap();
        let sends = AnsweredSection::Sends {
            section: &offer.sections[0],
            format,
            ssrc: 7,
            repeat_ssrc: Some(8),
            track: "v1",
            stream: "millpond",
        };
        let answer = answer(&[sends, AnsweredSection::Rejected { section: &offer.sections[1] }]);
        let section = read(&answer).section(0).cloned().unwrap();
        let [format] = &answered_formats(&received_sections()[0].formats, &section)[..] else { panic!("{answer}") };
        assert_eq!((&*format.encoding, format.repeat_type), (encoding, repeat), "{answer}");
        assert!(format.takes("nack") && format.takes("nack pli"), "{answer}");
        assert_eq!(read(&answer).section(1), None);
    }
    let sends = read(&OTHER.replace("a=recvonly", "a=sendonly").replace("a=rtpmap:98 H264", "a=rtpmap:98 VP9"));
    let formats = |answer: &ReceivedAnswer, at: usize| {
        answered_formats(&received_sections()[at].formats, answer.section(at).unwrap())
    };
    assert!(formats(&sends, 0).is_empty(), "98 was offered as H.264");
    assert_eq!(formats(&sends, 1).len(), 1);
    assert!(formats(&read(OTHER), 1).is_empty(), "it sends nothing");
}

#[test]
fn the_servers_own_answer_accepts_its_own_offer() {
    let offer = PeerOffer::read(offer().as_bytes()).unwrap();
    let (local, fingerprint) = local();
    let answered: Vec<_> = offer
        .sections
        .iter()
        .map(|section| AnsweredSection::Receives { section, format: received_format(section).unwrap(), arrivals: None })
        .collect();
    let answer = read(&answer(&answered));
    assert_eq!((answer.remote, answer.fingerprint, answer.begins_dtls), (local, fingerprint, false));
    assert_eq!(answer.addresses, ["203.0.113.7:8189".parse().unwrap()]);
    let accepted: Vec<_> =
        (0..2).map(|at| SentFormat::accepted(&sections()[at].formats, &answer.sections[at])).collect();
    let of = |payload_type, repeat_type| Some(AcceptedFormat { payload_type, repeat_type });
    assert_eq!(accepted, [of(96, Some(97)), of(111, None)]);
}

#[test]
fn answers_of_others_are_read() {
    for text in [OTHER.to_owned(), OTHER.replace('\n', "\r\n")] {
        let answer = read(&text);
        assert_eq!(answer.remote.ufrag, "dqAVwqBLnHKLCRpZ");
        assert!(answer.begins_dtls && answer.fingerprint.to_string().starts_with("5A:87:CD:"));
        let addresses: Vec<String> = answer.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["192.0.2.30:8189", "203.0.113.30:8189"]);
        let accepted = |at: usize| SentFormat::accepted(&sections()[at].formats, answer.section(at)?);
        assert_eq!(accepted(0), Some(AcceptedFormat { payload_type: 98, repeat_type: Some(99) }));
        assert_eq!(accepted(1), Some(AcceptedFormat { payload_type: 111, repeat_type: None }));
        assert_eq!(answer.section(2), None);
    }
    let lite = read(&OTHER.replace("t=0 0", "t=0 0\na=ice-lite"));
    assert_eq!(lite, read(OTHER), "who is lite matters to nobody");
    assert!(!read(&without(OTHER, "a=setup")).begins_dtls, "an answerer waits");
    let no_repeats = read(&OTHER.replace(" 98 99", " 98"));
    let accepted = SentFormat::accepted(&sections()[0].formats, no_repeats.section(0).unwrap());
    assert_eq!(accepted, Some(AcceptedFormat { payload_type: 98, repeat_type: None }));
    let nameless = read(&without(OTHER, "a=mid").replace("a=group:BUNDLE 0 1\n", "").replace("m=audio 9", "m=audio 0"));
    assert!(nameless.section(0).is_some() && nameless.section(1).is_none(), "by the index");
}

#[test]
fn a_rejected_section_leaves_the_other() {
    let answer = read(&OTHER.replace("m=audio 9", "m=audio 0"));
    assert!(answer.section(0).is_some() && answer.section(1).is_none());
    let other = read(&OTHER.replace("a=rtpmap:98 H264", "a=rtpmap:98 VP8"));
    assert_eq!(SentFormat::accepted(&sections()[0].formats, other.section(0).unwrap()), None, "another format");
    let deaf = read(&OTHER.replace("a=recvonly", "a=sendonly"));
    assert_eq!(SentFormat::accepted(&sections()[0].formats, deaf.section(0).unwrap()), None, "it receives nothing");
}

#[test]
fn faults_of_answers_name_their_place_and_cure() {
    assert!(
        fault("<html>").starts_with("an answer that begins with \"<html>\"") && fault("").contains("WHEP endpoint")
    );
    let none = fault(&OTHER.replace("m=audio 9", "m=audio 0").replace("m=video 9", "m=video 0"));
    assert!(none.starts_with("the answer accepts no section") && none.contains("H.264"), "{none}");
    assert!(fault("v=0\n").starts_with("the answer accepts no section"));
    assert_eq!(fault(&"v=0\n".repeat(20_000)), "an answer with 80000 bytes, expected at most 65536");
    assert!(fault(&OTHER.replace("m=video 9", "m=video x")).starts_with("line 9 of the answer is \"m=video x "));
    let missing = fault(&without(OTHER, "a=ice-pwd"));
    assert!(missing.starts_with("the answer has no a=ice-pwd in the section of line 9 (m=video)"), "{missing}");
    assert!(fault(&without(OTHER, "a=fingerprint")).starts_with("the answer has no a=fingerprint"));
    assert!(fault(&without(OTHER, "a=rtcp-mux")).starts_with("the answer has no a=rtcp-mux"));
    assert!(fault(&without(OTHER, "a=group")).starts_with("the answer accepts 2 sections and has no a=group:BUNDLE"));
    assert!(
        fault(&OTHER.replace("sha-256", "sha-512")).starts_with("line 6 of the answer: a=fingerprint has the hash")
    );
    assert!(fault(&OTHER.replace("setup:active", "setup:actpass")).contains("a=setup is \"actpass\", expected"));
    let alone = fault(&without(OTHER, "a=candidate"));
    assert!(alone.contains("(0 others)") && alone.contains("public address"), "{alone}");
    let tcp = fault(&OTHER.replace(" udp ", " tcp "));
    assert!(tcp.contains("(4 others)"), "{tcp}");
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = ReceivedAnswer::read(&bytes);
    }

    #[test]
    fn changed_answers_are_read_or_refused(
        is_own: bool,
        moves in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..6),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let mut lines: Vec<&str> = if is_own { OWN } else { OTHER }.lines().collect();
        for (from, to) in moves {
            let (from, to) = (from.index(lines.len()), to.index(lines.len()));
            lines.swap(from, to);
        }
        let mut bytes = lines.join("\n").into_bytes();
        for (at, byte) in cuts {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(answer) = ReceivedAnswer::read(&bytes) {
            prop_assert!((1..=16).contains(&answer.addresses.len()));
            for at in 0..2 {
                let accepted = answer.section(at).and_then(|section| SentFormat::accepted(&sections()[at].formats, section));
                let known = |number| sections()[at].formats.iter().any(|format| format.payload_type == number);
                prop_assert!(accepted.is_none_or(|accepted| known(accepted.payload_type)));
                let offered = &received_sections()[at].formats;
                for format in answer.section(at).into_iter().flat_map(|section| answered_formats(offered, section)) {
                    prop_assert!(offered.iter().any(|offered| offered.payload_type == format.payload_type));
                }
            }
        }
    }
}
