//! HLS playlists of folders, to the ranges of their segments and to the playlists that they name.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_package::hls_playlist::{self, StoredPlaylist};

fuzz_target!(|text: &str| {
    let Ok(playlist) = hls_playlist::parse(text) else { return };
    let lines: Vec<&str> = text.lines().collect();
    let line_of = |line: u32| *lines.get(line as usize - 1).expect("a line of the playlist");
    match playlist {
        StoredPlaylist::Media(stretches) => {
            assert!(!stretches.is_empty() && stretches.iter().all(|stretch| !stretch.segments.is_empty()));
            let segments: usize = stretches.iter().map(|stretch| stretch.segments.len()).sum();
            assert!(segments < lines.len());
            for range in stretches.iter().flat_map(|stretch| stretch.map.iter().chain(&stretch.segments)) {
                assert!(line_of(range.line).contains(range.uri.as_str()) && !range.uri.is_empty(), "{range:?}");
                assert!(range.bytes.is_none_or(|bytes| !bytes.is_empty()), "{range:?}");
            }
        }
        StoredPlaylist::Multivariant(found) => {
            assert!(!found.variants.is_empty() && hls_playlist::is_multivariant(text));
            for variant in &found.variants {
                assert_eq!(line_of(variant.line).trim_end(), variant.uri);
            }
            for rendition in &found.renditions {
                let line = line_of(rendition.line);
                assert!(line.contains(rendition.uri.as_deref().unwrap_or_default()), "{rendition:?}");
            }
        }
    }
});
