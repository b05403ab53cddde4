use crate::{
    fixture::{AAC, AVC, PCM, bx, fields, mvhd, trak},
    index::indexer::index_bytes,
    movie::Movie,
};

const MOOF_BASE: u32 = 0x2_0000;

fn moov() -> Vec<u8> {
    let trex = |id| fields(b"trex", &[0, id, 1, 40, 10, 0x0101_0000]);
    let mvex = bx(b"mvex", &[&trex(1), &trex(2)]);
    bx(b"moov", &[&mvhd(), &trak(1, b"vide", AVC, &[]), &trak(2, b"soun", AAC, &[]), &mvex])
}

fn moof(trafs: &[Vec<u8>]) -> Vec<u8> {
    bx(b"moof", &[&fields(b"mfhd", &[0, 1]), &trafs.concat()])
}

fn traf(parts: &[Vec<u8>]) -> Vec<u8> {
    bx(b"traf", &[&parts.concat()])
}

fn index(parts: &[Vec<u8>]) -> Movie {
    index_bytes(&[moov(), parts.concat()].concat()).unwrap()
}

/// Offset relative to the first moof, size, dts, composition offset, sync flag.
fn rows(movie: &Movie, track: usize) -> Vec<(u64, u64, i64, i32, bool)> {
    let base = moov().len() as u64;
    let samples = movie.tracks[track].samples.iter();
    samples.map(|s| (s.range.start - base, s.range.len(), s.dts, s.composition, s.sync)).collect()
}

fn mdat(len: usize) -> Vec<u8> {
    bx(b"mdat", &[&vec![0; len]])
}

#[test]
fn defaults_come_from_trex_then_tfhd_then_trun() {
    let run = fields(b"trun", &[0x0a05, 2, 100, 0, 5, 1, 6, (-1_i32) as u32]);
    let movie = index(&[
        moof(&[traf(&[fields(b"tfhd", &[MOOF_BASE, 1]), run])]),
        moof(&[traf(&[fields(b"tfhd", &[MOOF_BASE | 0x38, 1, 7, 3, 0]), fields(b"trun", &[1, 2, 50])])]),
        mdat(300),
    ]);
    let second = moof(&[traf(&[fields(b"tfhd", &[MOOF_BASE, 1]), fields(b"trun", &[0x0a05, 2, 0, 0, 0, 0, 0, 0])])])
        .len() as u64;
    assert_eq!(
        rows(&movie, 0),
        [(100, 5, 0, 1, true), (105, 6, 40, -1, false), (second + 50, 3, 80, 0, true), (second + 53, 3, 87, 0, true),]
    );
    assert!(movie.fragmented);
    assert_eq!(movie.tracks.len(), 1);
    assert!(movie.skipped[0].reason.contains("no samples in the movie or any fragment"), "{:?}", movie.skipped);
}

#[test]
fn data_without_offsets_follows_the_run_before() {
    let runs = [fields(b"trun", &[1, 1, 200]), fields(b"trun", &[0, 2])].concat();
    let movie = index(&[
        moof(&[traf(&[fields(b"tfhd", &[0, 1]), runs]), traf(&[fields(b"tfhd", &[0, 2]), fields(b"trun", &[0, 1])])]),
        mdat(300),
    ]);
    assert_eq!(rows(&movie, 0).iter().map(|r| r.0).collect::<Vec<_>>(), [200, 210, 220]);
    assert_eq!(rows(&movie, 1), [(230, 10, 0, 0, true)], "the base is the end of the track before; sound is all sync");
}

#[test]
fn an_explicit_base_counts_from_the_file() {
    let base = moov().len() as u32 + 150;
    let movie = index(&[
        moof(&[traf(&[fields(b"tfhd", &[1, 1, 0, base]), fields(b"trun", &[1, 1, (-20_i32) as u32])])]),
        mdat(300),
    ]);
    assert_eq!(rows(&movie, 0)[0].0, 130);
}

#[test]
fn decode_times_jump_and_missing_ones_go_on() {
    let tfhd = || fields(b"tfhd", &[MOOF_BASE, 1]);
    let run = || fields(b"trun", &[1, 1, 8]);
    let movie = index(&[
        moof(&[traf(&[tfhd(), fields(b"tfdt", &[0, 1000]), run()])]),
        moof(&[traf(&[tfhd(), run()])]),
        moof(&[traf(&[tfhd(), fields(b"tfdt", &[0x0100_0000, 1, 0]), run()])]),
        mdat(300),
    ]);
    let samples = &movie.tracks[0].samples;
    assert_eq!(samples.iter().map(|s| s.dts).collect::<Vec<_>>(), [1000, 1040, 1 << 32]);
    assert_eq!(samples.get(1).unwrap().duration, u32::MAX - 1039);
}

/// Fragments of two samples of 40 ticks each, at these decode times, with composition offsets of 40. Returns warnings of the
/// track, too.
fn at(times: &[u32]) -> (Movie, Vec<String>) {
    let fragment = |time: &u32| {
        let run = fields(b"trun", &[0x801, 2, 8, 40, 40]);
        moof(&[traf(&[fields(b"tfhd", &[MOOF_BASE, 1]), fields(b"tfdt", &[0, *time]), run])])
    };
    let fragments: Vec<Vec<u8>> = times.iter().map(fragment).collect();
    let movie = index(&[fragments.concat(), mdat(300)]);
    let warnings =
        movie.skipped.iter().filter(|skipped| skipped.id == 1).map(|skipped| skipped.reason.clone()).collect();
    (movie, warnings)
}

#[test]
fn fragments_that_overlap_have_their_stated_times() {
    let (movie, warnings) = at(&[0, 30, 110]);
    let samples = || movie.tracks[0].samples.iter();
    assert_eq!(samples().map(|s| s.pts()).collect::<Vec<_>>(), [40, 80, 70, 110, 150, 190]);
    assert!(samples().zip(samples().skip(1)).all(|(a, b)| a.dts < b.dts));
    assert_eq!(movie.tracks[0].samples.end_dts(), 190);
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    let text = "found a decode time of 30, before the end of the fragment before at 80: the fragment has that time";
    assert!(warning.contains("/tfdt") && warning.ends_with(text), "{warning}");
}

#[test]
fn a_sample_that_lasts_too_long_is_no_overlap() {
    let (movie, warnings) = at(&[0, 79, 159]);
    assert_eq!(movie.tracks[0].samples.iter().map(|s| s.dts).collect::<Vec<_>>(), [0, 40, 79, 119, 159, 199]);
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn times_that_begin_again_follow_those_before() {
    for times in [[0, 0, 0, 0], [1000, 1080, 0, 80]] {
        let (movie, warnings) = at(&times);
        let start = i64::from(times[0]);
        let dts: Vec<_> = movie.tracks[0].samples.iter().map(|s| s.dts - start).collect();
        assert_eq!(dts, [0, 40, 80, 120, 160, 200, 240, 280], "{times:?}");
        assert!(warnings[0].ends_with("the fragment follows it"), "{warnings:?}");
    }
}

#[test]
fn samples_before_fragments_come_first() {
    let trex = fields(b"trex", &[0, 1, 1, 40, 10, 0]);
    let at = |offset| {
        let track = trak(1, b"vide", AVC, &crate::fixture::tables(3, 10, offset));
        bx(b"moov", &[&mvhd(), &track, &bx(b"mvex", &[&trex])])
    };
    let moov = at(at(0).len() as u32 + 8);
    let moof = moof(&[traf(&[fields(b"tfhd", &[MOOF_BASE, 1]), fields(b"trun", &[1, 2, 8])])]);
    let movie = index_bytes(&[moov, mdat(30), moof, mdat(20)].concat()).unwrap();
    assert_eq!(movie.tracks[0].samples.iter().map(|s| s.dts).collect::<Vec<_>>(), [0, 40, 80, 120, 160]);
}

#[test]
fn a_run_of_nothing_is_bounded() {
    let tfhd = fields(b"tfhd", &[MOOF_BASE | 0x10, 1, 0]);
    let good = moof(&[traf(&[fields(b"tfhd", &[MOOF_BASE, 1]), fields(b"trun", &[1, 1, 8])])]);
    let bad = moof(&[traf(&[tfhd, fields(b"trun", &[0, u32::MAX])])]);
    let movie = index(&[good, bad, mdat(300)]);
    assert_eq!(movie.tracks[0].samples.len(), 1);
    assert_eq!(
        movie.skipped[0].reason.split_once(": ").unwrap().1,
        "found 4294967295 samples of no bytes and no fields, expected at most 1024"
    );
    assert!(movie.skipped[0].reason.starts_with("moof[2]/traf[1]/trun[1] at byte "));
}

#[test]
fn a_run_past_the_end_of_the_object_is_cut_there() {
    let run = fields(b"trun", &[1, u32::MAX, 100]);
    let movie = index(&[moof(&[traf(&[fields(b"tfhd", &[MOOF_BASE, 1]), run])]), mdat(92)]);
    assert!((3..=10).contains(&movie.tracks[0].samples.len()), "{}", movie.tracks[0].samples.len());
    assert_eq!(movie.skipped[0].id, 1);
}

#[test]
fn a_broken_fragment_ends_its_track_and_no_other() {
    let run = || fields(b"trun", &[1, 1, 8]);
    let change = fields(b"tfhd", &[MOOF_BASE | 2, 1, 2]);
    let sound = || traf(&[fields(b"tfhd", &[MOOF_BASE, 2]), run()]);
    let movie = index(&[
        moof(&[traf(&[fields(b"tfhd", &[MOOF_BASE, 1]), run()]), sound()]),
        moof(&[traf(&[change, run()]), sound()]),
        mdat(300),
    ]);
    assert_eq!(movie.tracks.iter().map(|t| t.samples.len()).collect::<Vec<_>>(), [1, 2]);
    assert!(movie.skipped[0].reason.contains("a change from sample entry 1 to 2"));
}

#[test]
fn pcm_comes_in_units_however_it_is_written() {
    // Two bytes per frame, at most 600 frames per unit.
    let moov = |size: u32, duration| {
        let mvex = bx(b"mvex", &[&fields(b"trex", &[0, 1, 1, duration, size, 0])]);
        bx(b"moov", &[&mvhd(), &trak(1, b"soun", PCM, &[]), &mvex])
    };
    // Fields of the run before and after its data offset.
    let units = |moov: Vec<u8>, [flags, count]: [u32; 2], samples: &[u32], media: usize| {
        let run = |at| fields(b"trun", &[&[flags, count, at], samples].concat());
        let moof = |at| moof(&[traf(&[fields(b"tfhd", &[MOOF_BASE, 1]), run(at)])]);
        let moof = moof(moof(0).len() as u32 + 8);
        let base = (moov.len() + moof.len() + 8) as u64;
        let movie = index_bytes(&[moov, moof, mdat(media)].concat()).unwrap();
        let rows: Vec<_> =
            movie.tracks[0].samples.iter().map(|s| (s.range.start - base, s.range.len(), s.duration)).collect();
        (rows, movie.skipped.into_iter().map(|skipped| skipped.reason).next())
    };
    let even = vec![(0, 1000, 500), (1000, 1000, 500)];
    assert_eq!(units(moov(2, 1), [1, 1000], &[], 3000), (even.clone(), None), "a frame a sample");
    assert_eq!(units(moov(2000, 1000), [1, 1], &[], 3000), (even, None), "one sample");
    let together = vec![(0, 4, 2), (4, 6, 1)];
    assert_eq!(units(moov(0, 1), [0x201, 3], &[2, 2, 6], 3000), (together, None));
    let (rows, reason) = units(moov(2, 1), [1, 1000], &[], 100);
    assert_eq!(rows, [(0, 100, 50)]);
    assert!(reason.unwrap().contains("found sample 50 of 2 bytes"));
    let (rows, reason) = units(moov(0, 1), [0x201, 3], &[2, 3, 2], 3000);
    assert_eq!(rows, [(0, 2, 1)]);
    assert!(reason.unwrap().ends_with("found sample 1 of 3 bytes, expected whole frames of 2"));
}
