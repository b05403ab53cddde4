//! Mutated and arbitrary files: the parsers never panic, and their output is always WebVTT that can be read back.

use super::{Cue, matroska::BlockReader, srt, tx3g, vtt, webvtt, wvtt};
use millpond_media::{BlockEncoding, MatroskaText, TextForm};
use proptest::prelude::*;

const VTT: &[u8] = b"\xef\xbb\xbfWEBVTT x\r\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:900000\r\n\r\nNOTE\r\na\r\n\r\nSTYLE\r\n::cue{}\r\n\r\n\
    id\r\n00:01.000 --> 01:00:02.500 line:0 align:left\r\n<v Ann>Hi &amp; bye\r\nsecond\r\n\r\n00:03.000 --> 00:04.000\r\nx";
const SRT: &[u8] =
    b"1\r\n00:00:01,000 --> 00:00:02,500\r\n{\\an8}<i>a <b>&amp;</i></b> <font x>y</font> {z}\r\n\r\n2\r\n\
    00:00:03,000 --> 00:00:04,000\r\n42 < 5 --> 3\r\n";
const TX3G: &[u8] = b"\0\x06ab\ncde\0\0\0\x16styl\0\x01\0\0\0\x03\0\x01\x07\x12\xff\xff\xff\xff";
const WVTT: &[u8] = b"\0\0\0\x2bvttc\0\0\0\x0cvsid\0\0\0\x01\0\0\0\x0asttgx:\0\0\0\x0dpayl<b>hi\0\0\0\x08vtte";

const SSA: &[u8] = b"1,0,Sign,,0,0,0,,{\\an8\\i1\\pos(12,90)}a\\Nb{\\r}{\\p1}m 0 0{\\p0} c, {\\b700}d --> <e>";
const HEADER: &str = "PlayResY: 9\n[V4+ Styles]\nFormat: Name, Bold, Alignment\nStyle: Sign,-1,9\n";

/// Wraps text and a block addition as a `BlockGroup` of Matroska.
fn group(text: &[u8]) -> Vec<u8> {
    let element = |id: &[u8], body: &[u8]| [id, &(1 << 56 | body.len() as u64).to_be_bytes(), body].concat();
    let block = element(&[0xa1], &[&[0x81, 0, 0, 0][..], text].concat());
    let more = element(&[0xa6], &element(&[0xa5], text));
    element(&[0xa0], &[block, element(&[0x75, 0xa1], &more)].concat())
}

/// Writes the cues and reads them back.
fn check(cues: &[Cue]) {
    let shown: Vec<_> = cues.iter().filter(|cue| cue.end > 0).collect();
    let back = vtt::parse(webvtt::whole(cues).as_bytes()).unwrap();
    assert_eq!(back.warnings, [""; 0]);
    let texts = |cues: &[&Cue]| cues.iter().map(|c| (c.start.max(0), c.end, c.text.clone())).collect::<Vec<_>>();
    assert_eq!(texts(&back.cues.iter().collect::<Vec<_>>()), texts(&shown));
}

fn all(bytes: &[u8]) {
    for found in [vtt::parse(bytes), srt::parse(bytes)].into_iter().flatten() {
        assert!(found.cues.iter().all(|cue| cue.start < cue.end));
        check(&found.cues);
    }
    if let Ok(text) = tx3g::cue_text(bytes)
        && !text.is_empty()
    {
        check(&[Cue { start: 0, end: 1, text, ..Cue::default() }]);
    }
    for form in [TextForm::SubRip, TextForm::Ssa, TextForm::WebVtt, TextForm::WebmVtt] {
        let header = [HEADER, &String::from_utf8_lossy(bytes)].concat();
        let reader = BlockReader::new(&MatroskaText { form, track: 1, header, encoding: BlockEncoding::Plain });
        for cue in [reader.cue(bytes), reader.cue(&group(bytes))].into_iter().flatten() {
            check(&[Cue { start: 0, end: 1, ..cue }]);
        }
    }
    if let Ok(cues) = wvtt::cues(bytes) {
        let mut joiner = wvtt::Joiner::default();
        joiner.push(0, 1000, cues.clone());
        joiner.push(1000, 2000, cues);
        check(&joiner.finish());
    }
}

#[test]
fn the_samples_are_good() {
    assert_eq!(vtt::parse(VTT).unwrap().cues.len(), 2);
    assert_eq!(srt::parse(SRT).unwrap().cues.len(), 2);
    assert_eq!(tx3g::cue_text(TX3G).unwrap(), "<b><i><u>ab\n</u></i></b>cde");
    assert_eq!(wvtt::cues(WVTT).unwrap()[0].cue.text, "<b>hi");
    [VTT, SRT, TX3G, WVTT, SSA].into_iter().for_each(all);
}

#[test]
fn every_cut_is_read() {
    for file in [VTT, SRT, TX3G, WVTT, SSA] {
        (0..file.len()).for_each(|len| all(&file[..len]));
    }
}

#[test]
fn text_full_of_brackets_takes_no_time() {
    for c in ["<", "{", "&", "<b>", "-->"] {
        let file = format!("1\n00:00:01,000 --> 00:00:02,000\n{}\n", c.repeat(200_000));
        let _ = srt::parse(file.as_bytes());
    }
}

proptest! {
    #[test]
    fn mutations_never_panic(
        which in 0_usize..5,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..3), 1..12),
    ) {
        let mut file = [VTT, SRT, TX3G, WVTT, SSA][which].to_vec();
        for (at, byte, how) in edits {
            let at = at.index(file.len());
            match how {
                0 => file[at] = byte,
                1 => file.insert(at, byte),
                _ => drop(file.remove(at)),
            }
        }
        all(&file);
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,60}", head in 0_usize..3) {
        let head = ["WEBVTT\n", "1\n00:00:01,000 --> 00:00:02,000\n", "WEBVTT\n\n00:01.000 --> 00:02.000\n"][head];
        all(format!("{head}{text}\n").as_bytes());
    }

    #[test]
    fn arbitrary_markup_stays_whole(parts in prop::collection::vec(0_usize..14, 0..20)) {
        let words = ["<", ">", "<b>", "</b>", "<i>", "</i>", "{\\an8}", "{", "}", "&", "&amp;", "-->", "\n", "\r\n"];
        let text: String = parts.iter().map(|&n| words[n]).collect();
        all(format!("1\n00:00:01,000 --> 00:00:02,000\n{text}x\n").as_bytes());
    }

    #[test]
    fn what_is_written_reads_back(
        times in prop::collection::vec((0_i64..400_000_000, 1_i64..100_000), 0..10),
        text in "[a-z&;]{1,9}(\n[a-z]{1,9})?",
    ) {
        let mut cues: Vec<_> = times
            .into_iter()
            .map(|(start, len)| Cue { start, end: start + len, text: text.clone(), ..Cue::default() })
            .collect();
        cues.sort_by_key(|cue| cue.start);
        check(&cues);
    }
}
