//! HLS playlists, as the load generator reads them.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = millpond_lab::m3u8::parse(text);
});
