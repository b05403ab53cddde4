use crate::{
    Codec, Edit, Movie, Sample, TrackKind,
    error::MediaError,
    fixture::{AVC, HEVC, hex},
    index::indexer::index_bytes,
};
use proptest::prelude::*;

/// A tag with the size that follows it.
fn tag(kind: u8, time: u32, body: &[u8]) -> Vec<u8> {
    let [upper, low @ ..] = time.to_be_bytes();
    let size = (body.len() as u32).to_be_bytes();
    let whole = (body.len() as u32 + 11).to_be_bytes();
    [&[kind][..], &size[1..], &low, &[upper, 0, 0, 0], body, &whole].concat()
}

fn picture(time: u32, composition: u8, is_key: bool, size: usize) -> Vec<u8> {
    let head = [if is_key { 0x17 } else { 0x27 }, 1, 0, 0, composition];
    tag(9, time, &[&head[..], &vec![0x5a; size]].concat())
}

fn sound(time: u32, size: usize) -> Vec<u8> {
    tag(8, time, &[&[0xaf, 1][..], &vec![0xa5; size]].concat())
}

fn file(tags: &[Vec<u8>]) -> Vec<u8> {
    [&b"FLV\x01\x05\0\0\0\x09\0\0\0\0"[..], &tags.concat()].concat()
}

/// The body of a configuration box in a sample entry.
fn record(entry: &str, kind: &[u8; 4]) -> Vec<u8> {
    let entry = hex(entry);
    let at = entry.windows(4).position(|window| window == kind).unwrap();
    let size = u32::from_be_bytes(*entry[at - 4..].first_chunk().unwrap()) as usize;
    entry[at + 4..at - 4 + size].to_vec()
}

fn avc() -> Vec<u8> {
    tag(9, 0, &[&b"\x17\0\0\0\0"[..], &record(AVC, b"avcC")].concat())
}

fn aac() -> Vec<u8> {
    tag(8, 0, b"\xaf\0\x11\x90")
}

fn tracks(movie: &Movie) -> Vec<(u32, &str)> {
    movie.tracks.iter().map(|track| (track.id, track.codec.name())).collect()
}

fn reasons(error: MediaError) -> String {
    match error {
        MediaError::NoPlayableTrack { found, .. } => found.join("; "),
        error => panic!("{error}"),
    }
}

#[test]
fn pictures_and_sound_are_ranges_with_their_times() {
    let mut tags = vec![tag(18, 0, &[0; 300]), avc(), aac(), picture(0, 80, true, 1000), sound(10, 100)];
    tags.extend([picture(40, 160, false, 30), sound(31, 101), picture(80, 40, false, 20), sound(52, 102)]);
    let object = file(&tags);
    let movie = index_bytes(&object).unwrap();
    assert_eq!(tracks(&movie), [(1, "H.264"), (2, "AAC")]);
    let pictures: Vec<Sample> = movie.tracks[0].samples.iter().collect();
    let times: Vec<_> = pictures.iter().map(|s| (s.dts, s.pts(), s.duration, s.sync)).collect();
    assert_eq!(times, [(0, 80, 40, true), (40, 200, 40, false), (80, 120, 40, false)]);
    let sizes: Vec<_> = pictures.iter().map(|s| s.range.len()).collect();
    assert_eq!(sizes, [1000, 30, 20]);
    assert!(pictures.iter().all(|s| object[s.range.start as usize..s.range.end as usize].iter().all(|b| *b == 0x5a)));
    let heard: Vec<_> = movie.tracks[1].samples.iter().map(|s| (s.dts, s.duration, s.range.len())).collect();
    assert_eq!(heard, [(480, 1024, 100), (1504, 1024, 101), (2528, 1024, 102)], "48 kHz, without gaps");
    assert_eq!(movie.tracks[1].edits, [Edit { duration: 0, media_time: Some(480) }]);
    let waits = Edit { duration: 70 * 90, media_time: None };
    assert_eq!(movie.tracks[0].edits, [waits, Edit { duration: 0, media_time: Some(80) }]);
    assert!(!movie.cut_short && movie.skipped.is_empty());
}

#[test]
fn what_can_not_be_decoded_is_left_out() {
    let tags = [picture(0, 0, true, 9), avc(), picture(40, 0, false, 9), picture(80, 0, true, 9), sound(0, 5)];
    let movie = index_bytes(&file(&tags)).unwrap();
    assert_eq!(movie.tracks[0].samples.iter().map(|s| s.dts).collect::<Vec<_>>(), [80]);
    assert!(movie.skipped[0].reason.contains("no frames of AAC"), "{:?}", movie.skipped);
}

#[test]
fn other_codecs_are_named() {
    for (tags, words) in [
        (vec![tag(9, 0, b"\x14vp6")], "On2 VP6 pictures"),
        (vec![tag(9, 0, b"\x12flv")], "Sorenson H.263"),
        (vec![tag(8, 0, b"\x62nelly")], "Nellymoser"),
        (vec![tag(8, 0, b"\xb2speex")], "Speex"),
        (vec![tag(9, 0, b"\x90vvc1record")], "vvc1"),
        (vec![tag(0x29, 0, b"\x17\x01")], "encrypted"),
    ] {
        let reasons = reasons(index_bytes(&file(&tags)).unwrap_err());
        assert!(reasons.contains(words), "{reasons}");
    }
    let movie = index_bytes(&file(&[tag(9, 0, b"\x14vp6"), aac(), sound(0, 9)])).unwrap();
    assert_eq!((tracks(&movie), movie.skipped.len()), (vec![(2, "AAC")], 1));
}

#[test]
fn an_invalid_configuration_does_not_end_a_track() {
    let movie = index_bytes(&file(&[tag(8, 0, b"\xaf\0"), aac(), sound(0, 9), tag(8, 9, b"\xb2speex"), sound(21, 9)]));
    let movie = movie.unwrap();
    assert_eq!((movie.tracks[0].samples.len(), movie.skipped.len()), (2, 1));
    let reasons = reasons(index_bytes(&file(&[tag(9, 0, b"\x17\0\0\0\0\x02"), picture(0, 0, true, 9)])).unwrap_err());
    assert!(!reasons.is_empty());
}

#[test]
fn enhanced_pictures_and_mp3() {
    let hevc = tag(9, 0, &[&b"\x90hvc1"[..], &record(HEVC, b"hvcC")].concat());
    let key = tag(9, 40, b"\x91hvc1\0\0\x28key");
    let frame = [&[0xff, 0xfb, 0x90, 0x04][..], &[0; 413]].concat();
    let two = [&[0x2f][..], &frame, &frame].concat();
    let movie = index_bytes(&file(&[hevc, key, tag(8, 0, &two), tag(8, 52, &two[..418])])).unwrap();
    assert_eq!(tracks(&movie), [(1, "HEVC"), (2, "MP3")]);
    assert!(matches!(movie.tracks[0].kind, TrackKind::Video { width: 320, height: 180, .. }));
    let heard: Vec<_> = movie.tracks[1].samples.iter().map(|s| (s.dts, s.range.len())).collect();
    assert_eq!(heard, [(0, 417), (1152, 417), (2304, 417)]);
    assert_eq!(movie.tracks[0].samples.get(0).unwrap().pts(), 80);
}

#[test]
fn captions_are_found_in_pictures_that_are_read() {
    let picture = |time: u32, pair: [u8; 2]| {
        let head =
            [0x17, 1, 0, 0, 0, 0, 0, 0, 18, 6, 4, 14, 0xb5, 0, 0x31, b'G', b'A', b'9', b'4', 3, 0xc1, 0xff, 0xfc];
        tag(9, time, &[&head[..], &pair, &[0xff, 0x80, 0, 0, 0, 2, 0x65, 0x88]].concat())
    };
    let found = |pairs: [[u8; 2]; 2]| {
        let pictures = pairs.into_iter().zip([0, 40]).map(|(pair, time)| picture(time, pair));
        let movie = index_bytes(&file(&[avc()].into_iter().chain(pictures).collect::<Vec<_>>())).unwrap();
        movie.tracks[0].captions.map(|all| all.iter().map(|channel| channel.to_string()).collect::<Vec<_>>())
    };
    assert_eq!(found([[0x80, 0x80], [0x94, 0x20]]), Some(vec!["CC1".to_owned()]));
    assert_eq!(found([[0x1c, 0x25], [0x94, 0x20]]), Some(vec!["CC1".to_owned(), "CC2".to_owned()]));
    // Some pictures may not have been read: it is not known that there are none.
    assert_eq!(found([[0x80, 0x80]; 2]), None);
}

#[test]
fn other_parameter_sets_are_described() {
    let mut other = record(AVC, b"avcC");
    // The picture parameter set gets another byte at its end.
    let last = other.len() - 5;
    other[last] ^= 0x10;
    let change = tag(9, 80, &[&b"\x17\0\0\0\0"[..], &other].concat());
    let movie = index_bytes(&file(&[avc(), picture(0, 0, true, 9), avc(), change, picture(80, 0, true, 9)])).unwrap();
    let track = &movie.tracks[0];
    let descriptions = track.descriptions.as_ref().unwrap();
    assert_eq!((descriptions.entries().len(), descriptions.place(0), descriptions.place(1)), (2, 0, 1));
    // A configuration of sound that needs another decoder.
    let tags = [aac(), sound(0, 9), tag(8, 21, b"\xaf\0\x12\x10"), sound(21, 9), aac(), sound(42, 9)];
    let movie = index_bytes(&file(&tags)).unwrap();
    assert_eq!(movie.tracks[0].samples.len(), 2);
    assert!(movie.skipped[0].reason.contains("1 samples of sample entry 2"), "{:?}", movie.skipped);
}

#[test]
fn damaged_places_are_passed() {
    let tags: Vec<Vec<u8>> = (0..50).map(|number| sound(number * 21, 100)).collect();
    let whole = file(&[vec![aac()], tags].concat());
    let junk = [[9; 30], [8; 30]].concat();
    let damaged = [&whole[..1000], &junk, &whole[1000..]].concat();
    let movie = index_bytes(&damaged).unwrap();
    assert!((48..=50).contains(&movie.tracks[0].samples.len()), "{}", movie.tracks[0].samples.len());
    let cut = index_bytes(&whole[..2000]).unwrap();
    assert!(cut.cut_short && cut.tracks[0].samples.len() == 16);
}

#[test]
fn headers_that_claim_too_much_are_refused() {
    let mut object = file(&[aac(), sound(0, 9)]);
    object[5..9].copy_from_slice(&u32::MAX.to_be_bytes());
    assert!(matches!(index_bytes(&object), Err(MediaError::Invalid { .. })));
    assert!(reasons(index_bytes(&file(&[])).unwrap_err()).is_empty());
    assert!(index_bytes(b"FLV\x01").is_err());
}

proptest! {
    #[test]
    fn damaged_files_give_ranges_within_them(
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut: prop::sample::Index,
    ) {
        let mut tags = vec![avc(), aac()];
        for number in 0..20 {
            tags.extend([picture(number * 40, 80, number % 5 == 0, 300), sound(number * 40, 60), sound(number * 40 + 20, 61)]);
        }
        let mut object = file(&tags);
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
                prop_assert!(!matches!(track.codec, Codec::Tx3g));
            }
        }
    }
}
