//! Offers of WebRTC peers: whatever is read has an answer that parses, with a section for each of the offer's.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_rtp::transport_cc;
use millpond_webrtc::sdp::{
    AnsweredSection, Fingerprint, IceCandidate, IceCredentials, PeerAnswer, PeerOffer, received_format,
};

fuzz_target!(|offer: &[u8]| {
    let Ok(offer) = PeerOffer::read(offer) else { return };
    let local = IceCredentials { ufrag: "ufrag".to_owned(), password: "a-password-of-22-bytes".to_owned() };
    let candidates = [IceCandidate::udp("[2001:db8::7]:8189".parse().expect("an address"))];
    let sections: Vec<AnsweredSection<'_>> = offer
        .sections
        .iter()
        .map(|section| match section.formats.first().filter(|_| section.is_usable && section.receives()) {
            Some(format) => AnsweredSection::Sends {
                section,
                format,
                ssrc: 7,
                repeat_ssrc: format.repeat_type.map(|_| 8),
                track: "v1",
                stream: "film",
            },
            None => match received_format(section) {
                Some(format) => {
                    AnsweredSection::Receives { section, format, arrivals: section.extension(transport_cc::URI) }
                }
                None => AnsweredSection::Rejected { section },
            },
        })
        .collect();
    let answer = PeerAnswer {
        session: 1,
        local: &local,
        fingerprint: &Fingerprint([7; 32]),
        begins_dtls: !offer.begins_dtls,
        candidates: &candidates,
        sections: &sections,
        note: Some("a\r\nm=video 9 X 1"),
    };
    let text = answer.write();
    let read = sdp_types::Session::parse(text.as_bytes()).expect("an answer that parses");
    assert_eq!(read.medias.len(), offer.sections.len(), "{text}");
});
