use super::*;
use crate::teletext::make;
use proptest::prelude::*;

const FRAME: i64 = 3600;

/// A decoder of page 888 in German and page 150.
fn decoder() -> TeletextDecoder {
    TeletextDecoder::of_descriptor(b"deu\x10\x88deu\x29\x50")
}

/// The changes as page, time and texts.
fn told(changes: &[TeletextChange]) -> Vec<(usize, i64, Vec<&str>)> {
    changes
        .iter()
        .map(|change| (change.page, change.at, change.cues.iter().map(|cue| cue.text.as_str()).collect()))
        .collect()
}

fn push(decoder: &mut TeletextDecoder, at: i64, units: &[Vec<u8>]) -> Vec<TeletextChange> {
    let mut out = Vec::new();
    decoder.push(&make::field(units), at, &mut out);
    out
}

/// A transmission of page 888 with a row of text, and a header that ends it.
fn page(text: &[u8]) -> Vec<Vec<u8>> {
    let row = [b"\x0b\x0b", text, b"\x0a\x0a"].concat();
    vec![make::header(0x888, &[4, 6, 14]), make::row(8, 22, &row), make::header(0x8ff, &[14])]
}

#[test]
fn changes_are_told_once() {
    let mut decoder = decoder();
    assert_eq!(told(&push(&mut decoder, 0, &page(b"gr}n"))), [(0, 0, vec!["grün"])]);
    assert!(push(&mut decoder, FRAME, &page(b"gr}n")).is_empty());
    assert_eq!(told(&push(&mut decoder, 2 * FRAME, &page(b"rot"))), [(0, 2 * FRAME, vec!["rot"])]);
    let clear = [make::header(0x888, &[4, 6]), make::header(0x8ff, &[])];
    assert_eq!(told(&push(&mut decoder, 3 * FRAME, &clear)), [(0, 3 * FRAME, vec![])]);
    assert!(push(&mut decoder, 4 * FRAME, &clear).is_empty());
}

#[test]
fn a_page_is_complete_with_the_next_header_of_its_magazine() {
    let mut decoder = decoder();
    let row = make::row(8, 22, b"\x0b\x0bone");
    assert!(push(&mut decoder, 0, &[make::header(0x888, &[4, 6]), row]).is_empty());
    // Parallel transmission: headers of other magazines end nothing.
    assert!(push(&mut decoder, FRAME, &[make::header(0x150, &[4, 6]), make::row(8, 23, b"\x0b\x0btwo")]).is_empty());
    let found = push(&mut decoder, 2 * FRAME, &[make::header(0x8ff, &[])]);
    assert_eq!(told(&found), [(0, 0, vec!["one\ntwo"])]);
    // Serial transmission: any header ends all pages.
    let units = [make::row(1, 20, b"\x0b\x0bthree"), make::header(0x2ff, &[11]), make::row(1, 21, b"\x0b\x0blost")];
    assert_eq!(told(&push(&mut decoder, 3 * FRAME, &units)), [(1, FRAME, vec!["three"])]);
}

#[test]
fn a_page_without_a_header_behind_it_is_complete_after_a_while() {
    let mut decoder = decoder();
    let units = &page(b"late")[..2];
    assert!(push(&mut decoder, 0, units).is_empty());
    let mut out = Vec::new();
    decoder.advance(COMPLETE - 1, &mut out);
    assert!(out.is_empty());
    decoder.advance(COMPLETE, &mut out);
    assert_eq!(told(&out), [(0, 0, vec!["late"])]);
}

#[test]
fn rows_stay_unless_the_page_is_erased() {
    let mut decoder = decoder();
    push(&mut decoder, 0, &page(b"one"));
    let more = [make::header(0x888, &[6]), make::row(8, 23, b"\x0b\x0btwo"), make::header(0x8ff, &[])];
    assert_eq!(told(&push(&mut decoder, FRAME, &more)), [(0, FRAME, vec!["one\ntwo"])]);
    assert_eq!(told(&push(&mut decoder, 2 * FRAME, &page(b"three"))), [(0, 2 * FRAME, vec!["three"])]);
}

#[test]
fn text_that_is_not_sent_again_leaves_the_screen() {
    let mut decoder = decoder();
    push(&mut decoder, 0, &page(b"one"));
    push(&mut decoder, LONGEST - 1, &page(b"one"));
    let mut out = Vec::new();
    decoder.advance(2 * LONGEST - 2, &mut out);
    assert!(out.is_empty(), "it was sent again");
    decoder.advance(3 * LONGEST, &mut out);
    assert_eq!(told(&out), [(0, 2 * LONGEST - 1, vec![])]);
}

#[test]
fn the_end_of_a_stream_clears_the_screen() {
    let mut decoder = decoder();
    push(&mut decoder, 0, &page(b"one")[..2]);
    let mut out = Vec::new();
    decoder.finish(FRAME, &mut out);
    assert_eq!(told(&out), [(0, 0, vec!["one"]), (0, FRAME, vec![])]);
    assert!(push(&mut decoder, 2 * FRAME, &[make::row(8, 22, b"\x0b\x0blost"), make::header(0x8ff, &[])]).is_empty());
}

#[test]
fn designations_of_magazines_and_languages_choose_the_letters() {
    let text = |descriptor: &[u8], before: Vec<Vec<u8>>| {
        let mut decoder = TeletextDecoder::of_descriptor(descriptor);
        let mut units = before;
        units.extend([make::header(0x888, &[4, 6, 12]), make::row(8, 22, b"\x0b\x0bPriwet"), make::header(0x8ff, &[])]);
        push(&mut decoder, 0, &units)[0].cues[0].text.clone()
    };
    assert_eq!(text(b"rus\x10\x88", vec![]), "Привет");
    assert_eq!(text(b"fra\x10\x88", vec![]), "Priwet");
    assert_eq!(text(b"fra\x10\x88", vec![make::triplets(8, 29, 0, &[(4 << 3 | 4) << 7])]), "Привет");
}

#[test]
fn pages_that_no_descriptor_announces_are_found() {
    let mut decoder = TeletextDecoder::of_descriptor(b"dan\x09\x00");
    let units = [
        make::header(0x100, &[4]),
        make::row(1, 1, b"\x0b\x0bno"),
        make::header(0x395, &[4, 6]),
        make::row(3, 22, b"\x0b\x0bja"),
    ];
    push(&mut decoder, 0, &units);
    let found = push(&mut decoder, FRAME, &[make::header(0x3ff, &[]), make::header(0x1ff, &[])]);
    assert_eq!(told(&found), [(0, 0, vec!["ja"])]);
    let pages: Vec<_> = decoder.pages().map(|page| (page.name(), page.language.clone())).collect();
    assert_eq!(pages, [("395".to_owned(), Some("dan".to_owned()))]);
    assert_eq!(TeletextDecoder::of_descriptor(b"dan\x11\x00").pages().len(), 1);
}

#[test]
fn lines_apart_are_cues_of_their_own() {
    let mut decoder = decoder();
    let units = [
        make::header(0x888, &[4, 6]),
        make::row(8, 2, b"          \x03\x0b\x0babove & <b>\x0a\x0a"),
        make::row(8, 20, b"\x0d\x0b\x0b- left\x0a\x0a"),
        make::row(8, 22, b"\x0d\x0b\x0b- and below\x0a\x0a"),
        make::header(0x8ff, &[]),
    ];
    let cues = push(&mut decoder, 0, &units).remove(0).cues;
    let cue = |settings: &str, text: &str| TeletextCue { settings: settings.to_owned(), text: text.to_owned() };
    let expected = [
        cue("line:16%", "<c.yellow>above &amp; &lt;b&gt;</c>"),
        cue("line:74% position:16% align:start", "- left\n- and below"),
    ];
    assert_eq!(cues, expected);
}

proptest! {
    /// Damage causes no panic, few pages, and texts that a page can have.
    #[test]
    fn damaged_streams_stay_within_bounds(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<prop::sample::Index>()), 1..12),
        finds in any::<bool>(),
    ) {
        let mut whole = page(b"text");
        whole.push(make::triplets(8, 26, 0, &[62 | 4 << 6, 5 | 0x12 << 6 | 0x65 << 11]));
        let mut decoder = if finds { TeletextDecoder::of_descriptor(b"") } else { decoder() };
        let mut out = Vec::new();
        for (at, (place, byte, length)) in (0..).zip(&damage) {
            let mut field = make::field(&whole);
            *place.get_mut(&mut field) = *byte;
            let length = length.index(field.len() + 1);
            decoder.push(&field[..length], at * 40_000, &mut out);
        }
        decoder.finish(i64::MAX, &mut out);
        prop_assert!(decoder.pages().len() <= MOST_FOUND);
        for cue in out.iter().flat_map(|change| &change.cues) {
            prop_assert!(!cue.text.is_empty() && cue.text.len() < 16 << 10, "{cue:?}");
        }
    }

    /// The text of a row is what its bytes say, whatever stands in other rows.
    #[test]
    fn rows_are_independent(text in "[A-Za-z0-9.,!?]{1,30}", others in prop::collection::vec((1_u8..19, "[ -~]{0,38}"), 0..6)) {
        let mut units = vec![make::header(0x888, &[4, 6])];
        units.extend(others.iter().map(|(row, text)| make::row(8, *row, text.as_bytes())));
        units.push(make::row(8, 22, format!("\x0b\x0b{text}\x0a\x0a").as_bytes()));
        units.push(make::header(0x8ff, &[]));
        let found = push(&mut decoder(), 0, &units);
        prop_assert_eq!(told(&found), [(0, 0, vec![text.as_str()])]);
    }
}
