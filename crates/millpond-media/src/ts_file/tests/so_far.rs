//! What a scan has read so far is the beginning of the finished movie.

use super::*;
use crate::movie::sample_table::Sample;

/// Bytes that are pushed together.
const PIECE: usize = 188 * 3;

/// Returns the tracks of each state of a scan that has any, and the finished scan. The programme is known from the beginning.
fn states(object: &[u8]) -> (Vec<Movie>, Scanned) {
    let (form, start) = find_packets(object, object.len() as u64).expect("packets");
    let bytes = Bytes::copy_from_slice(&object[start as usize..]);
    let choice = Survey::of(form, start, std::slice::from_ref(&bytes)).choose().unwrap();
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
fn assert_begins(object: &[u8]) -> Vec<u32> {
    let (states, whole) = states(object);
    assert!(states.len() > 3, "{} states", states.len());
    for state in &states {
        assert_eq!(state.tracks.len(), whole.movie.tracks.len());
        for (now, later) in state.tracks.iter().zip(&whole.movie.tracks) {
            assert_eq!((now.id, &now.codec, &now.sample_entry), (later.id, &later.codec, &later.sample_entry));
            assert_eq!((now.timescale, &now.edits), (later.timescale, &later.edits));
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

#[test]
fn a_stream_that_has_not_begun_is_awaited() {
    let mut file = File::new();
    for group in 0..6 {
        file.pictures(SPS, 90_000 + group * 5 * STEP);
    }
    let (states, whole) = states(&file.mux.bytes);
    assert_eq!((states.len(), whole.movie.tracks.len()), (0, 1));
}
