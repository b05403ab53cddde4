use super::*;
use crate::fixture::{AAC, AVC, bx, fields, mvhd, tables, trak, words};
use proptest::prelude::*;

/// Runs an indexer to its end, and counts the ranges of each batch.
fn run(object: &[u8], limits: IndexLimits) -> (Result<Movie, MediaError>, Vec<usize>) {
    run_joined(object, limits, &[])
}

/// As [`run`], for an object of files that begin at `joints`.
fn run_joined(object: &[u8], limits: IndexLimits, joints: &[u64]) -> (Result<Movie, MediaError>, Vec<usize>) {
    let mut indexer = Indexer::with_limits(object.len() as u64, limits).joined_at(joints);
    let mut batches = Vec::new();
    loop {
        match indexer.poll() {
            Ok(Step::Done(movie)) => return (Ok(movie), batches),
            Err(error) => return (Err(error), batches),
            Ok(Step::Need(ranges)) => {
                assert!(!ranges.is_empty());
                // The media of these files is zeros. Reads of media have tests of their own.
                if !matches!(indexer.stage, Stage::Entries(_)) {
                    batches.push(ranges.len());
                }
                assert!(batches.len() < 1000, "it gets on");
                // Ranges are supplied in reverse order.
                for range in ranges.into_iter().rev() {
                    assert!(range.start < range.end && range.end <= object.len() as u64, "{range}");
                    indexer.supply(range, Bytes::copy_from_slice(&object[range.start as usize..range.end as usize]));
                }
            }
        }
    }
}

fn ftyp() -> Vec<u8> {
    bx(b"ftyp", &[b"isom\0\0\0\0"])
}

fn moov_at(offset: u32) -> Vec<u8> {
    let video = trak(1, b"vide", AVC, &tables(10, 100, offset));
    bx(b"moov", &[&mvhd(), &video, &trak(2, b"soun", AAC, &tables(5, 10, offset + 1000))])
}

fn mdat(len: usize) -> Vec<u8> {
    bx(b"mdat", &[&vec![0; len]])
}

fn counts(movie: &Movie) -> Vec<u32> {
    movie.tracks.iter().map(|t| t.samples.len()).collect()
}

#[test]
fn movie_first_takes_one_batch_or_two() {
    let head = (ftyp().len() + moov_at(0).len() + 8) as u32;
    let object = [ftyp(), moov_at(head), mdat(1050)].concat();
    let (movie, batches) = run(&object, IndexLimits::default());
    assert_eq!((counts(&movie.unwrap()), batches), (vec![10, 5], vec![1]));
    let (movie, batches) = run(&object, IndexLimits { head: 100, ..IndexLimits::default() });
    assert_eq!((counts(&movie.unwrap()), batches), (vec![10, 5], vec![1, 1]));
}

#[test]
fn movie_last_takes_two_batches() {
    let object =
        [ftyp(), bx(b"wide", &[]), mdat(100_000), bx(b"free", &[&[0; 30]]), moov_at(100), b"\0\0\0\x03junk".to_vec()];
    let (movie, batches) = run(&object.concat(), IndexLimits::default());
    assert_eq!((counts(&movie.unwrap()), batches), (vec![10, 5], vec![1, 1]));
}

#[test]
fn long_headers_and_open_ends() {
    let mut long = words(&[1]);
    long.extend_from_slice(b"mdat\0\0\0\0\0\0\x08\0");
    long.resize(0x800, 0);
    let mut moov = moov_at(100);
    moov[..4].fill(0);
    let (movie, _) = run(&[ftyp(), long, moov].concat(), IndexLimits::default());
    assert_eq!(counts(&movie.unwrap()), [10, 5]);
}

#[test]
fn media_that_claims_more_than_there_is_loses_its_end() {
    let head = (ftyp().len() + moov_at(0).len() + 8) as u32;
    let mut object = [ftyp(), moov_at(head), mdat(5000)].concat();
    object.truncate(head as usize + 950);
    let movie = run(&object, IndexLimits::default()).0.unwrap();
    assert_eq!(counts(&movie), [9]);
    let ids: Vec<u32> = movie.skipped.iter().map(|s| s.id).collect();
    assert_eq!(ids, [1, 2], "one is cut short, one is gone");
    assert!(movie.cut_short);
}

#[test]
fn a_file_that_ends_early_is_told_from_one_that_is_wrong() {
    let head = (ftyp().len() + moov_at(0).len() + 8) as u32;
    let whole = [ftyp(), moov_at(head), mdat(5000)].concat();
    assert!(!run(&whole, IndexLimits::default()).0.unwrap().cut_short);
    for len in 0..whole.len() {
        match run(&whole[..len], IndexLimits::default()).0 {
            Ok(movie) => assert!(movie.cut_short || len as u64 >= u64::from(head) + 1050, "{len}"),
            Err(error) => assert!(error.is_cut_short(len as u64), "{len}: {error}"),
        }
    }
    let garbage = [ftyp(), vec![0xff; 40]].concat();
    let no_track = [ftyp(), bx(b"moov", &[&mvhd()])].concat();
    for wrong in [garbage, no_track, b"<!DOCTYPE html>    ".to_vec()] {
        let error = run(&wrong, IndexLimits::default()).0.unwrap_err();
        assert!(!error.is_cut_short(wrong.len() as u64), "{error}");
    }
}

#[test]
fn errors_name_the_place() {
    let error = |object: &[u8]| run(object, IndexLimits::default()).0.unwrap_err().to_string();
    let whole = [ftyp(), moov_at(100)].concat();
    assert_eq!(
        error(&whole[..100]),
        format!("moov at byte 16: found 84 bytes, expected {}: the file is cut short", whole.len() - 16)
    );
    assert_eq!(error(b""), "the file is empty: found 0 bytes, expected media");
    assert!(error(b"<!DOCTYPE html>    ").contains("found a box of type CTYP, expected ftyp"));
    assert!(error(&[0; 40]).contains("expected ftyp") || error(&[0; 40]).contains("expected a box"));
    for junk in [&b"<!DOCTYPE html>    "[..], &[0_u8; 40]] {
        assert!(error(junk).ends_with("the format of the file is not known"), "{}", error(junk));
    }
    assert!(error(&[ftyp(), mdat(50)].concat()).contains("no moov box"));
    let cut = [ftyp(), mdat(5000)].concat();
    assert!(error(&cut[..1000]).starts_with("mdat at byte 16: found 984 bytes, expected 5008"));
    let garbage = [ftyp(), vec![0xff; 40]].concat();
    assert!(error(&garbage).starts_with("the file at byte 16: found the bytes"));
    assert!(error(&garbage).ends_with("expected a box with a size and a type"), "the format is known");
    let no_track = [ftyp(), bx(b"moov", &[&mvhd()])].concat();
    assert!(error(&no_track).contains("the movie has no track at all"));
    let no_movie_header = [ftyp(), bx(b"moov", &[])].concat();
    assert_eq!(error(&no_movie_header), "moov at byte 16: found no mvhd box, expected one");
    let compressed = [ftyp(), bx(b"moov", &[&bx(b"cmov", &[&[7; 40]])])].concat();
    assert!(error(&compressed).starts_with("moov/cmov at byte 24: a compressed movie box ("), "{}", error(&compressed));
}

#[test]
fn a_bad_track_is_skipped_with_its_reason() {
    let bad = trak(1, b"vide", AVC, &[]);
    let moov = bx(b"moov", &[&mvhd(), &bad, &trak(2, b"soun", AAC, &tables(5, 10, 0))]);
    let movie = index_bytes(&[ftyp(), moov].concat()).unwrap();
    assert_eq!(movie.tracks[0].id, 2);
    assert_eq!(movie.skipped[0].id, 1);
    assert!(movie.skipped[0].reason.starts_with("moov/trak[1]/mdia/minf/stbl at byte "), "{:?}", movie.skipped);
}

#[test]
fn metadata_has_a_limit() {
    let object = [ftyp(), moov_at(100)].concat();
    let limits = IndexLimits { max_metadata: 200, ..IndexLimits::default() };
    let error = run(&object, limits).0.unwrap_err();
    assert_eq!(error, MediaError::too_large("moov", 16, object.len() as u64 - 16, 200, "bytes of metadata"));
}

#[test]
fn short_answers_and_strange_ones() {
    let mut indexer = Indexer::new(1000);
    let Ok(Step::Need(ranges)) = indexer.poll() else { panic!("needs its head") };
    assert_eq!(ranges, [ByteRange::new(0, 1000)]);
    indexer.supply(ByteRange::new(5, 10), Bytes::from_static(b"12345"));
    assert_eq!(indexer.poll(), Ok(Step::Need(ranges)), "what was not asked is passed over");
    indexer.supply(ByteRange::new(0, 1000), Bytes::from_static(b"12345"));
    let error = MediaError::truncated("the object", 0, 5, 1000);
    assert_eq!(indexer.poll(), Err(error.clone()));
    assert_eq!(indexer.poll(), Err(error), "the first error is final");
}

/// A fragmented file: `count` fragments with `media` bytes each.
struct Fragmented {
    moov: Vec<u8>,
    fragments: Vec<Vec<u8>>,
}

impl Fragmented {
    fn new(count: u32, media: usize) -> Self {
        let mvex = bx(b"mvex", &[&fields(b"trex", &[0, 1, 1, 40, 10, 0])]);
        let moov = bx(b"moov", &[&mvhd(), &trak(1, b"vide", AVC, &[]), &mvex]);
        let fragment = |n: u32| {
            let tfdt = fields(b"tfdt", &[0, n * 80]);
            let traf = bx(b"traf", &[&fields(b"tfhd", &[0x2_0000, 1]), &tfdt, &fields(b"trun", &[1, 2, 80])]);
            [bx(b"moof", &[&traf]), mdat(media)].concat()
        };
        Self { moov, fragments: (0..count).map(fragment).collect() }
    }

    fn sidx(&self, from: usize, to: usize, first: u32) -> Vec<u8> {
        let mut words = vec![0, 1, 1000, 0, first, (to - from) as u32];
        for fragment in &self.fragments[from..to] {
            words.extend([fragment.len() as u32, 80, 0x9000_0000]);
        }
        fields(b"sidx", &words)
    }

    fn check(&self, object: &[u8]) -> Vec<usize> {
        let (movie, batches) = run(object, IndexLimits { head: 4096, ..IndexLimits::default() });
        let movie = movie.unwrap();
        let expected: Vec<i64> = (0..self.fragments.len() as i64 * 2).map(|i| i * 40).collect();
        assert_eq!(movie.tracks[0].samples.iter().map(|s| s.dts).collect::<Vec<_>>(), expected);
        assert_eq!(movie.skipped, []);
        batches
    }
}

#[test]
fn fragments_of_a_small_file_come_at_once() {
    let file = Fragmented::new(20, 10_000);
    let object = [ftyp(), file.moov.clone(), file.fragments.concat()].concat();
    assert_eq!(file.check(&object), [1, 1]);
}

#[test]
fn fragments_without_an_index_take_a_hop_each() {
    let file = Fragmented::new(20, 100_000);
    let object = [ftyp(), file.moov.clone(), file.fragments.concat()].concat();
    let batches = file.check(&object);
    assert_eq!(batches[..3], [1, 2, 1], "the end is looked at along the way");
    assert!(batches.len() <= 22, "{batches:?}");
}

#[test]
fn fragments_in_a_segment_index_come_in_one_batch() {
    let file = Fragmented::new(20, 100_000);
    let object = [ftyp(), file.moov.clone(), file.sidx(0, 20, 0), file.fragments.concat()].concat();
    assert_eq!(file.check(&object), [1, 19], "the first one came with the head");
}

#[test]
fn joined_fragments_come_in_one_batch() {
    let file = Fragmented::new(20, 100_000);
    let head = [ftyp(), file.moov.clone()].concat();
    let mut joints = vec![0];
    let mut place = head.len() as u64;
    for fragment in &file.fragments {
        joints.push(place);
        place += fragment.len() as u64;
    }
    let object = [head, file.fragments.concat()].concat();
    let (movie, batches) = run_joined(&object, IndexLimits::default(), &joints);
    assert_eq!(batches, [1, 19], "the first one came with the head");
    let wrong: Vec<u64> = joints.iter().map(|joint| joint + 5).collect();
    let (astray, _) = run_joined(&object, IndexLimits::default(), &wrong);
    let (walked, _) = run(&object, IndexLimits::default());
    assert_eq!((counts(&movie.unwrap()), counts(&astray.unwrap())), (vec![40], vec![40]));
    assert_eq!(counts(&walked.unwrap()), [40]);
}

#[test]
fn indexes_of_indexes() {
    let file = Fragmented::new(20, 100_000);
    let (a, b) = (file.sidx(0, 10, 0), file.sidx(10, 20, 0));
    let halves = [a, file.fragments[..10].concat(), b, file.fragments[10..].concat()];
    let len = |i: usize| (halves[i].len() + halves[i + 1].len()) as u32;
    let top = fields(b"sidx", &[0, 1, 1000, 0, 0, 2, 1 << 31 | len(0), 0, 0, 1 << 31 | len(2), 0, 0]);
    let object = [ftyp(), file.moov.clone(), top, halves.concat()].concat();
    assert!(file.check(&object).len() <= 3);
    let chained = [ftyp(), file.moov.clone(), halves.concat()].concat();
    assert!(file.check(&chained).len() <= 4);
}

#[test]
fn an_index_at_the_end() {
    let file = Fragmented::new(20, 100_000);
    let mut object = [ftyp(), file.moov.clone()].concat();
    let mut entries = Vec::new();
    let mut place = object.len() as u32;
    for fragment in &file.fragments {
        entries.extend([0, place, 0x0101_0100]);
        place += fragment.len() as u32;
    }
    // Three numbers of one byte each: the last word has one byte too many.
    let entries: Vec<u8> = entries.chunks(3).flat_map(|e| words(e)[..11].to_vec()).collect();
    let tfra = bx(b"tfra", &[&words(&[0, 1, 0, 20]), &entries]);
    let mfra = bx(b"mfra", &[&tfra, &fields(b"mfro", &[0, tfra.len() as u32 + 24])]);
    object.extend(file.fragments.concat());
    object.extend(mfra);
    let batches = file.check(&object);
    assert_eq!(batches.len(), 3, "{batches:?}");
}

#[test]
fn an_index_that_points_astray_is_not_believed() {
    let file = Fragmented::new(20, 100_000);
    let mut wrong = file.sidx(0, 20, 77);
    let object = [ftyp(), file.moov.clone(), wrong.clone(), file.fragments.concat()].concat();
    file.check(&object);
    let last = wrong.len() - 12;
    wrong[last..].fill(0x55);
    let object = [ftyp(), file.moov.clone(), wrong, file.fragments.concat()].concat();
    file.check(&object);
}

#[test]
fn a_recording_that_broke_off_keeps_what_it_has() {
    let file = Fragmented::new(20, 100_000);
    let object = [ftyp(), file.moov.clone(), file.fragments.concat()].concat();
    let cut = object.len() - file.fragments[19].len() + 20;
    let (movie, _) = run(&object[..cut], IndexLimits::default());
    let movie = movie.unwrap();
    assert_eq!(movie.tracks[0].samples.len(), 38);
    assert!(movie.skipped[0].reason.contains("moof at byte"), "{:?}", movie.skipped);
}

#[test]
fn fragments_count_as_metadata() {
    let file = Fragmented::new(20, 100_000);
    let object = [ftyp(), file.moov.clone(), file.fragments.concat()].concat();
    let limits = IndexLimits { max_metadata: file.moov.len() as u64 + 500, ..IndexLimits::default() };
    assert!(matches!(run(&object, limits).0, Err(MediaError::TooLarge { .. })));
}

fn progressive() -> Vec<u8> {
    let head = (ftyp().len() + moov_at(0).len() + 8) as u32;
    [ftyp(), moov_at(head), mdat(1050)].concat()
}

fn fragmented() -> Vec<u8> {
    let file = Fragmented::new(3, 100);
    [ftyp(), file.moov.clone(), file.sidx(0, 3, 0), file.fragments.concat()].concat()
}

#[test]
fn every_cut_of_a_file_is_an_error_or_a_movie() {
    for object in [progressive(), fragmented()] {
        for end in 0..object.len() {
            let limits = IndexLimits { head: 64, ..IndexLimits::default() };
            let _ = run(&object[..end], limits);
        }
    }
}

proptest! {
    #[test]
    fn damage_does_no_harm(
        hits in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
        in_fragments in any::<bool>(),
        head in 16_u64..2000,
    ) {
        let mut object = if in_fragments { fragmented() } else { progressive() };
        for (place, value) in hits {
            let place = place.index(object.len());
            object[place] = value;
        }
        let (movie, _) = run(&object, IndexLimits { head, ..IndexLimits::default() });
        if let Ok(movie) = movie {
            for track in &movie.tracks {
                prop_assert!(movie.external_media.is_some()
                    || track.samples.iter().all(|s| s.range.end <= object.len() as u64));
                let _ = crate::movie::edits::spans(track, movie.timescale);
            }
            let _ = crate::mp4::dref::write(&movie, "film.mp4");
        }
    }
}

/// Answers every read of `indexer` with an empty box of a mebibyte, until the indexer ends or refuses.
fn answer_with_free_boxes(mut indexer: Indexer) -> MediaError {
    let mut bytes = vec![0; 1 << 16];
    bytes[..8].copy_from_slice(b"\0\x10\0\0free");
    let bytes = Bytes::from(bytes);
    loop {
        match indexer.poll() {
            Err(error) => return error,
            Ok(Step::Done(movie)) => panic!("done: {movie:?}"),
            Ok(Step::Need(ranges)) => {
                for range in ranges {
                    indexer.supply(range, bytes.slice(..range.len() as usize));
                }
            }
        }
    }
}

#[test]
fn a_file_of_empty_boxes_is_not_read_to_its_end() {
    let error = answer_with_free_boxes(Indexer::new(1 << 50));
    let offset = 1023 << 20;
    assert_eq!(error, MediaError::too_large("moov", offset, 1025, 1024, "reads one after the other"));
}

#[test]
fn a_job_that_is_cancelled_ends_with_its_place() {
    let work = Work::unlimited();
    let indexer = Indexer::new(1 << 50).with_work(work.clone());
    work.cancel();
    let error = answer_with_free_boxes(indexer);
    assert_eq!(error, MediaError::work("moov", 0, crate::work::WorkError::Cancelled));
}

#[test]
fn a_movie_box_of_empty_boxes_is_read_in_linear_time() {
    let junk = bx(b"free", &[]).repeat(1 << 17);
    let tracks: Vec<Vec<u8>> = (1..=300).map(|id| trak(id, b"soun", AAC, &tables(1, 1, 0))).collect();
    let object = [ftyp(), bx(b"moov", &[&mvhd(), &junk, &tracks.concat()])].concat();
    let work = Work::new(object.len() as u64);
    let mut indexer = Indexer::new(object.len() as u64).with_work(work.clone());
    let movie = loop {
        match indexer.poll().unwrap() {
            Step::Done(movie) => break movie,
            Step::Need(ranges) => ranges.into_iter().for_each(|range| {
                indexer.supply(range, Bytes::copy_from_slice(&object[range.start as usize..range.end as usize]));
            }),
        }
    };
    assert_eq!(movie.tracks.len(), 256);
    let reasons: Vec<&str> = movie.skipped.iter().map(|skipped| &*skipped.reason).collect();
    assert_eq!(reasons.len(), 1);
    assert!(reasons[0].starts_with("moov/trak[257] at byte "), "{reasons:?}");
    assert!(reasons[0].ends_with("found 257 tracks, expected at most 256"), "{reasons:?}");
}
