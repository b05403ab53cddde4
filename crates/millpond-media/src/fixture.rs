//! Builds media files from parts, for tests.

use crate::{
    codec::{TrackKind, orientation::Orientation, parse_sample_entry},
    movie::{Edit, Movie, Track, sample_table::SampleTable, tags::Tags},
    units::Timescale,
};

/// An `avc1` sample entry: 320x180, no audio.
pub(crate) const AVC: &str = "000000af61766331000000000000000100000000000000000000000000000000014000b40048000000480000000000000001154c61766335392e33372e313030206c696278323634000000000000000000000018ffff00000035617663430164000cffe1001a6764000cacd941419f9f011000000300100000030320f142996001000468ef8fcbfdf8f800000000107061737000000001000000010000001462747274000000000003bb580003bb58";
/// An `hvc1` sample entry: 320x180, Main profile.
pub(crate) const HEVC: &str = "000000fc68766331000000000000000100000000000000000000000000000000014000b40048000000480000000000000001154c61766335392e33372e313030206c696278323635000000000000000000000018ffff00000078687663430101600000009000000000003cf000fcfdf8f800000f03a00001001840010c01ffff01600000030090000003000003003c959809a10001002b42010101600000030090000003000003003ca00a080b9f796566924caf016808000003000800000300c840a2000100074401c172b462400000000a6669656c010000000010706173700000000100000001000000146274727400000000000375c8000375c8";
/// An `mp4a` sample entry: AAC-LC, 48 kHz.
pub(crate) const AAC: &str = "0000006e6d703461000000000000000100000000000000000002001000000000bb800000000000366573647300000000038080802500020004808080174015000000000177f4000177f40580808005118856e500068080800102000000146274727400000000000177f4000177f4";

/// An `ipcm` sample entry: mono, 16 bits, little-endian, 48 kHz.
pub(crate) const PCM: &str =
    "000000326970636d000000000000000100000000000000000001001000000000bb8000000000000e70636d43000000000110";

/// Parses hexadecimal digits.
pub(crate) fn hex(digits: &str) -> Vec<u8> {
    let digit = |d: u8| (d as char).to_digit(16).unwrap() as u8;
    digits.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// Packs fields of these widths and values into bytes. Zeros fill the last byte.
pub(crate) fn packed(fields: &[(u32, u32)]) -> Vec<u8> {
    let bits: String =
        fields.iter().map(|(width, value)| format!("{value:0width$b}", width = *width as usize)).collect();
    let bits = format!("{bits:0<width$}", width = bits.len().next_multiple_of(8));
    (0..bits.len()).step_by(8).map(|at| u8::from_str_radix(&bits[at..at + 8], 2).unwrap()).collect()
}

/// Words in big-endian order.
pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Returns a box of `kind` with the joined `parts` as its body.
pub(crate) fn bx(kind: &[u8; 4], parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let mut bytes = words(&[body.len() as u32 + 8]);
    bytes.extend_from_slice(kind);
    bytes.extend_from_slice(&body);
    bytes
}

/// A box whose body is `fields`, the first of which is version and flags.
pub(crate) fn fields(kind: &[u8; 4], fields: &[u32]) -> Vec<u8> {
    bx(kind, &[&words(fields)])
}

/// Returns an `mvhd` with 1000 ticks per second.
pub(crate) fn mvhd() -> Vec<u8> {
    bx(b"mvhd", &[&words(&[0, 0, 0, 1000, 0]), &[0; 80]])
}

/// Returns a track with 1000 ticks per second: `handler`, sample entry as digits, and the tables in its `stbl`.
pub(crate) fn trak(id: u32, handler: &[u8; 4], entry: &str, tables: &[Vec<u8>]) -> Vec<u8> {
    joined_trak(id, handler, &[entry], tables)
}

/// Returns a track like [`trak`], with several sample entries.
pub(crate) fn joined_trak(id: u32, handler: &[u8; 4], entries: &[&str], tables: &[Vec<u8>]) -> Vec<u8> {
    let mut tkhd = words(&[7, 0, 0, id, 0, 0, 0, 0, 0, 0]);
    tkhd.extend(words(&[0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000, 0, 0]));
    let stsd = bx(b"stsd", &[&words(&[0, entries.len() as u32]), &hex(&entries.concat())]);
    let stbl = bx(b"stbl", &[&stsd, &tables.concat()]);
    let mdhd = bx(b"mdhd", &[&words(&[0, 0, 0, 1000, 0, 0x15c7_0000])]);
    let hdlr = bx(b"hdlr", &[&words(&[0, 0]), handler, &[0; 13]]);
    bx(b"trak", &[&bx(b"tkhd", &[&tkhd]), &bx(b"mdia", &[&mdhd, &hdlr, &bx(b"minf", &[&stbl])])])
}

/// Returns tables of `count` samples of `size` bytes and 40 ticks in one chunk at `offset`.
pub(crate) fn tables(count: u32, size: u32, offset: u32) -> Vec<Vec<u8>> {
    vec![
        fields(b"stts", &[0, 1, count, 40]),
        fields(b"stsz", &[0, size, count]),
        fields(b"stsc", &[0, 1, 1, count, 1]),
        fields(b"stco", &[0, 1, offset]),
    ]
}

/// Returns a track of `samples` with the sample entry `entry`.
pub(crate) fn track(id: u32, entry: &str, edits: Vec<Edit>, samples: SampleTable) -> Track {
    let handler = if entry == AVC { *b"vide" } else { *b"soun" };
    let sample_entry = hex(entry);
    let parsed = parse_sample_entry(&sample_entry, handler, "stsd", 0).unwrap();
    let kind = match parsed.kind {
        TrackKind::Video { width, height, pixel_aspect, .. } => {
            TrackKind::Video { width, height, pixel_aspect, orientation: Orientation::UPRIGHT }
        }
        kind => kind,
    };
    Track {
        id,
        kind,
        timescale: Timescale::MILLIS,
        language: "und".to_owned(),
        name: None,
        enabled: true,
        alternate_group: 0,
        purposes: crate::movie::purpose::Purposes::default(),
        captions: None,
        codec: parsed.codec,
        sample_entry,
        edits,
        samples,
        descriptions: None,
        protection: None,
    }
}

/// Returns a movie of `tracks` with 1000 ticks per second.
pub(crate) fn movie(tracks: Vec<Track>) -> Movie {
    Movie {
        timescale: Timescale::MILLIS,
        duration: 0,
        fragmented: false,
        tracks,
        clips: Vec::new(),
        chapters: Vec::new(),
        artwork: None,
        tags: Tags::default(),
        programmes: Vec::new(),
        skipped: Vec::new(),
        external_media: None,
        system_headers: Vec::new(),
        fragment_headers: Vec::new(),
        cut_short: false,
        outline: None,
        is_indivisible: true,
        extraction: None,
        stitched: None,
    }
}
