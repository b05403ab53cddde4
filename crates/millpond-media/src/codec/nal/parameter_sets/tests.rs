//! Tests with sets of real encoders.

use super::*;
use crate::{codec::Codec, fixture::hex};
use proptest::prelude::*;

const SPS: &str = "6764000cacd941419f9f011000000300100000030320f14299";
/// 322x182.
const OTHER_SPS: &str = "6764000dacd941519e226c0440000003004000000c83c50a65";
const PPS: &str = "68ebe3cb22c0";
const OTHER_PPS: &str = "68ef8fcb";
const DELIMITER: &str = "09f0";
const IDR: &str = "6588840021";
const SLICE: &str = "419a0102";

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// NAL units, each after its length.
fn frame(units: &[&str]) -> Bytes {
    let mut bytes = Vec::new();
    for unit in units.iter().map(|unit| hex(unit)) {
        bytes.extend((unit.len() as u32).to_be_bytes());
        bytes.extend(unit);
    }
    bytes.into()
}

fn known() -> ParameterSets {
    let mut sets = ParameterSets::new(NalSyntax::Avc, 4);
    sets.describe(&[hex(SPS), hex(PPS)]).unwrap();
    sets
}

fn configured(made: &Made) -> ([u8; 4], Vec<Vec<u8>>, Vec<Vec<u8>>) {
    match &made.codec {
        Codec::Avc(config) => (config.fourcc, config.sps.clone(), config.pps.clone()),
        codec => panic!("{codec:?}"),
    }
}

#[test]
fn what_the_sample_entry_has_is_removed() {
    let mut sets = known();
    let whole = frame(&[DELIMITER, SPS, PPS, IDR]);
    let sifted = sets.frame(&whole, true, seconds(0));
    assert_eq!((sifted.bytes.as_ref(), sifted.made), (&*frame(&[IDR]), None));
    assert!(whole.as_ptr_range().contains(&sifted.bytes.as_ptr()), "not copied");
    // Other importance (`nal_ref_idc`), and zeros of a byte stream after the set.
    let sifted = sets.frame(&frame(&[&SPS.replacen("67", "27", 1), &format!("{PPS}0000"), SLICE]), false, seconds(1));
    assert_eq!((sifted.bytes.as_ref(), sifted.made), (&*frame(&[SLICE]), None));
    // Messages stay, in their place.
    let message = "060501aa80";
    let sifted = sets.frame(&frame(&[message, SPS, PPS, IDR, SLICE]), true, seconds(2));
    assert_eq!(sifted.bytes, frame(&[message, IDR, SLICE]));
    assert_eq!(sets.frame(&frame(&[SLICE]), false, seconds(3)).bytes, frame(&[SLICE]));
    assert!(sets.frame(&frame(&[SPS, PPS]), false, seconds(4)).bytes.is_empty(), "a unit of sets alone");
    let alone = sets.frame(&frame(&[DELIMITER, message]), false, seconds(5));
    assert!(alone.bytes.is_empty(), "no decoder takes a unit without a picture");
}

#[test]
fn sets_only_in_band_are_known_at_the_first_key_frame() {
    let mut sets = ParameterSets::new(NalSyntax::Avc, 4);
    assert!(sets.describe(&[hex(SPS)]).is_err(), "no picture parameter set");
    assert_eq!(sets.frame(&frame(&[SLICE]), false, seconds(0)).made, None);
    let early = sets.frame(&frame(&[SPS, PPS]), false, seconds(0));
    assert_eq!(early.made, None, "not yet");
    let sifted = sets.frame(&frame(&[IDR]), true, seconds(0));
    assert_eq!(configured(&sifted.made.unwrap()), (*b"avc1", vec![hex(SPS)], vec![hex(PPS)]));
}

#[test]
fn a_change_is_valid_from_the_next_key_frame_on() {
    let mut sets = known();
    // Sent before the key frame, as a unit of its own.
    let sifted = sets.frame(&frame(&[OTHER_SPS, OTHER_PPS]), false, seconds(1));
    assert_eq!(sifted.made, None);
    let sifted = sets.frame(&frame(&[IDR]), true, seconds(1));
    let made = sifted.made.unwrap();
    assert_eq!(configured(&made), (*b"avc1", vec![hex(OTHER_SPS)], vec![hex(OTHER_PPS)]));
    assert!(matches!(made.kind, crate::TrackKind::Video { width: 322, height: 182, .. }));
    // In the key frame itself; the set of pictures stays.
    let sifted = sets.frame(&frame(&[SPS, IDR]), true, seconds(90));
    assert_eq!(configured(&sifted.made.unwrap()), (*b"avc1", vec![hex(SPS)], vec![hex(OTHER_PPS)]));
    assert_eq!(sifted.bytes, frame(&[IDR]));
    assert_eq!(sets.frame(&frame(&[SPS, OTHER_PPS, IDR]), true, seconds(91)).made, None, "no further change");
}

#[test]
fn three_changes_within_a_minute_leave_sets_in_frames() {
    let mut sets = known();
    let key = |sps| frame(&[DELIMITER, sps, PPS, IDR]);
    let kind = |sifted: &Sifted| sifted.made.as_ref().map(|made| configured(made).0);
    assert_eq!(kind(&sets.frame(&key(OTHER_SPS), true, seconds(1))), Some(*b"avc1"));
    assert_eq!(kind(&sets.frame(&key(SPS), true, seconds(2))), Some(*b"avc1"));
    assert_eq!(kind(&sets.frame(&key(OTHER_SPS), true, seconds(70))), Some(*b"avc1"), "the first is long ago");
    assert_eq!(kind(&sets.frame(&key(SPS), true, seconds(71))), Some(*b"avc1"));
    let third = sets.frame(&key(OTHER_SPS), true, seconds(72));
    assert_eq!(kind(&third), Some(*b"avc3"));
    assert_eq!(third.bytes, frame(&[OTHER_SPS, PPS, IDR]), "without the delimiter");
    let next = sets.frame(&key(SPS), true, seconds(73));
    assert_eq!((kind(&next), next.bytes), (None, frame(&[SPS, PPS, IDR])));
    // Decoding can begin with each key frame.
    let bare = sets.frame(&frame(&[IDR]), true, seconds(74));
    assert_eq!(bare.bytes, frame(&[SPS, PPS, IDR]));
}

#[test]
fn key_frames_of_a_stream_with_sets_in_band_tell_a_change() {
    let mut sets = ParameterSets::in_band(NalSyntax::Avc, 4, &frame(&[SPS, PPS]));
    assert_eq!(sets.key_frame(&frame(&[DELIMITER, SPS, PPS, IDR])), None, "those of the sample entry");
    assert_eq!(sets.key_frame(&frame(&[IDR])), None);
    for (sps, width) in [(OTHER_SPS, 322), (SPS, 320), (OTHER_SPS, 322), (SPS, 320)] {
        let made = sets.key_frame(&frame(&[sps, PPS, IDR])).unwrap();
        assert_eq!(configured(&made), (*b"avc3", vec![hex(sps)], vec![hex(PPS)]));
        let crate::TrackKind::Video { width: found, .. } = made.kind else { panic!("{:?}", made.kind) };
        assert_eq!(found, width, "each change is told");
    }
    assert_eq!(sets.key_frame(&frame(&[IDR]).slice(..6)), None, "a frame that violates its format");
}

#[test]
fn hevc_needs_all_three_kinds() {
    let vps = "40010c01ffff01600000030090000003000003003c959809";
    let sps = "42010101600000030090000003000003003ca00a080b9f796566924caf016808000003000800000300c840";
    let (pps, idr) = ("4401c172b46240", "26010203");
    let mut sets = ParameterSets::new(NalSyntax::Hevc, 4);
    assert_eq!(sets.frame(&frame(&[sps, pps, idr]), true, seconds(0)).made, None);
    let sifted = sets.frame(&frame(&["460150", vps, sps, pps, idr]), true, seconds(1));
    assert_eq!(sifted.bytes, frame(&[idr]));
    let made = sifted.made.unwrap();
    assert_eq!(made.codec.parameter(), "hvc1.1.6.L60.90");
    // A set of another layer is no set of the base layer.
    let layered = frame(&["42090203", idr]);
    assert_eq!(sets.frame(&layered, true, seconds(2)), Sifted { bytes: layered, made: None });
}

#[test]
fn unreadable_sets_and_frames_change_nothing() {
    let mut sets = known();
    let broken = frame(&["6764", "68", IDR]);
    assert_eq!(sets.frame(&broken, true, seconds(0)), Sifted { bytes: broken, made: None });
    let cut = frame(&[IDR]).slice(..6);
    assert_eq!(sets.frame(&cut, true, seconds(0)), Sifted { bytes: cut, made: None });
    let huge = format!("68ef{}80", "55".repeat(65_536));
    let large = frame(&[&huge, IDR]);
    assert_eq!(sets.frame(&large, true, seconds(0)), Sifted { bytes: large, made: None });
    assert_eq!(sets.frame(&frame(&[SPS, PPS, IDR]), true, seconds(1)).bytes, frame(&[IDR]));
}

proptest! {
    #[test]
    fn no_frames_make_it_panic(
        frames in prop::collection::vec((prop::collection::vec((0..8_u8, prop::collection::vec(any::<u8>(), 0..20)), 0..6), any::<bool>()), 0..12),
        length_size in 0..6_u8,
        is_avc: bool,
    ) {
        let syntax = if is_avc { NalSyntax::Avc } else { NalSyntax::Hevc };
        let mut sets = ParameterSets::new(syntax, length_size);
        for (place, (units, is_key)) in frames.iter().enumerate() {
            let mut bytes = Vec::new();
            for (kind, body) in units {
                let unit = match kind {
                    0 => hex(SPS),
                    1 => hex(PPS),
                    2 => [&[0x67, 0x64, 0, 12], &body[..]].concat(),
                    3 => [&[0x68], &body[..]].concat(),
                    4 => [&[0x42, 1], &body[..]].concat(),
                    _ => body.clone(),
                };
                bytes.extend(&(unit.len() as u32).to_be_bytes()[4 - usize::from(length_size.clamp(1, 4))..]);
                bytes.extend(unit);
            }
            let bytes = Bytes::from(bytes);
            let sifted = sets.frame(&bytes, *is_key, seconds(place as u64));
            prop_assert!(sifted.bytes.len() <= bytes.len() + MOST_CONFIGURATION * 2);
        }
    }
}
