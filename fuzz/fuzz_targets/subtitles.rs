//! SubRip and WebVTT files, and what is written from them.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_package::text::{srt, vtt, webvtt};

fuzz_target!(|bytes: &[u8]| {
    for subtitles in [srt::parse(bytes), vtt::parse(bytes)].into_iter().flatten() {
        let written = webvtt::whole(&subtitles.cues);
        let again = vtt::parse(written.as_bytes()).expect("what was written can be read");
        assert!(again.cues.len() <= subtitles.cues.len());
    }
});
