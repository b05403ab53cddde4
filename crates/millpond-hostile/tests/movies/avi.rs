//! Hostile AVI files, with indexes and without.

use crate::measure::{alone, heap_of, measured};
use millpond_hostile::{
    avi::{chunk, claimed, entry, header, list, object, picture_format, pictures, sound, standard_index, super_index},
    matroska::VP8_KEY,
};
use millpond_media::{IndexLimits, Indexer, Step};

/// The header of a file with VP8 and PCM, whose index lists all samples.
fn streams() -> Vec<u8> {
    header(&[pictures(b"VP80", (1, 25), &[]), sound(1, &[])])
}

/// The header of a file with H.264 and MP3, whose chunks are all read.
fn scanned() -> Vec<u8> {
    header(&[pictures(b"H264", (1, 25), &[]), sound(0x55, &[])])
}

/// Pairs of chunks: a key frame and 320 bytes of sound.
fn seconds(count: usize) -> Vec<u8> {
    [chunk(b"00dc", &VP8_KEY), chunk(b"01wb", &[0; 320])].concat().repeat(count)
}

#[test]
fn sizes_that_are_too_large() {
    let _alone = alone();
    for head in [streams(), scanned()] {
        let movi = [claimed(b"LIST", u32::MAX), b"movi".to_vec(), seconds(3), claimed(b"00dc", u32::MAX)].concat();
        measured("a chunk of 4 GiB", &object(&[head.clone(), movi.clone()], 0));
        measured("chunks of 4 GiB", &object(&[head.clone(), claimed(b"00dc", u32::MAX).repeat(200_000), movi], 0));
        measured("a header of 4 GiB", &object(&[claimed(b"LIST", u32::MAX), b"hdrl".to_vec(), head], 1 << 33));
    }
}

#[test]
fn chunks_without_bytes_by_the_thousand() {
    let _alone = alone();
    for head in [streams(), scanned(), header(&[sound(0xff, &[])])] {
        for kind in [b"00dc", b"00wb", b"01wb", b"JUNK"] {
            let empty = claimed(kind, 0).repeat(200_000);
            measured("empty chunks", &object(&[head.clone(), list(b"movi", &[seconds(2), empty].concat())], 0));
        }
    }
}

#[test]
fn lists_in_lists() {
    let _alone = alone();
    for kind in [b"rec ", b"movi", b"hdrl", b"strl"] {
        let nested = [claimed(b"LIST", 1 << 20), kind.to_vec()].concat().repeat(50_000);
        measured("in media", &object(&[streams(), list(b"movi", &[nested.clone(), seconds(2)].concat())], 0));
        measured("in the header", &object(&[header(std::slice::from_ref(&nested)), list(b"movi", &seconds(2))], 0));
        measured("before the header", &object(&[nested, streams(), list(b"movi", &seconds(2))], 0));
    }
}

#[test]
fn an_index_of_more_entries_than_bytes() {
    let _alone = alone();
    let index = [claimed(b"idx1", u32::MAX - 15), entry(b"00dc", 4, VP8_KEY.len() as u32)].concat();
    measured("2^28 entries", &object(&[streams(), list(b"movi", &seconds(3)), index.clone()], 0));
    measured("2^28 entries of zeros", &object(&[streams(), list(b"movi", &seconds(3)), index], 1 << 32));
}

#[test]
fn entries_that_name_a_chunk_again_and_again() {
    let _alone = alone();
    for size in [0, 1, 320, u32::MAX] {
        let entries = [entry(b"00dc", 4, VP8_KEY.len() as u32), entry(b"01wb", 22, size)].concat().repeat(100_000);
        let parts = [streams(), list(b"movi", &seconds(3)), chunk(b"idx1", &entries)];
        measured("one chunk", &object(&parts, 0));
        measured("one chunk in a terabyte", &object(&parts, 1 << 40));
    }
}

#[test]
fn offsets_beyond_the_file() {
    let _alone = alone();
    for offset in [0, 3, 1 << 20, u32::MAX] {
        let entries: Vec<u8> = (0..50_000).flat_map(|n| entry(b"00dc", offset.saturating_sub(n), 10)).collect();
        measured("offsets", &object(&[streams(), list(b"movi", &seconds(3)), chunk(b"idx1", &entries)], 0));
    }
}

#[test]
fn indexes_of_indexes_that_lead_to_themselves() {
    let _alone = alone();
    let head = |places: &[(u64, u32)]| header(&[pictures(b"VP80", (1, 25), &super_index(places))]);
    for places in [
        vec![(12, 1 << 20); 1000],
        (0..20_000).map(|n| (12 + n, 1000)).collect(),
        (0..20_000).map(|n| (u64::MAX - n, u32::MAX)).collect(),
        vec![(24, 100)],
    ] {
        measured("super index", &object(&[head(&places), list(b"movi", &seconds(3))], 0));
    }
    let inner = super_index(&[(12, 100); 100]);
    let place = 12 + head(&[(0, 0)]).len() as u64 + 12;
    for index in [inner, standard_index(place, &[(0, u32::MAX >> 1); 1000]), standard_index(u64::MAX, &[(8, 8); 9])] {
        let size = index.len() as u32;
        measured("index", &object(&[head(&[(place, size)]), list(b"movi", &[index, seconds(3)].concat())], 0));
    }
}

#[test]
fn rates_at_the_ends_of_their_range() {
    let _alone = alone();
    for rate in [(0, 0), (0, 25), (1, 0), (1, u32::MAX), (u32::MAX, 1), (u32::MAX, u32::MAX - 1)] {
        for code in [b"VP80", b"H264"] {
            let head = header(&[pictures(code, rate, &[]), sound(1, &[])]);
            let frames = [seconds(2), claimed(b"00dc", 0).repeat(50_000), seconds(2)].concat();
            measured("rates", &object(&[head, list(b"movi", &frames)], 0));
        }
    }
}

#[test]
fn a_gibibyte_of_zeros_behind_the_media() {
    let _alone = alone();
    measured("with chunks that are samples", &object(&[streams(), list(b"movi", &seconds(3))], 1 << 30));
    let head = header(&[pictures(b"VP80", (1, 25), &[]), sound(1, &[])]);
    let movi = [claimed(b"LIST", u32::MAX), b"movi".to_vec(), claimed(b"01wb", u32::MAX - 100)].concat();
    measured("a chunk of PCM", &object(&[head, movi], 1 << 30));
}

#[test]
fn parameter_sets_and_pictures_of_a_few_bytes() {
    let _alone = alone();
    // Two sequences in turn, each with a picture: configurations change with each chunk.
    let picture = |level: u8| {
        let sps = [0_u8, 0, 1, 0x67, 0x42, 0xc0, level, 0xd9, 0x03, 0xc5, 0x68, 0x40];
        [&sps[..], &[0, 0, 1, 0x68, 0xcb, 0x8c, 0xb2, 0, 0, 1, 0x65, 0x88, 0x84]].concat()
    };
    let changing = [chunk(b"00dc", &picture(30)), chunk(b"00dc", &picture(31))].concat().repeat(5000);
    measured("configurations", &object(&[scanned(), list(b"movi", &changing)], 0));
    let small = [0_u8, 0, 1, 0x41, 0x9a].repeat(200_000);
    let movi = list(b"movi", &[chunk(b"00dc", &picture(30)), chunk(b"00dc", &small)].concat());
    measured("slices", &object(&[scanned(), movi], 0));
    let frame = [&[0xff_u8, 0xfb, 0x10, 0xc4][..], &[0; 100]].concat();
    measured("sound", &object(&[scanned(), list(b"movi", &chunk(b"01wb", &frame).repeat(20_000))], 0));
}

#[test]
fn configurations_of_start_codes() {
    let _alone = alone();
    for (streams, codes) in [(1, 2 << 20), (1, 250 << 10), (60, 4000), (90, 500)] {
        for unit in [[0, 0, 1, 0x67], [0, 0, 1, 0x68]] {
            let stream = pictures(b"H264", (1, 25), &picture_format(b"H264", &unit.repeat(codes)));
            let parts = [header(&vec![stream; streams]), list(b"movi", &seconds(3))];
            measured("start codes", &object(&parts, 0));
        }
    }
    // Sets with the most bytes.
    let set = |kind: u8| [&0xffff_u16.to_be_bytes()[..], &[kind], &[0x42; 0xfffe]].concat();
    let record = [&[1, 0x42, 0xc0, 0x1e, 0xff, 0xe8][..], &set(0x67).repeat(8), &[6], &set(0x68).repeat(6)].concat();
    let stream = pictures(b"H264", (1, 25), &picture_format(b"H264", &record));
    measured("sets", &object(&[header(&[stream]), list(b"movi", &seconds(3))], 0));
}

#[test]
fn memory_of_the_last_step_is_charged() {
    let _alone = alone();
    // Pictures of one group, whose times are given at the end. The index tells that one is missing.
    let first = b"\0\0\x01\x67\x42\xc0\x1e\xd9\x03\xc5\x68\x40\0\0\x01\x68\xcb\x8c\xb2\0\0\x01\x65\x88\x84";
    let (mut media, mut index) = (Vec::new(), Vec::new());
    for number in 0..260_000 {
        let other = [&[0, 0, 1, 0x41, 0x9a][..], &vec![0x55; number % 60]].concat();
        let part = chunk(b"00dc", if number == 0 { &first[..] } else { &other });
        index.extend(entry(b"00dc", media.len() as u32 + 4, u32::from_le_bytes([part[4], part[5], 0, 0])));
        media.extend(if number == 10 { vec![0xff; part.len()] } else { part });
    }
    let object = object(&[scanned(), list(b"movi", &media), chunk(b"idx1", &index)], 0);
    let limits = IndexLimits { batch: 256 << 10, ..IndexLimits::default() };
    let (((), before, _), mut charged) = (heap_of(|| ()), 0);
    let mut indexer = Indexer::with_limits(object.len, limits);
    let movie = loop {
        let (step, _, most) = heap_of(|| indexer.poll().unwrap());
        match step {
            Step::Done(movie) => {
                let taken = most - before;
                assert!(taken <= charged + (1 << 20), "{taken} bytes of heap, {charged} are charged");
                break movie;
            }
            Step::Need(ranges) => {
                // Bytes that are read are charged twice.
                charged = indexer.scanned_bytes() + 2 * ranges.iter().map(|range| range.len() as usize).sum::<usize>();
                ranges.into_iter().for_each(|range| indexer.supply(range, object.read(range)));
            }
        }
    };
    let samples = &movie.tracks[0].samples;
    assert_eq!(samples.len(), 259_999);
    assert_eq!(samples.iter().nth(10).unwrap().dts, 11, "time passes for the missing picture");
}
