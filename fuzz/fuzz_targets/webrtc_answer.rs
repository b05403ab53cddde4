//! Answers of WebRTC peers: whatever is read has an address to check, and accepts only what was offered.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_webrtc::sdp::{ReceivedAnswer, SectionKind, SentFormat, answered_formats, receivable_formats};

/// Most addresses of an answer.
const ADDRESSES: usize = 16;

fuzz_target!(|answer: &[u8]| {
    let Ok(answer) = ReceivedAnswer::read(answer) else { return };
    assert!((1..=ADDRESSES).contains(&answer.addresses.len()));
    assert!(answer.addresses.iter().all(|address| address.port() != 0 && !address.ip().is_unspecified()));
    let format = |payload_type, repeat_type, encoding| SentFormat {
        payload_type,
        repeat_type,
        encoding,
        clock_rate: 90_000,
        channels: None,
        parameters: String::new(),
    };
    let offered = [format(96, Some(97), "H264"), format(98, Some(99), "H264"), format(111, None, "opus")];
    for section in (0..answer.sections.len()).filter_map(|at| answer.section(at)) {
        if let Some(accepted) = SentFormat::accepted(&offered, section) {
            let sent = offered.iter().find(|sent| sent.payload_type == accepted.payload_type).expect("an offered one");
            assert!(accepted.repeat_type.is_none_or(|number| sent.repeat_type == Some(number)));
        }
        for kind in [SectionKind::Video, SectionKind::Audio] {
            let offered = receivable_formats(&kind);
            for format in answered_formats(&offered, section) {
                let sent =
                    offered.iter().find(|sent| sent.payload_type == format.payload_type).expect("an offered one");
                assert!(format.repeat_type.is_none_or(|number| sent.repeat_type == Some(number)));
            }
        }
    }
});
