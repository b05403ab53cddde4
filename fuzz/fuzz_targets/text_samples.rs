//! Samples of tx3g and wvtt tracks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_package::text::{tx3g, wvtt};

fuzz_target!(|bytes: &[u8]| {
    let _ = tx3g::cue_text(bytes);
    let _ = wvtt::cues(bytes);
});
