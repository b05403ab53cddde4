use super::*;
use crate::{
    codec::{ByteOrder, Codec, PcmCoding, PcmConfig, TrackKind},
    fixture::{bx, fields},
    movie::sample_table::{Sample, SampleTable},
    mp4::{pcm_units::PcmUnits, sample_entries::StoredEntry},
    work::Work,
};

fn fill(tables: &[Vec<u8>], len: Option<u64>) -> Result<(Vec<Sample>, Option<String>), MediaError> {
    let bytes = bx(b"stbl", &[&tables.concat()]);
    let stbl = Node::new(&bytes, 0, "stbl").unwrap();
    let mut out = SampleTable::builder();
    let entry = StoredEntry {
        number: 1,
        codec: Codec::Tx3g,
        kind: TrackKind::Text,
        sample_entry: Vec::new(),
        location: None,
        is_encrypted: false,
    };
    let mut entries = SampleEntries::new(&stbl, entry);
    let cut =
        Tables::parse(&stbl)?.fill(&mut out, (&mut entries, &mut None), len, &mut Budget::new(Work::unlimited()))?;
    Ok((out.finish().iter().collect(), cut.map(|cut| cut.reason)))
}

fn offsets(tables: &[Vec<u8>]) -> Vec<u64> {
    fill(tables, None).unwrap().0.iter().map(|s| s.range.start).collect()
}

#[test]
fn tables_run_side_by_side() {
    let tables = [
        fields(b"stts", &[0, 2, 2, 10, 3, 20]),
        fields(b"ctts", &[0x0100_0000, 3, 1, 5, 1, (-5_i32) as u32, 2, 0]),
        fields(b"stss", &[0, 2, 1, 4]),
        fields(b"stsz", &[0, 0, 5, 7, 8, 9, 10, 11]),
        fields(b"stsc", &[0, 2, 1, 2, 1, 3, 1, 1]),
        fields(b"stco", &[0, 3, 100, 200, 300]),
    ];
    let (samples, cut) = fill(&tables, Some(1000)).unwrap();
    let rows: Vec<_> =
        samples.iter().map(|s| (s.range.start, s.range.len(), s.dts, s.duration, s.composition, s.sync)).collect();
    assert_eq!(
        rows,
        [
            (100, 7, 0, 10, 5, true),
            (107, 8, 10, 10, -5, false),
            (200, 9, 20, 20, 0, false),
            (209, 10, 40, 20, 0, true),
            (300, 11, 60, 20, 0, false),
        ]
    );
    assert_eq!(cut, None);
}

#[test]
fn compact_sizes_of_each_width() {
    let with = |bits: u32, bytes: &[u8], count: u32| {
        let stz2 = bx(b"stz2", &[&crate::fixture::words(&[0, bits, count]), bytes]);
        let rest = [fields(b"stts", &[0, 1, 9, 1]), fields(b"stsc", &[0, 1, 1, 9, 1]), fields(b"stco", &[0, 1, 0])];
        let (samples, _) = fill(&[stz2, rest.concat()], None)?;
        Ok::<_, MediaError>(samples.iter().map(|s| s.range.len()).collect::<Vec<_>>())
    };
    assert_eq!(with(4, &[0x12, 0x30], 3).unwrap(), [1, 2, 3]);
    assert_eq!(with(8, &[1, 200], 2).unwrap(), [1, 200]);
    assert_eq!(with(16, &[1, 0, 0, 9], 2).unwrap(), [256, 9]);
    assert_eq!(with(16, &[1, 0, 0, 9, 3], 500).unwrap(), [256, 9], "a count beyond the bytes is cut");
    assert!(with(7, &[0], 1).unwrap_err().to_string().contains("field size of 7"));
}

#[test]
fn a_nonsense_chunk_map_keeps_what_makes_sense() {
    let with = |stsc: &[u32]| {
        [
            fields(b"stts", &[0, 1, 4, 1]),
            fields(b"stsz", &[0, 1, 4]),
            fields(b"stsc", stsc),
            fields(b"stco", &[0, 4, 10, 20, 30, 40]),
        ]
    };
    assert_eq!(offsets(&with(&[0, 1, 1, 1, 1])), [10, 20, 30, 40]);
    assert_eq!(offsets(&with(&[0, 2, 0, 9, 1, 1, 2, 1])), [10, 11, 20, 21], "chunk 0 does not exist");
    assert_eq!(offsets(&with(&[0, 3, 1, 2, 1, 3, 1, 1, 2, 5, 1])), [10, 11, 20, 21], "backwards");
    assert_eq!(offsets(&with(&[0, 2, 1, 0, 1, 2, 2, 1])), [20, 21, 30, 31], "an empty chunk");
    assert_eq!(offsets(&with(&[0, 1, 3, 2, 1])), [10, 11, 20, 21], "chunks before the first entry");
    for broken in [&[0, 0][..], &[0, 1, 1, 0, 1], &[0, 1, 0, 1, 1]] {
        let error = fill(&with(broken), None).unwrap_err();
        assert!(error.to_string().contains("stsc"), "{error}");
    }
}

#[test]
fn a_constant_size_stands_for_no_more_than_the_object_holds() {
    let tables = [
        fields(b"stts", &[0, 1, u32::MAX, 1]),
        fields(b"stsz", &[0, 10, u32::MAX]),
        fields(b"stsc", &[0, 1, 1, u32::MAX, 1]),
        fields(b"stco", &[0, 1, 50]),
    ];
    let (samples, cut) = fill(&tables, Some(100)).unwrap();
    assert_eq!(samples.len(), 5);
    assert!(cut.unwrap().contains("samples from 5 of 4294967295 on are left out"));
}

#[test]
fn samples_past_the_end_are_cut_unless_they_are_elsewhere() {
    let tables = crate::fixture::tables(10, 10, 50);
    let (samples, cut) = fill(&tables, Some(125)).unwrap();
    assert_eq!(samples.len(), 7);
    assert!(cut.unwrap().contains("10 bytes at 120 pass the end of the object"));
    assert_eq!(fill(&tables, None).unwrap().0.len(), 10);
    let far = [
        fields(b"stts", &[0, 1, 1, 1]),
        fields(b"stsz", &[0, 10, 1]),
        fields(b"stsc", &[0, 1, 1, 1, 1]),
        fields(b"co64", &[0, 1, u32::MAX, u32::MAX]),
    ];
    assert_eq!(fill(&far, None).unwrap().0.len(), 0, "an offset that overflows");
}

#[test]
fn tables_that_are_too_short_go_on() {
    let tables = [
        fields(b"stts", &[0, 1, 1, 10]),
        fields(b"ctts", &[0, 1, 1, 0xffff_fffe]),
        fields(b"stsz", &[0, 1, 3]),
        fields(b"stsc", &[0, 1, 1, 3, 1]),
        fields(b"stco", &[0, 1, 0]),
    ];
    let (samples, _) = fill(&tables, None).unwrap();
    let rows: Vec<_> = samples.iter().map(|s| (s.duration, s.composition)).collect();
    assert_eq!(rows, [(10, -2), (10, 0), (10, 0)], "version 0 has negative offsets too");
}

#[test]
fn sync_tables_of_odd_writers() {
    let sync = |stss: Vec<u8>| {
        let mut tables = crate::fixture::tables(4, 1, 0);
        tables.push(stss);
        let (samples, _) = fill(&tables, None).unwrap();
        samples.iter().filter(|s| s.sync).map(|s| s.index).collect::<Vec<_>>()
    };
    assert_eq!(sync(Vec::new()), [0, 1, 2, 3]);
    assert_eq!(sync(fields(b"stss", &[0, 2, 2, 4])), [1, 3]);
    assert_eq!(sync(fields(b"stss", &[0, 2, 0, 2])), [0, 2], "counted from 0");
    assert_eq!(sync(fields(b"stss", &[0, 0])), [0], "empty");
}

#[test]
fn missing_tables_are_named() {
    for (missing, name) in [(0, "stts"), (2, "stsc"), (3, "stco")] {
        let mut tables = crate::fixture::tables(4, 1, 0);
        tables.remove(missing);
        let error = fill(&tables, None).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
}

/// Returns the table of PCM tables: stereo of 16 bits at 48 kHz.
fn fill_pcm(tables: &[Vec<u8>], len: Option<u64>) -> Result<(SampleTable, Option<String>), MediaError> {
    let bytes = bx(b"stbl", &[&tables.concat()]);
    let stbl = Node::new(&bytes, 0, "stbl").unwrap();
    let coding = PcmCoding::Signed16(ByteOrder::Little);
    let codec = Codec::Pcm(PcmConfig { fourcc: *b"sowt", coding, channels: 2, sample_rate: 48_000 });
    let (mut out, mut units) = (SampleTable::builder(), PcmUnits::of(&codec).unwrap());
    let cut = Tables::parse(&stbl)?.fill_pcm(&mut units, &mut out, len, &mut Budget::new(Work::unlimited()))?;
    Ok((out.finish(), cut.map(|cut| cut.reason)))
}

fn pcm_rows(tables: &[Vec<u8>], len: u64) -> (Vec<(u64, u64, u32)>, Option<String>) {
    let (table, cut) = fill_pcm(tables, Some(len)).unwrap();
    (table.iter().map(|s| (s.range.start, s.range.len(), s.duration)).collect(), cut)
}

#[test]
fn frames_of_pcm_are_grouped_by_chunk() {
    let tables = |size| {
        [
            fields(b"stts", &[0, 2, 301, 1, 9, 2]),
            fields(b"stsz", &[0, size, 310]),
            fields(b"stsc", &[0, 2, 1, 300, 1, 2, 10, 1]),
            fields(b"stco", &[0, 2, 100, 5000]),
        ]
    };
    let expected = vec![(100, 1200, 300), (5000, 40, 19)];
    assert_eq!(pcm_rows(&tables(4), 6000), (expected.clone(), None));
    assert_eq!(pcm_rows(&tables(1), 6000), (expected, None), "QuickTime's size of uncompressed sound");
    let (rows, cut) = pcm_rows(&tables(4), 5022);
    assert_eq!(rows, [(100, 1200, 300), (5000, 20, 9)]);
    assert!(cut.unwrap().contains("samples from 305 of 310 on are left out: 4 bytes at 5020 pass the end"));
    // As many samples as there are bytes, if they don't overlap.
    assert!(pcm_rows(&tables(4), 1000).1.unwrap().contains("from 225 of 310 on"));
}

#[test]
fn samples_of_pcm_with_sizes_of_their_own() {
    let tables = |sizes: &[u32]| {
        [
            fields(b"stts", &[0, 1, 4, 1]),
            fields(b"stsz", &[&[0, 0, sizes.len() as u32], sizes].concat()),
            fields(b"stsc", &[0, 1, 1, 9, 1]),
            fields(b"stco", &[0, 1, 0]),
        ]
    };
    assert_eq!(pcm_rows(&tables(&[4, 4, 4, 8]), 100), (vec![(0, 12, 3), (12, 8, 1)], None));
    let (rows, cut) = pcm_rows(&tables(&[4, 4, 3, 4]), 100);
    assert_eq!(rows, [(0, 8, 2)]);
    assert!(cut.unwrap().contains("from 2 of 4 on are left out: a sample of 3 bytes, expected whole frames of 4"));
}

#[test]
fn an_hour_of_pcm_takes_little() {
    let frames = 3600 * 48_000;
    // Chunks of 1024 frames, with pictures between them.
    let chunks = frames / 1024;
    let places: Vec<u32> = (0..chunks).map(|chunk| chunk * 20_000).collect();
    let tables = [
        fields(b"stts", &[0, 1, frames, 1]),
        fields(b"stsz", &[0, 4, frames]),
        fields(b"stsc", &[0, 1, 1, 1024, 1]),
        fields(b"stco", &[&[0, chunks], &places[..]].concat()),
    ];
    let (table, cut) = fill_pcm(&tables, Some(1 << 33)).unwrap();
    assert_eq!((table.len(), cut), (frames / 256, None));
    assert_eq!(table.end_dts(), i64::from(frames));
    assert!(table.heap_bytes() < 1 << 20, "{} bytes", table.heap_bytes());
}

#[test]
fn frames_of_pcm_elsewhere_are_bounded() {
    let tables = |count| {
        [
            fields(b"stts", &[0, 1, count, 1]),
            fields(b"stsz", &[0, 4, count]),
            fields(b"stsc", &[0, 1, 1, count, 1]),
            fields(b"stco", &[0, 1, 0]),
        ]
    };
    let (table, cut) = fill_pcm(&tables(172_800_000), None).unwrap();
    assert_eq!((table.len(), cut), (576_000, None), "an hour");
    assert!(table.heap_bytes() < 300_000, "{} bytes", table.heap_bytes());
}
