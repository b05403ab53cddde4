//! Hostile Matroska files, indexed as a whole and outlined.

use crate::measure::{alone, measured, measured_outline};
use millpond_hostile::{
    SparseObject,
    matroska::{VP8_KEY, block, element, endless, id, number, object, stripping, track, track_with},
};

/// Pictures and sound.
fn tracks() -> Vec<u8> {
    element(id::TRACKS, &[track(1, 1), track(2, 2)].concat())
}

/// Clusters of a second each, with a key frame and some sound.
fn clusters(count: u64) -> Vec<u8> {
    let cluster = |second: u64| {
        let parts = [number(id::TIME, second * 1000), block(1, 0, true, &VP8_KEY), block(2, 0, true, &[0; 320])];
        element(id::CLUSTER, &parts.concat())
    };
    (0..count).flat_map(cluster).collect()
}

fn cue(time: u64, place: u64) -> Vec<u8> {
    let position = element(id::CUES[3], &[number(id::CUES[4], 1), number(id::CUES[5], place)].concat());
    element(id::CUES[1], &[number(id::CUES[2], time), position].concat())
}

fn both(name: &str, object: &SparseObject) {
    measured(name, object);
    measured_outline(name, object);
}

#[test]
fn blocks_of_a_byte_each_by_the_million() {
    let _alone = alone();
    let blocks = |track: u8, is_key: bool| -> Vec<u8> {
        (0..500_000_u32).flat_map(|n| block(track, (n & 0x7fff) as i16, is_key, &[7, 7])).collect()
    };
    let first = [number(id::TIME, 0), block(1, 0, true, &VP8_KEY)].concat();
    for (name, of, is_key) in [("one group", 1, false), ("key frames", 1, true), ("sound", 2, true)] {
        let cluster = element(id::CLUSTER, &[first.clone(), blocks(of, is_key)].concat());
        both(name, &object(&[tracks(), cluster], 0));
    }
}

#[test]
fn laced_frames_without_bytes() {
    let _alone = alone();
    // 256 frames of equal size in blocks of six bytes, and of one byte less than there are frames.
    for size in [0, 255] {
        let frames = [&[0x82, 0, 0, 0x84, 255][..], &vec![0; size]].concat();
        let blocks = element(id::BLOCK, &frames).repeat((8 << 20) / (frames.len() + 9));
        let cluster = element(id::CLUSTER, &[number(id::TIME, 0), blocks].concat());
        both("laces", &object(&[tracks(), cluster], 0));
    }
}

#[test]
fn frames_that_lack_their_beginning() {
    let _alone = alone();
    let (prefix, rest) = VP8_KEY.split_at(9);
    let entries = [track_with(1, 1, &stripping(prefix)), track_with(2, 2, &stripping(&[0; 256]))].concat();
    let tracks = element(id::TRACKS, &entries);
    let laces = |size: usize| {
        let frames = [&[0x82, 0, 0, 0x84, 255][..], &vec![0; size]].concat();
        element(id::BLOCK, &frames).repeat((1 << 20) / (frames.len() + 9))
    };
    let pictures = (0..200_000_u32).flat_map(|n| block(1, (n & 0x7fff) as i16, true, rest)).collect();
    for (name, blocks) in [("no bytes", laces(0)), ("a byte", laces(256)), ("pictures", pictures)] {
        let cluster = element(id::CLUSTER, &[number(id::TIME, 0), block(1, 0, true, rest), blocks].concat());
        both(name, &object(&[tracks.clone(), cluster], 0));
    }
}

#[test]
fn sizes_that_are_unknown_or_too_large() {
    let _alone = alone();
    let nested = endless(id::SEGMENT).repeat(100_000);
    both("segments in segments", &object(&[tracks(), clusters(3), nested], 0));
    let groups = endless(id::GROUP).repeat(100_000);
    both("groups", &object(&[tracks(), element(id::CLUSTER, &[number(id::TIME, 0), groups].concat())], 0));
    let beyond = [endless(id::CLUSTER), number(id::TIME, 0), identifier_of_a_terabyte()].concat();
    both("a block of a terabyte", &object(&[tracks(), clusters(2), beyond], 1 << 40));
}

/// The header of a `SimpleBlock` of 2^41 bytes.
fn identifier_of_a_terabyte() -> Vec<u8> {
    [vec![0xa3], (1_u64 << 41 | 1 << 56).to_be_bytes().to_vec()].concat()
}

#[test]
fn a_terabyte_of_zeros_behind_a_cluster() {
    let _alone = alone();
    both(
        "zeros",
        &object(&[tracks(), endless(id::CLUSTER), number(id::TIME, 0), block(1, 0, true, &VP8_KEY)], 1 << 40),
    );
}

#[test]
fn damaged_places_by_the_thousand() {
    let _alone = alone();
    let damaged = [element(id::CLUSTER, &[0, 0]), clusters(1)].concat().repeat(5000);
    both("damages", &object(&[tracks(), damaged], 0));
}

#[test]
fn heads_of_many_elements() {
    let _alone = alone();
    let many: Vec<u8> = (1..10_000).flat_map(|number| track(number, 1)).collect();
    both("tracks", &object(&[element(id::TRACKS, &many), clusters(3)], 0));
    both("void", &object(&[element(0xec, &[]).repeat(100_000), tracks(), clusters(3)], 0));
    let private = element(0x63a2, &vec![1; 12 << 20]);
    let entry = element(0xae, &[number(0xd7, 1), number(0x83, 1), element(0x86, b"V_MPEG4/ISO/AVC"), private].concat());
    both("private data", &object(&[element(id::TRACKS, &entry), clusters(3)], 0));
}

#[test]
fn seek_heads_that_lead_to_themselves() {
    let _alone = alone();
    let [head, seek, of, place] = id::SEEK;
    let entry = |to: u64| element(seek, &[element(of, &head.to_be_bytes()), number(place, to)].concat());
    let heads: Vec<u8> =
        (0..64).flat_map(|n| element(head, &[entry(n * 40), entry(0), entry(u64::MAX)].concat())).collect();
    both("seek heads", &object(&[heads, clusters(3)], 0));
}

#[test]
fn times_at_the_ends_of_their_range() {
    let _alone = alone();
    for scale in [1, 1_000_000, 1_000_000_000] {
        for time in [0, 1 << 40, u64::MAX >> 1, u64::MAX] {
            let blocks: Vec<u8> = [i16::MIN, i16::MAX, 0, -1, 1, 5]
                .into_iter()
                .flat_map(|at| [block(1, at, at >= 0, &VP8_KEY), block(2, at, true, &[0; 32])].concat())
                .collect();
            let cluster = element(id::CLUSTER, &[number(id::TIME, time), blocks].concat());
            let info = element(id::INFO, &number(id::SCALE, scale));
            both("times", &object(&[info, tracks(), clusters(2), cluster, clusters(2)], 0));
        }
    }
}

#[test]
fn cues_by_the_million_and_to_nowhere() {
    let _alone = alone();
    let front = [tracks(), clusters(100)].concat();
    for (name, places) in [
        ("one cluster", (0..200_000).map(|n| (n, 100)).collect::<Vec<_>>()),
        ("backwards", (0..200_000).map(|n| (n, 1 << 40 >> (n % 40))).collect()),
        ("behind the end", (0..200_000).map(|n| (n, u64::MAX - n)).collect()),
        ("each byte", (0..30_000).map(|n| (n, n)).collect()),
    ] {
        let cues: Vec<u8> = places.into_iter().flat_map(|(time, place)| cue(time, place)).collect();
        both(name, &object(&[front.clone(), element(id::CUES[0], &cues)], 0));
    }
}
