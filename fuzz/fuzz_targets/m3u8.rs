//! HLS playlists, as the load generator reads them.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = millpond_lab::m3u8::parse(text);
});
