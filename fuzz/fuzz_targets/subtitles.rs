//! SubRip and WebVTT files and segments, and what is written from them.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_package::text::{srt, vtt, vtt_segments, webvtt};

fuzz_target!(|bytes: &[u8]| {
    for subtitles in [srt::parse(bytes), vtt::parse(bytes)].into_iter().flatten() {
        let written = webvtt::whole(&subtitles.cues);
        let again = vtt::parse(written.as_bytes()).expect("what was written can be read");
        assert!(again.cues.len() <= subtitles.cues.len());
    }
    // Segments are separated by a byte that no text has.
    if let Ok(found) = vtt_segments::parse(bytes.split(|byte| *byte == 0xff), 900_000) {
        assert!(found.cues.iter().all(|cue| (0..cue.end).contains(&cue.start)));
        assert!(found.cues.is_sorted_by_key(|cue| cue.start));
    }
});
