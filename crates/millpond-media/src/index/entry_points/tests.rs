use super::*;
use crate::{
    codec::orientation::Orientation,
    fixture::{AAC, AVC, movie, track},
};

const IDR: &[u8] = &[0x65, 0x88];
const OTHER: &[u8] = &[0x41, 0x9a];
/// A recovery point message before a picture that is no IDR.
const RECOVERY: &[u8] = &[6, 6, 1, 0x84, 0x80];

/// Kind of picture in the media of a sample, and the sample's sync flag.
#[derive(Clone, Copy)]
struct Picture {
    units: &'static [&'static [u8]],
    size: u32,
    flagged: bool,
}

const KEY: Picture = Picture { units: &[IDR], size: 900, flagged: true };
const INTER: Picture = Picture { units: &[OTHER], size: 100, flagged: true };

/// Returns a movie of pictures of 40 ms, and the object that holds them.
fn made(pictures: impl IntoIterator<Item = Picture>) -> (Movie, Vec<u8>) {
    let mut object = Vec::new();
    let mut table = SampleTable::builder();
    for picture in pictures {
        let start = object.len();
        for unit in picture.units {
            object.extend((unit.len() as u32).to_be_bytes());
            object.extend_from_slice(unit);
        }
        object.resize(start + picture.size as usize, 0);
        table.push(start as u64, picture.size, 40, 0, picture.flagged);
    }
    (movie(vec![track(1, AVC, Vec::new(), table.finish())]), object)
}

/// Returns the sync samples after the search, and the number of ranges read.
fn searched((movie, object): (Movie, Vec<u8>)) -> (Vec<u32>, usize) {
    let mut search = EntrySearch::of(movie, Work::unlimited()).unwrap();
    let (mut arrived, mut reads) = (Arrived::default(), 0);
    loop {
        let wanted = search.step(&mut arrived).unwrap();
        if wanted.is_empty() {
            let movie = search.finish().unwrap();
            return (movie.tracks[0].samples.sync_samples().collect(), reads);
        }
        reads += wanted.len();
        for range in wanted {
            arrived.put(range, Bytes::copy_from_slice(&object[range.start as usize..range.end as usize]));
        }
    }
}

#[test]
fn right_flags_are_not_read() {
    let flagged = (0..500).map(|i| if i % 25 == 0 { KEY } else { Picture { flagged: false, ..INTER } });
    assert_eq!(searched(made(flagged)), ((0..500).step_by(25).collect(), 0));
}

#[test]
fn a_track_of_key_frames_alone_stays_so() {
    let (sync, reads) = searched(made((0..5000).map(|_| KEY)));
    assert_eq!((sync.len(), reads), (5000, 32));
}

#[test]
fn flags_on_all_samples_give_way_to_the_media() {
    for group in [2, 12, 25, 250, 999] {
        let (sync, reads) = searched(made((0..3000).map(|i| if i % group == 0 { KEY } else { INTER })));
        assert!(sync.iter().all(|index| (*index as usize).is_multiple_of(group)), "groups of {group}: {sync:?}");
        // With short groups, one key frame per second is enough.
        let expected = if group < 25 { 120 } else { 3000_usize.div_ceil(group) };
        assert_eq!(sync.len(), expected, "groups of {group}: {sync:?}");
        assert!(reads <= 32 + 4 * 120, "groups of {group}: {reads} reads");
    }
}

#[test]
fn recovery_points_count() {
    let open = Picture { units: &[&[9, 0xf0], RECOVERY, OTHER], ..KEY };
    let (sync, _) = searched(made((0..500).map(|i| if i % 50 == 0 { open } else { INTER })));
    assert_eq!(sync, (0..500).step_by(50).collect::<Vec<u32>>());
}

#[test]
fn flags_on_fragments_that_begin_anywhere_are_found_out() {
    // A flag every second, a key frame every three seconds.
    let picture = |i| match (i % 25, i % 75) {
        (_, 0) => KEY,
        (0, _) => INTER,
        _ => Picture { flagged: false, size: 150, ..INTER },
    };
    let (sync, _) = searched(made((0..1500).map(picture)));
    assert_eq!(sync, (0..1500).step_by(75).collect::<Vec<u32>>());
}

#[test]
fn a_first_key_frame_without_a_flag_gets_one() {
    let unflagged = |i| Picture { flagged: i % 25 == 0 && i > 0, ..if i % 25 == 0 { KEY } else { INTER } };
    assert_eq!(searched(made((0..100).map(unflagged))), (vec![0, 25, 50, 75], 1));
    let inter = |i| if i == 0 { Picture { flagged: false, ..INTER } } else { unflagged(i) };
    assert_eq!(searched(made((0..100).map(inter))), (vec![25, 50, 75], 1));
}

#[test]
fn flags_stay_where_nothing_better_is_found() {
    let (sync, reads) = searched(made((0..1000).map(|_| INTER)));
    assert_eq!(sync.len(), 1000);
    assert!(reads <= 32 + 4 * 40, "{reads}");
}

#[test]
fn reads_of_long_tracks_are_bounded() {
    let two_hours = (0..180_000).map(|_| Picture { units: &[OTHER], size: 8, flagged: true });
    let (_, reads) = searched(made(two_hours));
    assert!(reads <= MOST_LOOKS_AT_SAMPLES, "{reads}");
    assert!(reads > MOST_LOOKS_AT_SAMPLES / 2, "{reads}");
}

#[test]
fn other_tracks_and_other_objects_are_not_read() {
    let (mut elsewhere, object) = made((0..100).map(|_| INTER));
    elsewhere.external_media = Some("media.mp4".to_owned());
    assert_eq!(searched((elsewhere, object)).1, 0);
    let (pictures, object) = made((0..100).map(|_| INTER));
    let samples = pictures.tracks.into_iter().next().unwrap().samples;
    assert_eq!(searched((movie(vec![track(2, AAC, Vec::new(), samples)]), object)).1, 0);
}

#[test]
fn a_size_that_only_the_samples_tell_is_taken() {
    let set: &'static [u8] =
        Box::leak(crate::fixture::hex("6764000cacd941419f9f011000000300100000030320f1429960").into_boxed_slice());
    let units: &'static [&'static [u8]] = Box::leak(vec![set, IDR].into_boxed_slice());
    let pictures = (0..50).map(|i| Picture { units: if i == 0 { units } else { &[OTHER] }, flagged: i == 0, ..KEY });
    let (mut movie, object) = made(pictures);
    movie.tracks[0].kind =
        TrackKind::Video { width: 0, height: 0, orientation: Orientation::rotated(90), pixel_aspect: (1, 1) };
    movie.tracks[0].sample_entry[32..36].fill(0);
    let mut search = EntrySearch::of(movie, Work::unlimited()).unwrap();
    let mut arrived = Arrived::default();
    let wanted = search.step(&mut arrived).unwrap();
    assert_eq!(wanted.len(), 1);
    arrived.put(wanted[0], Bytes::copy_from_slice(&object[..512]));
    assert_eq!(search.step(&mut arrived).unwrap(), []);
    let track = search.finish().unwrap().tracks.remove(0);
    assert_eq!(
        track.kind,
        TrackKind::Video { width: 320, height: 180, orientation: Orientation::rotated(90), pixel_aspect: (1, 1) }
    );
    assert_eq!(track.sample_entry[32..36], [1, 64, 0, 180]);
}
