//! HLS playlists of folders, to the ranges of their segments.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_package::hls_playlist::{self, StoredPlaylist};

fuzz_target!(|text: &str| {
    let Ok(StoredPlaylist::Media(ranges)) = hls_playlist::parse(text) else { return };
    assert!(!ranges.is_empty() && ranges.len() <= text.lines().count());
    let lines: Vec<&str> = text.lines().collect();
    for range in ranges {
        let line = lines.get(range.line as usize - 1).expect("a line of the playlist");
        assert!(line.contains(range.uri.as_str()) && !range.uri.is_empty(), "{range:?}");
        assert!(range.bytes.is_none_or(|bytes| !bytes.is_empty()), "{range:?}");
    }
});
