//! Each state of a scan is the beginning of the finished movie.

use super::*;
use crate::movie::sample_table::Sample;

/// Bytes that are pushed together.
const PIECE: usize = 188 * 3;

/// Returns the tracks of each state of a scan that has any, and the finished scan. The programme is known from the beginning.
fn states(object: &[u8]) -> (Vec<Movie>, Scanned) {
    states_of(object, None)
}

/// Returns the states and the finished scan of a programme.
fn states_of(object: &[u8], programme: Option<u16>) -> (Vec<Movie>, Scanned) {
    let (form, start) = find_packets(object, object.len() as u64).expect("packets");
    let bytes = Bytes::copy_from_slice(&object[start as usize..]);
    let choice = Survey::of(form, start, std::slice::from_ref(&bytes)).choose(programme).unwrap();
    let mut scan = Scan::new(form, start, choice, Work::unlimited());
    let mut states = Vec::new();
    for piece in bytes.chunks(PIECE) {
        scan.push(piece).unwrap();
        states.extend(scan.so_far(object.len() as u64));
    }
    (states, scan.finish(object.len() as u64).unwrap())
}

/// Everything of a sample but its duration, which the next sample may change.
fn fixed(sample: Sample) -> (ByteRange, i64, i32, bool) {
    (sample.range, sample.dts, sample.composition, sample.sync)
}

/// Compares each state with the finished movie. Returns the number of samples of each track in the last state.
pub(super) fn assert_begins(object: &[u8]) -> Vec<u32> {
    let (states, whole) = states(object);
    assert!(states.len() > 3, "{} states", states.len());
    for state in &states {
        assert_eq!(state.tracks.len(), whole.movie.tracks.len());
        for (now, later) in state.tracks.iter().zip(&whole.movie.tracks) {
            assert_eq!((now.id, &now.codec, &now.sample_entry), (later.id, &later.codec, &later.sample_entry));
            assert_eq!((now.timescale, &now.edits), (later.timescale, &later.edits));
            assert_eq!((&now.language, now.enabled), (&later.language, later.enabled));
            assert!(now.samples.len() <= later.samples.len());
            for (now, later) in now.samples.iter().zip(&later.samples) {
                assert_eq!(fixed(now), fixed(later));
            }
        }
        let (Some(now), Some(later)) = (&state.extraction, &whole.movie.extraction) else { panic!("no extraction") };
        assert!(now.len() <= later.len());
        let range = ByteRange::new(0, now.len());
        let frames = extracted(object, now, range, 1000).unwrap();
        assert_eq!(frames, whole.extracted[..frames.len()]);
        assert_eq!(now.source(range).unwrap(), later.source(range).unwrap());
    }
    states.last().map_or_else(Vec::new, |last| last.tracks.iter().map(|track| track.samples.len()).collect())
}

fn film(groups: u64) -> File {
    let mut file = File::new();
    for group in 0..groups {
        let time = 90_000 + group * 5 * STEP;
        file.pictures(SPS, time);
        file.sound(time);
    }
    file
}

#[test]
fn each_state_of_a_scan_begins_the_movie() {
    let file = film(12);
    for object in [file.mux.bytes.clone(), file.in_form(4, 0), file.in_form(0, 16)] {
        let [pictures, sound] = assert_begins(&object)[..] else { panic!("other tracks") };
        assert!(pictures >= 55 && sound >= 100, "{pictures} pictures, {sound} frames of sound");
    }
}

#[test]
fn states_end_with_the_first_time_base() {
    let mut file = film(6);
    for group in 0..6 {
        let time = 9_000_000 + group * 5 * STEP;
        file.pictures(SPS, time);
        file.sound(time);
    }
    let [pictures, sound] = assert_begins(&file.mux.bytes)[..] else { panic!("other tracks") };
    assert_eq!((pictures, sound), (30, 60));
}

/// Groups of pictures with sound, before and behind groups of another size.
fn with_other_pictures(before: u64, other: u64, behind: u64) -> File {
    let mut file = File::new();
    for group in 0..before + other + behind {
        let time = 90_000 + group * 5 * STEP;
        let is_other = (before..before + other).contains(&group);
        file.pictures(if is_other { OTHER_SPS } else { SPS }, time);
        file.sound(time);
    }
    file
}

#[test]
fn tracks_of_states_end_with_their_first_kind() {
    let file = with_other_pictures(8, 6, 1);
    let [pictures, sound] = assert_begins(&file.mux.bytes)[..] else { panic!("other tracks") };
    assert_eq!(pictures, 40);
    assert!(sound >= 130, "{sound} frames of sound, which does not change");
    let movie = scanned(&file.mux.bytes).unwrap().movie;
    assert_eq!(movie.clips.len(), 3);
    assert!(!movie.extraction.unwrap().begins_otherwise());
}

#[test]
fn a_movie_tells_that_it_begins_otherwise() {
    // Most pictures are of the other size. The first pictures are a clip, or too few for a clip.
    for before in [6, 2] {
        let (states, whole) = states(&with_other_pictures(before, 20, 0).mux.bytes);
        let last = states.last().expect("a state");
        assert_eq!(u64::from(last.tracks[0].samples.len()), before * 5);
        assert!(!last.extraction.as_ref().unwrap().begins_otherwise());
        assert_ne!(last.tracks[0].kind, whole.movie.tracks[0].kind);
        assert!(whole.movie.extraction.unwrap().begins_otherwise());
    }
}

#[test]
fn states_go_on_with_other_pids() {
    let mut file = film(6);
    file.mux.map(0x1000, 1, 1, &[(0x1b, PICTURES + 16, &[]), (0x0f, SOUND + 16, b"\x0a\x04deu\0")]);
    let mut second = File::new();
    second.mux.bytes.clear();
    for group in 6..12 {
        let time = 90_000 + group * 5 * STEP;
        second.pictures(SPS, time);
        second.sound(time);
    }
    // The same packets with other PIDs.
    second.mux.bytes.chunks_mut(188).for_each(|packet| packet[2] += 16);
    let object = [file.mux.bytes, second.mux.bytes].concat();
    let [pictures, sound] = assert_begins(&object)[..] else { panic!("other tracks") };
    assert!(pictures >= 55 && sound >= 100, "{pictures} pictures, {sound} frames of sound");
}

#[test]
fn states_are_of_the_chosen_programme() {
    let mut file = File { mux: Mux::default(), fill: 0 };
    file.mux.association(0, &[(1, 0x1000), (2, 0x1001)]);
    file.mux.map(0x1000, 1, 0, &[(0x1b, PICTURES, &[])]);
    file.mux.map(0x1001, 2, 0, &[(0x0f, 0x401, &[])]);
    file.pictures(SPS, 90_000);
    for number in 0..30 {
        let sound: Vec<u8> = (0..10).flat_map(|fill| adts(fill, 40)).collect();
        file.mux.unit(0x401, Some(number * 10 * SOUND_STEP), &sound);
    }
    let (states, whole) = states_of(&file.mux.bytes, Some(2));
    let ids = |movie: &Movie| movie.tracks.iter().map(|track| track.id).collect::<Vec<_>>();
    assert!(!states.is_empty() && states.iter().all(|state| ids(state) == [0x401]));
    assert_eq!(ids(&whole.movie), [0x401]);
    assert!(states.iter().all(|state| state.programmes == whole.movie.programmes));
}

#[test]
fn a_stream_that_has_not_begun_is_awaited() {
    let mut file = File::new();
    for group in 0..6 {
        file.pictures(SPS, 90_000 + group * 5 * STEP);
    }
    let (states, whole) = states(&file.mux.bytes);
    assert_eq!((states.len(), whole.movie.tracks.len()), (0, 1));
}
