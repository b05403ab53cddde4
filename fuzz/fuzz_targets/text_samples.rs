//! Samples of tx3g and wvtt tracks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_package::text::{tx3g, wvtt};

fuzz_target!(|bytes: &[u8]| {
    let _ = tx3g::cue(bytes, 0, 1000);
    let _ = wvtt::cues(bytes, 0, 1000);
});
