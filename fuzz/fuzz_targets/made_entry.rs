//! Sample entries made from what streams state: parameter sets, configurations and frames.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_media::{
    MediaError, NalSyntax, ParameterSets,
    make::{self, Made},
};
use std::time::Duration;

/// Pieces of the input, each after its length of 16 bits.
fn pieces(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while let [high, low, rest @ ..] = bytes {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        all.push(&rest[..length]);
        bytes = &rest[length..];
    }
    all
}

fn check(made: Result<Made, MediaError>) {
    if let Ok(made) = made {
        assert!(made.sample_entry.len() <= make::MOST_CONFIGURATION + 4096);
        assert!(!made.codec.parameter().is_empty());
    }
}

fuzz_target!(|bytes: &[u8]| {
    let pieces = pieces(bytes);
    for maker in [make::aac, make::ac3, make::eac3, make::mpeg_audio, make::av1, make::vp8, make::vp9] {
        check(maker(bytes));
    }
    if let [first, second, third, ..] = pieces[..] {
        check(make::avc(&[first], &[second]));
        check(make::hevc(&[first], &[second], &[third]));
    }
    for syntax in [NalSyntax::Avc, NalSyntax::Hevc] {
        let mut sets = ParameterSets::new(syntax, 4);
        let _ = sets.describe(&pieces);
        for (place, frame) in pieces.iter().enumerate() {
            let _ = (syntax.is_recovery_point(frame), syntax.has_captions(frame));
            let frame = bytes::Bytes::copy_from_slice(frame);
            let sifted = sets.frame(&frame, place % 2 == 0, Duration::from_secs(place as u64));
            assert!(sifted.bytes.len() <= frame.len() + 2 * make::MOST_CONFIGURATION);
        }
    }
});
