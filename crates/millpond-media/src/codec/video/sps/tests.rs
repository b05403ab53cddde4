//! Tests with sets of real encoders.

use super::*;
use crate::fixture::hex;
use proptest::prelude::*;

fn size(syntax: NalSyntax, digits: &str) -> Option<(u16, u16)> {
    picture_size(syntax, &hex(digits))
}

#[test]
fn sizes_of_sets_of_real_encoders() {
    let sets = [
        (NalSyntax::Avc, "6764000cacd941419f9f011000000300100000030320f1429960", (320, 180), "cropped from 192 lines"),
        (NalSyntax::Avc, "6764000dacd941519e226c0440000003004000000c83c50a6580", (322, 182), "cropped both ways"),
        (NalSyntax::Avc, "67f4000d919b282a33c7c5e022000003000200000300641e28532c", (322, 182), "4:4:4"),
        (NalSyntax::Avc, "67640015acd941533c45e022000003000200000300643e28532c", (322, 184), "fields"),
        (NalSyntax::Avc, "6742c00dd901519e226c0440000003004000000c83c50a92", (322, 182), "baseline"),
        (
            NalSyntax::Hevc,
            "420101016000000300900000030000 03003ca00a480b9c9596566924caf016808000000300800000 0c8422",
            (322, 182),
            "cropped from 328x184",
        ),
    ];
    for (syntax, digits, expected, name) in sets {
        assert_eq!(size(syntax, &digits.replace(' ', "")), Some(expected), "{name}");
    }
}

#[test]
fn a_set_that_is_cut_short_has_no_size() {
    let whole = hex("6764000cacd941419f9f0110");
    for len in 0..9 {
        assert_eq!(picture_size(NalSyntax::Avc, &whole[..len]), None, "{len}");
    }
    assert_eq!(size(NalSyntax::Hevc, "4201"), None);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = (picture_size(NalSyntax::Avc, &bytes), picture_size(NalSyntax::Hevc, &bytes));
    }
}

/// Frame rate, reorder depth, pixel aspect and whether colours are stated.
type Stated = (Option<(u32, u32)>, Option<u8>, Option<(u32, u32)>, bool);

#[test]
fn usability_information_of_real_encoders() {
    let sets: [(NalSyntax, &str, Stated, &str); 10] = [
        (
            NalSyntax::Avc,
            "6764000cacd941419f9f011000000300100000030320f1429960",
            (Some((50, 2)), Some(2), Some((1, 1)), false),
            "x264, High",
        ),
        (
            NalSyntax::Avc,
            "6742c00cd901419f9f0e1000000300100000030320f142a480",
            (Some((50, 2)), Some(0), Some((4, 3)), false),
            "x264, Baseline",
        ),
        (
            NalSyntax::Avc,
            "674d4015f40a19f930e6a020202800000300080000030190f8a155",
            (Some((50, 2)), Some(0), Some((4, 3)), true),
            "x264 with colours",
        ),
        (
            NalSyntax::Hevc,
            "42010101600000030090000003000003003ca00a080b9f796566924caf016808000003000800000300c840",
            (Some((25, 1)), Some(2), Some((1, 1)), false),
            "x265, Main",
        ),
        (
            NalSyntax::Hevc,
            "42010122200000030090000003000003007ba00a080b9f6d96566924caf016a122012080000003008000000c84",
            (Some((25, 1)), Some(2), Some((1, 1)), true),
            "x265, HDR10",
        ),
        (NalSyntax::Avc, "674d001e95a8280f64", (None, Some(0), None, false), "a camera: order type 2"),
        (
            NalSyntax::Avc,
            "67f40015919b282a678f9b011000003e90000ea601f1429960",
            (Some((60_000, 2002)), Some(2), Some((1, 1)), false),
            "x264, fields, 4:4:4",
        ),
        (
            NalSyntax::Hevc,
            "4201010408000003009e0800000300003c90014901739ef2c9524995e02dc080800100000303e90000753008",
            (Some((30_000, 1001)), Some(0), Some((1, 1)), true),
            "x265 without B pictures",
        ),
        (
            NalSyntax::Hevc,
            "4201020408000003009e0800000300003c000090014901739ef2cacc566924e5780b70202000400000fa40001d4c02",
            (Some((30_000, 1001)), Some(2), Some((1, 1)), true),
            "x265, two temporal layers",
        ),
        (
            NalSyntax::Hevc,
            "4201010408000003009d0800000300003cb00a480b9c96d96665924caf01680800001f480003a98040",
            (Some((30_000, 1001)), Some(2), Some((1, 1)), false),
            "x265, 4:2:2, 10 bits",
        ),
    ];
    for (syntax, digits, expected, name) in sets {
        let read = PictureSequence::read(syntax, &hex(&digits.replace(' ', ""))).unwrap();
        let found = (read.frame_rate, read.reorder_depth, read.pixel_aspect, read.color.is_some());
        assert_eq!(found, expected, "{name}: {read:?}");
    }
}

#[test]
fn colours_and_pixel_aspect_of_the_set_reach_the_sample_entry() {
    // libx265 with colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc:sar=3.
    let vps = hex("40010c01ffff02200000030090000003000003001e959809");
    let sps = hex("42010102200000030090000003000003001ea0208104d96566924caf036a12201208000003000800000300c840");
    let made = crate::codec::make::hevc(&[&vps], &[&sps], &[&hex("4401c172b42240")]).unwrap();
    let stated = made.sample_entry.clone();
    // As a file has it whose entry states neither.
    let (mut codec, mut kind, mut entry) = (made.codec.clone(), made.kind, stated.clone());
    let Codec::Hevc(config) = &mut codec else { panic!("HEVC") };
    config.color = None;
    let colr = entry.windows(4).position(|four| four == b"colr").unwrap() - 4;
    entry.truncate(colr);
    let len = (entry.len() as u32).to_be_bytes();
    entry[..4].copy_from_slice(&len);
    if let TrackKind::Video { pixel_aspect, .. } = &mut kind {
        *pixel_aspect = (1, 1);
    }
    fill_usability(&mut kind, &mut codec, &mut entry);
    assert_eq!((&codec, kind), (&made.codec, made.kind));
    assert_eq!(entry, stated);
    fill_usability(&mut kind, &mut codec, &mut entry);
    assert_eq!(entry, stated, "what is stated stays");
}
