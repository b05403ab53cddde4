//! Payloads of PES packets with teletext, to the cues of its pages. Input: the length of the descriptor's body, the body, then for each
//! packet its time after the last one in frames and the number of its data units.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_media::teletext::{TeletextCue, TeletextDecoder};
use millpond_package::text::wvtt;

/// Ticks of 90 kHz of a frame.
const FRAME: i64 = 3600;
/// Bytes of a data unit.
const UNIT: usize = 46;
/// Most cues of a page: one a row.
const MOST_CUES: usize = 24;
/// Most bytes of the text of a cue.
const MOST_TEXT: usize = 1 << 16;

fuzz_target!(|bytes: &[u8]| {
    let Some((length, rest)) = bytes.split_first() else { return };
    let (descriptor, mut rest) = rest.split_at(rest.len().min((*length).into()));
    let mut decoder = TeletextDecoder::of_descriptor(descriptor);
    let (mut at, mut out) = (0, Vec::new());
    while let Some(([step, count], data)) = rest.split_first_chunk() {
        let (data, behind) = data.split_at(data.len().min(1 + usize::from(*count) * UNIT));
        at += i64::from(*step) * FRAME;
        decoder.push(data, at, &mut out);
        rest = behind;
    }
    decoder.finish(at, &mut out);
    let mut last = vec![i64::MIN; decoder.pages().len()];
    for change in out {
        assert!(change.at <= at && change.at >= last[change.page], "the changes of a page are in order");
        last[change.page] = change.at;
        assert!(change.cues.len() <= MOST_CUES);
        let read = wvtt::cues(&TeletextCue::sample(&change.cues)).expect("a sample of cues");
        assert!(read.len() == change.cues.len());
        for (cue, read) in change.cues.iter().zip(read) {
            assert!(cue.text.len() <= MOST_TEXT && read.cue.text == cue.text && read.cue.settings == cue.settings);
            // A line without text would end the cue in a file.
            assert!(cue.text.lines().all(|line| !line.trim().is_empty()) && !cue.text.contains("-->"), "{cue:?}");
        }
    }
});
