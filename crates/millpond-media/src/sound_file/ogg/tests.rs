use super::page::tests::page;
use crate::{Edit, MediaError, Movie, Sample, index::indexer::index_bytes, sound_file::tests::flac_frames};
use proptest::prelude::*;

const FIRST: u8 = 2;
const LAST: u8 = 4;
/// A packet of 20 ms.
const PACKET: [u8; 40] = [0xfc; 40];

fn opus_head(serial: u32) -> Vec<u8> {
    page(FIRST, 0, serial, &[19], b"OpusHead\x01\x02\x38\x01\x80\xbb\0\0\0\0\0")
}

fn opus_tags(serial: u32) -> Vec<u8> {
    page(0, 0, serial, &[16], b"OpusTags\0\0\0\0\0\0\0\0")
}

/// A page of `count` packets.
fn packets(flags: u8, granule: i64, count: usize) -> Vec<u8> {
    page(flags, granule, 1, &vec![40; count], &PACKET.repeat(count))
}

fn movie(pages: &[Vec<u8>]) -> Movie {
    index_bytes(&pages.concat()).unwrap()
}

fn times(movie: &Movie) -> Vec<i64> {
    movie.tracks[0].samples.iter().map(|s| s.dts).collect()
}

fn reasons(pages: &[Vec<u8>]) -> String {
    match index_bytes(&pages.concat()).unwrap_err() {
        MediaError::NoPlayableTrack { found, .. } => found.join("; "),
        error => panic!("{error}"),
    }
}

#[test]
fn packets_are_samples_and_ends_are_trimmed() {
    let pages = [opus_head(1), opus_tags(1), packets(0, 2880, 3), packets(LAST, 4500, 2)];
    let movie = movie(&pages);
    assert_eq!(times(&movie), [0, 960, 1920, 2880, 3840]);
    let edit = Edit { duration: 4500 - 312, media_time: Some(312) };
    assert_eq!((movie.tracks[0].codec.name(), &movie.tracks[0].edits[..]), ("Opus", &[edit][..]));
    let first = movie.tracks[0].samples.get(0).unwrap();
    assert_eq!((first.range.start as usize, first.range.len()), (pages[..2].concat().len() + 30, 40));
    assert!(movie.skipped.is_empty() && !movie.cut_short);
}

#[test]
fn granules_begin_anywhere_and_tell_holes() {
    let pages = [opus_head(1), opus_tags(1), packets(0, 100_000, 2), packets(0, 103_840, 2), packets(0, -1, 1)];
    assert_eq!(times(&movie(&pages)), [0, 960, 3840, 4800, 5760]);
}

#[test]
fn packets_over_pages_have_no_range() {
    let long = page(0, -1, 1, &[255, 255], &[0xfc; 510]);
    let rest = page(1, 960, 1, &[9], &[0; 9]);
    let refused = reasons(&[opus_head(1), opus_tags(1), packets(0, 960, 1), long, rest]);
    assert!(refused.contains("Opus in packets that continue over pages"), "{refused}");
    // Headers may be as long as they like.
    let tags = page(0, -1, 1, &[255; 255], &[&b"OpusTags"[..], &[0; 255 * 255 - 8]].concat());
    let more = page(1, 0, 1, &[9], &[0; 9]);
    assert_eq!(times(&movie(&[opus_head(1), tags, more, packets(LAST, 960, 1)])), [0]);
}

#[test]
fn flac_is_told_by_its_frames() {
    let info = [&b"\x7fFLAC\x01\0\0\x01"[..], &crate::sound_file::tests::flac_head()[..42]].concat();
    let head = page(FIRST, 0, 1, &[info.len() as u8], &info);
    let comment = page(0, 0, 1, &[9], b"\x84\0\0\x05abcde");
    let frames = flac_frames(2);
    let table = [frames[0].len() as u8, frames[1].len() as u8];
    let movie = movie(&[head, comment, page(LAST, 8192, 1, &table, &frames.concat())]);
    assert_eq!((movie.tracks[0].codec.name(), times(&movie), movie.tracks[0].edits.len()), ("FLAC", vec![0, 4096], 0));
}

#[test]
fn other_streams_and_links_are_named() {
    let vorbis = page(FIRST, 0, 2, &[30], &[&b"\x01vorbis"[..], &[0; 23]].concat());
    assert!(reasons(&[vorbis.clone(), page(0, 0, 2, &[1], &[0])]).contains("Vorbis"));
    let skeleton = page(FIRST, 0, 3, &[8], b"fishead\0");
    let link = [opus_head(1), opus_tags(1), packets(LAST, 1920, 2)].concat();
    let second = [opus_head(9), opus_tags(9)].concat();
    let movie = movie(&[vorbis, skeleton, link.clone(), second]);
    assert_eq!((times(&movie), movie.tracks.len(), movie.tracks[0].id), (vec![0, 960], 1, 3));
    let skipped: Vec<_> = movie.skipped.iter().map(|track| &track.reason[..]).collect();
    assert!(skipped[0].contains("Vorbis") && skipped[1].contains("chained"), "{skipped:?}");
    let repeated = [opus_head(1), opus_tags(1), link].concat();
    assert_eq!(index_bytes(&repeated).unwrap().tracks[0].samples.len(), 2, "headers twice");
}

#[test]
fn damaged_places_are_passed() {
    let parts = [opus_head(1), opus_tags(1), packets(0, 1920, 2), vec![b'O'; 300], packets(LAST, 3840, 2)];
    assert_eq!(times(&movie(&parts)), [0, 960, 1920, 2880]);
    let cut = parts.concat();
    let movie = index_bytes(&cut[..cut.len() - 10]).unwrap();
    assert!(movie.cut_short && times(&movie) == [0, 960]);
}

proptest! {
    #[test]
    fn damaged_files_give_ranges_within_them(
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut: prop::sample::Index,
    ) {
        let mut object = [opus_head(1), opus_tags(1), packets(0, 1920, 2), packets(0, 9600, 8)].concat();
        for (place, value) in places {
            let place = place.index(object.len());
            object[place] = value;
        }
        object.truncate(cut.index(object.len()) + 1);
        if let Ok(movie) = index_bytes(&object) {
            for track in &movie.tracks {
                let samples: Vec<Sample> = track.samples.iter().collect();
                prop_assert!(samples.iter().all(|s| s.range.end <= object.len() as u64 && !s.range.is_empty()));
                prop_assert!(samples.windows(2).all(|pair| pair[0].dts <= pair[1].dts));
            }
        }
    }
}
