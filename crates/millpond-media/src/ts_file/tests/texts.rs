//! Teletext pages become tracks of WebVTT.

use super::*;
use crate::{
    movie::{TrackKind, purpose::Purpose},
    teletext::make::{field, header, row},
};

const TEXT: u16 = 0x102;
/// Subtitles in German on page 150, and for people who are deaf in French on page 888.
const DESCRIPTOR: &[u8] = b"\x56\x0adeu\x11\x50fra\x28\x88";

/// A film of some groups of pictures with teletext: 0.2 s each. Texts are shown at times, and pages are cleared at others.
fn film(groups: u64, texts: &[(u64, u16, &str)]) -> File {
    let mut mux = Mux::default();
    mux.association(0, &[(1, 0x1000)]);
    mux.map(0x1000, 1, 0, &[(0x1b, PICTURES, &[]), (0x06, TEXT, DESCRIPTOR)]);
    let mut file = File { mux, fill: 0 };
    for group in 0..groups {
        let time = 90_000 + group * 5 * STEP;
        file.pictures(SPS, time);
        for (at, page, text) in texts.iter().filter(|(at, ..)| (time..time + 5 * STEP).contains(at)) {
            file.text(Some(*at), *page, text);
        }
    }
    file
}

impl File {
    /// Appends a page with a row of text, or without.
    fn text(&mut self, at: Option<u64>, page: u16, text: &str) {
        let mut units = vec![header(page, &[4, 6])];
        if !text.is_empty() {
            units.push(row(page >> 8, 22, format!("\x0b\x0b{text}\x0a\x0a").as_bytes()));
        }
        units.push(header(page | 0xff, &[]));
        self.mux.private(TEXT, at, &field(&units));
    }
}

/// The samples of a track: times, and the text in each.
fn texts(found: &Scanned, track: usize) -> Vec<(i64, u32, String)> {
    let text = |range: ByteRange| {
        let bytes = &found.extracted[range.start as usize..range.end as usize];
        let payload = bytes.windows(4).position(|four| four == b"payl");
        payload.map_or_else(|| "-".to_owned(), |place| String::from_utf8(bytes[place + 4..].to_vec()).unwrap())
    };
    found.movie.tracks[track].samples.iter().map(|sample| (sample.dts, sample.duration, text(sample.range))).collect()
}

fn list(all: &[(i64, u32, &str)]) -> Vec<(i64, u32, String)> {
    all.iter().map(|(at, lasts, text)| (*at, *lasts, (*text).to_owned())).collect()
}

#[test]
fn pages_are_tracks_of_text() {
    let shown = [(90_000, 0x150, "one"), (100_800, 0x888, "un"), (118_800, 0x150, ""), (129_600, 0x150, "two")];
    let object = film(6, &shown).mux.bytes;
    let found = scanned(&object).unwrap();
    let tracks = &found.movie.tracks;
    assert_eq!(tracks.len(), 3);
    assert!(tracks[1..].iter().all(|track| track.kind == TrackKind::Text && matches!(track.codec, Codec::Wvtt(_))));
    let facts = |track: usize| (tracks[track].language.as_str(), tracks[track].purposes.has(Purpose::Captions));
    assert_eq!((facts(1), facts(2)), (("deu", false), ("fra", true)));
    assert!(tracks[1].id != tracks[2].id);
    // The first picture is decoded at 86,400, and presented at 90,000: time 0.
    let expected = [(0, 28_800, "one"), (28_800, 10_800, "-"), (39_600, 68_400, "two")];
    assert_eq!(texts(&found, 1), list(&expected));
    assert_eq!(texts(&found, 2), list(&[(0, 10_800, "-"), (10_800, 97_200, "un")]));
    assert!(found.movie.skipped.is_empty(), "{:?}", found.movie.skipped);
    assert_extracts(&object, &found);
    // The index alone has the texts.
    let extraction = found.movie.extraction.as_deref().unwrap();
    let ranges = found.movie.tracks[1].samples.iter().map(|sample| sample.range);
    assert!(ranges.into_iter().all(|range| extraction.source(range).unwrap().is_empty()));
}

#[test]
fn teletext_without_timestamps_has_those_of_the_clock() {
    let mut file = film(1, &[]);
    for group in 1..4 {
        let time = 90_000 + group * 5 * STEP;
        file.pictures(SPS, time);
        file.mux.clock(PICTURES, time, false);
        // No timestamp, or one that is far from the clock.
        file.text((group == 2).then_some(5_000_000), 0x150, &format!("text {group}"));
    }
    let found = scanned(&file.mux.bytes).unwrap();
    let expected =
        [(0, 18_000, "-"), (18_000, 18_000, "text 1"), (36_000, 18_000, "text 2"), (54_000, 18_000, "text 3")];
    assert_eq!(texts(&found, 1), list(&expected));
}

#[test]
fn texts_follow_jumps_of_the_timestamps() {
    let mut file = film(2, &[(90_000, 0x150, "one"), (120_600, 0x150, "two")]);
    // Another recording: its first picture is presented at once.
    file.pictures(SPS, 9_000_000);
    file.text(Some(9_007_200), 0x150, "three");
    file.pictures(SPS, 9_000_000 + 5 * STEP);
    let found = scanned(&file.mux.bytes).unwrap();
    let shown = texts(&found, 1);
    let starts: Vec<_> = shown.iter().map(|(at, _, text)| (*at, text.as_str())).collect();
    assert_eq!(starts, [(0, "one"), (30_600, "two"), (36_000 + 7200, "three")], "{shown:?}");
    assert_eq!(found.movie.extraction.as_deref().unwrap().zero(), 90_000);
}

#[test]
fn pages_without_text_are_named() {
    let mut file = film(2, &[(90_000, 0x150, "one")]);
    file.mux.map(0x1000, 1, 1, &[(0x1b, PICTURES, &[]), (0x06, TEXT, DESCRIPTOR), (0x06, 0x110, &[0x59, 0])]);
    let found = scanned(&file.mux.bytes).unwrap();
    let reasons: Vec<_> = found.movie.skipped.iter().map(|skipped| skipped.reason.as_str()).collect();
    let expected = [
        "PID 0x0110: the stream at byte 0: DVB subtitles, which are pictures of text, is not supported",
        "PID 0x0102: teletext page 888: no text in the whole file",
    ];
    assert_eq!(reasons, expected);
    assert_eq!(found.movie.tracks.len(), 3, "players may have its name");
}

#[test]
fn teletext_goes_on_with_another_pid() {
    let mut file = film(2, &[(90_000, 0x150, "one")]);
    file.mux.map(0x1000, 1, 1, &[(0x1b, PICTURES, &[]), (0x06, 0x1f2, DESCRIPTOR)]);
    let units = [header(0x150, &[4, 6]), row(1, 22, b"\x0b\x0btwo"), header(0x1ff, &[])];
    file.mux.private(0x1f2, Some(118_800), &field(&units));
    file.pictures(SPS, 126_000);
    let found = scanned(&file.mux.bytes).unwrap();
    assert_eq!(found.movie.tracks.len(), 3);
    let shown: Vec<_> = texts(&found, 1).into_iter().map(|(_, _, text)| text).collect();
    assert_eq!(shown, ["one", "two"]);
}

#[test]
fn each_state_of_a_scan_begins_the_texts() {
    let texts: Vec<(u64, u16, &str)> =
        (0..40).map(|n| (90_000 + n * 45_000, 0x150, ["a", "", "b"][n as usize % 3])).collect();
    // 30 s: the first texts are certain when no more can arrive.
    let object = film(150, &texts).mux.bytes;
    let counts = so_far::assert_begins(&object);
    let whole = scanned(&object).unwrap().movie;
    assert_eq!(counts.len(), 3);
    assert!(counts[1] > 30 && counts[1] <= whole.tracks[1].samples.len(), "{counts:?}");
    assert_eq!(counts[2], 1, "an empty page");
}
