//! Pictures of each codec: how far others depend on them, in bounded work. The first byte chooses the codec.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_media::{
    Codec, Importance, NalSyntax,
    codec::{Av1Config, Color, Vp9Config},
};

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, frame)) = bytes.split_first() else { return };
    let importance = match kind % 8 {
        0 => Importance::of_units(NalSyntax::Avc, 4, frame),
        1 => Importance::of_units(NalSyntax::Avc, 1, frame),
        2 => Importance::of_units(NalSyntax::Hevc, 4, frame),
        3 => Importance::of_units(NalSyntax::Hevc, 2, frame),
        4 => Importance::of(&av1(), frame),
        5 => Importance::of(&vpx(*b"vp09"), frame),
        _ => Importance::of(&vpx(*b"vp08"), frame),
    };
    assert!(importance.is_picture && importance.layer < 8);
});

fn av1() -> Codec {
    let chroma = (true, true, 0);
    Codec::Av1(Av1Config {
        profile: 0,
        level: 8,
        high_tier: false,
        bit_depth: 8,
        monochrome: false,
        chroma,
        color: None,
        dolby_vision: None,
    })
}

fn vpx(fourcc: [u8; 4]) -> Codec {
    let color = Color { primaries: 1, transfer: 1, matrix: 1, full_range: false };
    Codec::Vp9(Vp9Config { fourcc, profile: 0, level: 31, bit_depth: 8, chroma: 1, color })
}
