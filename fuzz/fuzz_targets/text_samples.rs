//! Samples of text tracks: tx3g, wvtt, and blocks of Matroska, with the header of a script.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_media::{BlockEncoding, MatroskaText, TextForm};
use millpond_package::text::{matroska::BlockReader, tx3g, wvtt};

fuzz_target!(|bytes: &[u8]| {
    let _ = tx3g::cue_text(bytes);
    let _ = wvtt::cues(bytes);
    let header = String::from_utf8_lossy(bytes).into_owned();
    for form in [TextForm::SubRip, TextForm::Ssa, TextForm::WebVtt, TextForm::WebmVtt] {
        for encoding in [BlockEncoding::Plain, BlockEncoding::Zlib] {
            let reader = BlockReader::new(&MatroskaText { form, track: 1, header: header.clone(), encoding });
            let _ = reader.cue(bytes);
        }
    }
});
