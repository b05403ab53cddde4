//! Files with several programmes.

use super::{File, PICTURES, SOUND, SPS, STEP, adts};
use crate::{FileProgramme, Indexer, MediaError, Movie, Step, ts::mux::Mux};
use bytes::Bytes;

/// PIDs of the third programme.
const OTHER_PICTURES: u16 = 0x400;
const OTHER_SOUND: u16 = 0x401;

/// A multiplex: radio, a programme of pictures, another one, and one without a map.
fn multiplex() -> Vec<u8> {
    let mut mux = Mux::default();
    mux.services(&[(7, b"Radio"), (8, b"S\xc8udwest"), (9, b"\x15Drei")]);
    mux.association(0, &[(7, 0x1000), (8, 0x1001), (9, 0x1002), (10, 0x1003), (11, 0x1004)]);
    mux.map(0x1000, 7, 0, &[(0x0f, 0x201, &[])]);
    mux.map(0x1001, 8, 0, &[(0x1b, PICTURES, &[]), (0x0f, SOUND, &[]), (0x06, 0x301, &[0x56, 0])]);
    mux.map(0x1002, 9, 0, &[(0x1b, OTHER_PICTURES, &[]), (0x0f, OTHER_SOUND, &[]), (0x06, 0x402, &[0x59, 0])]);
    mux.map(0x1003, 10, 0, &[(0x02, 0x500, &[])]);
    let mut file = File { mux, fill: 0 };
    let sound: Vec<u8> = (0..10).flat_map(|fill| adts(fill, 40)).collect();
    file.mux.unit(0x201, Some(0), &sound);
    file.pictures(SPS, 90_000);
    file.sound(93_600);
    let pictures = super::picture(Some(SPS), 5, 300);
    for number in 0..3 {
        let time = 4_000_000 + number * STEP;
        file.mux.timed(OTHER_PICTURES, time, time, &pictures);
    }
    file.mux.unit(OTHER_SOUND, Some(4_000_000), &sound);
    file.mux.bytes
}

fn indexed(object: &[u8], programme: Option<u16>) -> Result<Movie, MediaError> {
    let mut indexer = Indexer::new(object.len() as u64).of_programme(programme);
    loop {
        match indexer.poll()? {
            Step::Done(movie) => return Ok(movie),
            Step::Need(ranges) => ranges.into_iter().for_each(|range| {
                indexer.supply(range, Bytes::copy_from_slice(&object[range.start as usize..range.end as usize]));
            }),
        }
    }
}

fn ids(movie: &Movie) -> Vec<(u32, u32)> {
    movie.tracks.iter().map(|track| (track.id, track.samples.len())).collect()
}

#[test]
fn each_programme_can_be_chosen() {
    let object = multiplex();
    let [pictures, sound] = [PICTURES, SOUND].map(u32::from);
    let [other_pictures, other_sound] = [OTHER_PICTURES, OTHER_SOUND].map(u32::from);
    assert_eq!(ids(&indexed(&object, None).unwrap()), [(pictures, 5), (sound, 10)], "the first one with pictures");
    assert_eq!(ids(&indexed(&object, Some(7)).unwrap()), [(0x201, 10)]);
    assert_eq!(ids(&indexed(&object, Some(8)).unwrap()), [(pictures, 5), (sound, 10)]);
    let third = indexed(&object, Some(9)).unwrap();
    assert_eq!(ids(&third), [(other_pictures, 3), (other_sound, 10)]);
    let reasons: Vec<_> = third.skipped.iter().map(|skipped| (skipped.id, &skipped.reason[..])).collect();
    let expected = [
        (0x1003, "programme 4 of 5, number 10: MPEG-2 video"),
        (0x1004, "programme 5 of 5, number 11: without a map"),
        (0x402, "PID 0x0402: the stream at byte 0: DVB subtitles, which are pictures of text, is not supported"),
    ];
    assert_eq!(reasons, expected, "programmes that can be chosen are not left out");
}

#[test]
fn all_programmes_are_listed_with_their_names() {
    let programme = |number, name: Option<&str>, streams: &str, is_chosen| FileProgramme {
        number,
        name: name.map(str::to_owned),
        streams: streams.to_owned(),
        is_playable: number < 10,
        is_chosen,
        is_default: number == 8,
    };
    for (wanted, chosen) in [(None, 8), (Some(9), 9)] {
        let movie = indexed(&multiplex(), wanted).unwrap();
        let expected = [
            programme(7, Some("Radio"), "AAC in ADTS", false),
            programme(8, Some("Südwest"), "H.264, AAC in ADTS, teletext", chosen == 8),
            programme(9, Some("Drei"), "H.264, AAC in ADTS, DVB subtitles", chosen == 9),
            programme(10, None, "MPEG-2 video", false),
            programme(11, None, "without a map", false),
        ];
        assert_eq!(movie.programmes, expected);
    }
}

#[test]
fn a_missing_programme_names_those_there_are() {
    let refused = |number| indexed(&multiplex(), Some(number)).unwrap_err().to_string();
    let there = "expected programme 7 (Radio), 8 (Südwest), 9 (Drei)";
    assert_eq!(refused(1), format!("the transport stream at byte 0: found no programme 1, {there}"));
    let Err(MediaError::NoProgramme { wanted: 1, programmes }) = indexed(&multiplex(), Some(1)) else { panic!() };
    assert_eq!(programmes.iter().map(|programme| programme.number).collect::<Vec<_>>(), [7, 8, 9, 10, 11]);
    let null = [&[0x47, 0x1f, 0xff, 0x10][..], &[0; 184]].concat().repeat(10);
    let error = indexed(&null, Some(3)).unwrap_err().to_string();
    assert!(error.contains("found no programme 3, expected a programme association table"), "{error}");
    assert_eq!(refused(10), format!("the transport stream at byte 0: found MPEG-2 video in programme 10, {there}"));
}
