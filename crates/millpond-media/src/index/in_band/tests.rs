use super::*;
use crate::{codec::make, fixture::hex, movie::sample_table::SampleTable};

const VPS: &str = "40010c01ffff01600000030090000003000003001e9598090000";
const SPS: &str = "42010101600000030090000003000003001ea00a080b9f79652ae49a808080410000030001000003001908";
const PPS: &str = "4401c172b46240";

/// A track of three key frames in file order, each of these NAL units, and the file.
fn track(codec: Codec, sample_entry: Vec<u8>, units: &[Vec<u8>]) -> (Track, Vec<u8>) {
    let sample: Vec<u8> =
        units.iter().flat_map(|unit| [&(unit.len() as u32).to_be_bytes()[..], unit].concat()).collect();
    let mut table = SampleTable::builder();
    for place in 0..3 {
        table.push(place * sample.len() as u64, sample.len() as u32, 512, 0, true);
    }
    let mut track = crate::fixture::track(1, crate::fixture::AVC, Vec::new(), table.finish());
    (track.codec, track.sample_entry) = (codec, sample_entry);
    (track, sample.repeat(3))
}

fn learned((mut track, file): (Track, Vec<u8>)) -> Track {
    let mut arrived = Arrived::default();
    for range in wanted(&track) {
        arrived.put(range, file[range.start as usize..range.end as usize].to_vec().into());
    }
    learn(&mut track, &arrived);
    track
}

fn hevc(units: &[Vec<u8>]) -> Track {
    let made = make::hevc_in_band(&[&hex(VPS)], &[&hex(SPS)], &[&hex(PPS)]).unwrap();
    let mut entry = made.sample_entry;
    // As ffmpeg writes it: more sets may follow.
    let place = entry.windows(4).position(|four| four == b"hvcC").unwrap() + 27;
    assert_eq!(entry[place..place + 2], [0x20 | entry[place] & 0x80, 0]);
    entry[place] &= 0x7f;
    learned(track(made.codec, entry, units))
}

#[test]
fn without_sets_in_samples_hev1_is_hvc1() {
    let slice = vec![0x26, 1, 0xaf];
    for units in [vec![slice.clone()], vec![hex(VPS), hex(SPS), hex(PPS), slice.clone()]] {
        let track = hevc(&units);
        assert!(track.codec.parameter().starts_with("hvc1."), "{}", track.codec.parameter());
        assert_eq!(track.sample_entry[4..8], *b"hvc1");
        let place = track.sample_entry.windows(4).position(|four| four == b"hvcC").unwrap() + 27;
        assert_eq!(track.sample_entry[place], 0xa0, "the array of VPS is complete");
    }
}

#[test]
fn with_other_sets_in_samples_hev1_stays() {
    let mut other = hex(PPS);
    other[3] ^= 1;
    let track = hevc(&[other, vec![0x26, 1, 0xaf]]);
    assert!(track.codec.parameter().starts_with("hev1."));
    assert_eq!(track.sample_entry[4..8], *b"hev1");
}

#[test]
fn without_other_sets_in_samples_avc3_is_avc1() {
    let (sps, pps) = (hex("6764000cacd941419f9f011000000300100000030320f1429960"), hex("68ebe3cb22c0"));
    // `nal_ref_idc` differs.
    let mut low = sps.clone();
    low[0] = 0x27;
    for (units, expected) in
        [(vec![low, pps.clone(), vec![0x65, 0x88]], "avc1."), (vec![hex("68ebe3cb22c4"), vec![0x65, 0x88]], "avc3.")]
    {
        let made = make::avc_in_band(&[&sps], &[&pps]).unwrap();
        let track = learned(track(made.codec, made.sample_entry, &units));
        assert!(track.codec.parameter().starts_with(expected), "{}", track.codec.parameter());
        assert_eq!(track.sample_entry[4..8], expected.as_bytes()[..4]);
    }
}
