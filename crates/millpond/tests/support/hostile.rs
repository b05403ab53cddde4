//! Files that claim far more than they hold.

use std::{
    fs::File,
    io::{Seek as _, SeekFrom, Write as _},
    path::Path,
};

/// A file of this project, whose sample description the hostile ones have too.
const HONEST: &[u8] = include_bytes!("../../../../assets/sample/180p.mp4");

/// Names of the files that [`make`] makes.
pub const NAMES: [&str; 13] = [
    "edits.mp4",
    "constant_sizes.mp4",
    "tracks.mp4",
    "empty_samples.mp4",
    "zero_durations.mp4",
    "alternating_durations.mp4",
    "nested_sidx.mp4",
    // These claim as much as is let through, or little more.
    "most_samples.mp4",
    "most_short_samples.mp4",
    "most_segments.mp4",
    "most_edits.mp4",
    "most_tracks.mp4",
    "many_fragments.mp4",
];

/// Makes all of them in a folder.
pub fn make(folder: &Path) {
    const MILLIONS: u32 = 1 << 24;
    let put = |name: &str, parts: &[Vec<u8>], len: u64| {
        let mut file = File::create(folder.join(name)).unwrap();
        parts.iter().for_each(|part| file.write_all(part).unwrap());
        // What is left is a hole: it takes no room on the disk.
        let end = file.seek(SeekFrom::End(0)).unwrap();
        file.set_len(end + len).unwrap();
    };
    let progressive = |name, traks: &[Vec<u8>], len| {
        put(name, &[ftyp(), bx(b"moov", &[&mvhd(), &traks.concat()]), words(&[1]), b"mdat".to_vec(), long(len)], len);
    };
    // 10,000 edits over 1,000 samples.
    let edits: Vec<u8> = (0..10_000_u32).flat_map(|n| words(&[0, 40_000, 0, n % 7 * 40, 0x1_0000])).collect();
    let edts = bx(b"edts", &[&bx(b"elst", &[&words(&[0x0100_0000, 10_000]), &edits])]);
    progressive("edits.mp4", &[trak(1, &edts, &tables(1000, 40))], 1 << 20);
    progressive("constant_sizes.mp4", &[trak(1, &[], &tables(MILLIONS, 40))], u64::from(MILLIONS));
    let traks: Vec<Vec<u8>> = (1..=10_000).map(|id| trak(id, &[], &tables(1000, 40))).collect();
    progressive("tracks.mp4", &traks, 1 << 20);
    progressive("zero_durations.mp4", &[trak(1, &[], &tables(MILLIONS, 0))], u64::from(MILLIONS));
    let mut alternating = tables(100_000, 40);
    let stts: Vec<u8> = (0..100_000_u32).flat_map(|n| words(&[1, n % 2 * 0x7fff_ffff])).collect();
    alternating[0] = bx(b"stts", &[&words(&[0, 100_000]), &stts]);
    progressive("alternating_durations.mp4", &[trak(1, &[], &alternating)], 1 << 20);

    for (name, delta) in [("most_samples.mp4", 40), ("most_short_samples.mp4", 0), ("most_segments.mp4", 5000)] {
        progressive(name, &[trak(1, &[], &tables(2_000_000, delta))], 2_000_000);
    }
    for (name, repeated) in [("most_edits.mp4", 1000), ("most_tracks.mp4", 4)] {
        let edits: Vec<u8> = (0..repeated).flat_map(|_| words(&[0, 40_000, 0, 0, 0x1_0000])).collect();
        let edts = bx(b"edts", &[&bx(b"elst", &[&words(&[0x0100_0000, repeated]), &edits])]);
        let count = if name == "most_edits.mp4" { 1 } else { 250 };
        let traks: Vec<Vec<u8>> = (1..=count).map(|id| trak(id, &edts, &tables(1000, 40))).collect();
        progressive(name, &traks, 1 << 20);
    }

    // Fragments whose runs claim samples of no bytes.
    let run = bx(b"trun", &[&words(&[0, MILLIONS])]);
    let tfhd = bx(b"tfhd", &[&words(&[0x2_0000, 1])]);
    let tfdt = bx(b"tfdt", &[&words(&[0, 0])]);
    let moof = bx(b"moof", &[&bx(b"mfhd", &[&words(&[0, 1])]), &bx(b"traf", &[&tfhd, &tfdt, &run])]);
    let fragment = [moof, bx(b"mdat", &[&[0; 8]])].concat();
    put("empty_samples.mp4", &[ftyp(), fragmented_moov(), fragment.repeat(100)], 0);

    // One sample of a second in each fragment.
    let fragment = |number: u32| {
        let run = bx(b"trun", &[&words(&[0x301, 1, 0, 1000, 1])]);
        let tfhd = bx(b"tfhd", &[&words(&[0x2_0000, 1])]);
        let tfdt = bx(b"tfdt", &[&words(&[0, number * 1000])]);
        let traf = bx(b"traf", &[&tfhd, &tfdt, &run]);
        [bx(b"moof", &[&bx(b"mfhd", &[&words(&[0, number])]), &traf]), bx(b"mdat", &[&[0]])].concat()
    };
    put("many_fragments.mp4", &[vec![ftyp(), fragmented_moov()], (0..20_000).map(fragment).collect()].concat(), 0);

    // Each index of segments refers to the next one.
    let sidx = bx(b"sidx", &[&words(&[0, 1, 1000, 0, 0, 2, 0x8000_0000 | 56, 40, 0, 0x8000_0000 | 56, 40, 0])]);
    put("nested_sidx.mp4", &[ftyp(), fragmented_moov(), sidx.repeat(20_000)], 1 << 20);
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A box of `kind` with the joined `parts` as its body.
fn bx(kind: &[u8; 4], parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    [&words(&[body.len() as u32 + 8]), kind.as_slice(), &body].concat()
}

/// The 64-bit size of a box with `len` bytes behind its head.
fn long(len: u64) -> Vec<u8> {
    (len + 16).to_be_bytes().to_vec()
}

fn ftyp() -> Vec<u8> {
    bx(b"ftyp", &[b"isom", &words(&[512]), b"isomiso2avc1mp41"])
}

fn mvhd() -> Vec<u8> {
    bx(b"mvhd", &[&words(&[0, 0, 0, 1000, 0]), &[0; 80]])
}

/// Sample tables of `count` samples of one byte, each `delta` ticks of a millisecond long.
fn tables(count: u32, delta: u32) -> Vec<Vec<u8>> {
    vec![
        bx(b"stts", &[&words(&[0, 1, count, delta])]),
        bx(b"stsz", &[&words(&[0, 1, count])]),
        bx(b"stsc", &[&words(&[0, 1, 1, count, 1])]),
        bx(b"stco", &[&words(&[0, 1, 4096])]),
    ]
}

/// A video track of the honest file's sample description.
fn trak(id: u32, edts: &[u8], tables: &[Vec<u8>]) -> Vec<u8> {
    let at = HONEST.windows(4).position(|kind| kind == b"stsd").unwrap() - 4;
    let len = u32::from_be_bytes(HONEST[at..at + 4].try_into().unwrap()) as usize;
    let stbl = bx(b"stbl", &[&HONEST[at..at + len], &tables.concat()]);
    let mut tkhd = words(&[7, 0, 0, id, 0, 0, 0, 0, 0, 0]);
    tkhd.extend(words(&[0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000, 0, 0]));
    let mdhd = bx(b"mdhd", &[&words(&[0, 0, 0, 1000, 0, 0x15c7_0000])]);
    let hdlr = bx(b"hdlr", &[&words(&[0, 0]), b"vide", &[0; 13]]);
    bx(b"trak", &[&bx(b"tkhd", &[&tkhd]), edts, &bx(b"mdia", &[&mdhd, &hdlr, &bx(b"minf", &[&stbl])])])
}

/// The movie box of a fragmented file: samples of no bytes and a millisecond.
fn fragmented_moov() -> Vec<u8> {
    let empty: Vec<Vec<u8>> = [b"stts", b"stsc", b"stco"].map(|kind| bx(kind, &[&words(&[0, 0])])).to_vec();
    let stsz = bx(b"stsz", &[&words(&[0, 0, 0])]);
    let trex = bx(b"trex", &[&words(&[0, 1, 1, 1, 0, 0])]);
    bx(b"moov", &[&mvhd(), &trak(1, &[], &[empty, vec![stsz]].concat()), &bx(b"mvex", &[&trex])])
}
