//! Headers of pictures, and what they state.

use super::*;

/// NAL units with lengths of two bytes.
fn frame(units: &[&[u8]]) -> Vec<u8> {
    units.iter().flat_map(|unit| [&[0, unit.len() as u8][..], unit].concat()).collect()
}

fn avc(units: &[&[u8]]) -> Importance {
    Importance::of_units(NalSyntax::Avc, 2, &frame(units))
}

fn hevc(kind: u8, layer: u8) -> Importance {
    Importance::of_units(NalSyntax::Hevc, 2, &frame(&[&[kind << 1, layer + 1, 0x80]]))
}

#[test]
fn pictures_of_h264_state_whether_others_refer_to_them() {
    assert_eq!(avc(&[&[0x01, 1], &[0x01, 2]]), Importance::DISPOSABLE);
    assert_eq!(avc(&[&[0x06, 5], &[0x01, 1]]), Importance::DISPOSABLE);
    for needed in [&[&[0x41, 1][..]][..], &[&[0x01, 1], &[0x21, 1]], &[&[0x06, 5]], &[]] {
        assert_eq!(avc(needed), Importance::BASE, "{needed:?}");
    }
    assert_eq!(Importance::of_units(NalSyntax::Avc, 2, &[0, 9, 1]), Importance::BASE, "cut off");
    let many = vec![&[0x01, 1][..]; MOST_UNITS + 1];
    assert_eq!(avc(&many[1..]), Importance::DISPOSABLE);
    assert_eq!(avc(&many), Importance::BASE);
}

#[test]
fn prefix_units_of_h264_state_the_temporal_layer() {
    let prefix = [0x6e, 0x80, 0x80, 2 << 5 | 7];
    assert_eq!(avc(&[&prefix, &[0x41, 1]]), Importance::of_layer(2));
    let disposable = Importance { layer: 2, ..Importance::DISPOSABLE };
    assert_eq!(avc(&[&prefix, &[0x01, 1]]), disposable);
    assert_eq!(avc(&[&[0x6e, 0, 0x80, 0x47], &[0x41, 1]]), Importance::BASE, "another extension");
}

#[test]
fn types_of_hevc_pictures_state_layers_and_who_refers() {
    assert_eq!(hevc(1, 0), Importance::BASE);
    assert_eq!(hevc(19, 0), Importance::BASE);
    assert_eq!(hevc(0, 0), Importance { needed_by: 1, ..Importance::BASE });
    assert_eq!(hevc(1, 2), Importance::of_layer(2));
    assert_eq!(hevc(2, 1), Importance { needed_by: 2, resumes: 1, ..Importance::of_layer(1) });
    assert_eq!(hevc(3, 1), Importance { resumes: 1, ..Importance::of_layer(1) });
    assert_eq!(hevc(5, 1), Importance::of_layer(1), "only its own layer could go on");
}

#[test]
fn headers_of_av1_state_the_temporal_layer() {
    // A temporal delimiter, a sequence header of one byte, and a frame with and without an extension.
    let head = [0x12, 0, 0x0a, 1, 7];
    let of = |frame: &[u8]| Importance::of_obus(&[&head, frame].concat());
    assert_eq!(of(&[0x36, 2 << 5, 1, 9]), Importance::of_layer(2));
    assert_eq!(of(&[0x32, 1, 9]), Importance::BASE);
    assert_eq!(of(&[0x36]), Importance::BASE, "cut off");
    assert_eq!(Importance::of_obus(&[0x12, 0xff, 0xff]), Importance::BASE);
}

#[test]
fn headers_of_vp9_state_what_a_frame_changes() {
    // Marker, profile, an inter frame that is shown and not resilient, no reset; then the flags of 8 references.
    let shown = |flags: u8, rest: u8| [0b1000_0110, flags >> 2, flags << 6, 0, 0b0010_0000 | rest, 0];
    assert_eq!(vp9_is_disposable(&shown(1, 0)), Some(false));
    // References of 12 bits, a size of the first one, no other size, precision, a switchable filter, and the context.
    let after = |context: u8| {
        let mut bits = vec![1, 0, 0, 0, 0, 1, 1, 0, 0, 0];
        bits.extend([0; 8 + 12]);
        bits.extend([1, 0, 0, 1, context]);
        let mut bytes = vec![0; bits.len() / 8 + 2];
        for (place, bit) in bits.into_iter().enumerate() {
            bytes[place / 8] |= bit << (7 - place % 8);
        }
        vp9_is_disposable(&bytes)
    };
    assert_eq!([after(0), after(1)], [Some(true), Some(false)]);
    assert_eq!(vp9_is_disposable(&[0b1000_0010, 0]), Some(false), "a key frame");
    assert_eq!(vp9_is_disposable(&[0b1000_1000, 0]), Some(true), "an old frame is shown again");
    assert_eq!(vp9_is_disposable(&[0b1000_0110, 0xc0]), None, "a superframe");
    assert_eq!([vp9_is_disposable(&[]), vp9_is_disposable(&[0])], [None, None]);
}
