//! Live HLS playlists of a hostile source, read again and again: readings between zero bytes. A reading that begins with `-` has
//! pieces that are missing, and before one that begins with `!` the source is opened again.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_package::hls_playlist::live::{Follower, LivePlaylist, Next, Turn};
use std::time::Duration;

fuzz_target!(|text: &str| {
    let mut follower = Follower::default();
    let (mut now, mut stretch, mut number) = (Duration::ZERO, 0, 0);
    for reading in text.split('\0').take(32) {
        let is_missing = reading.starts_with('-');
        if reading.starts_with('!') {
            follower = follower.reopened();
        }
        let reading = reading.trim_start_matches(['-', '!']);
        let Ok(playlist) = LivePlaylist::parse(reading) else { continue };
        let lines: Vec<&str> = reading.lines().collect();
        let listed: usize = playlist.segments.iter().map(|segment| 1 + segment.parts.len()).sum();
        assert!(listed <= 2 * lines.len());
        let (target, has_ended) = (playlist.target, playlist.has_ended);
        let turn = follower.take(playlist, now, now);
        if !matches!(turn, Turn::Follows) {
            number = 0;
        }
        let mut pieces = 0;
        while let Next::Piece(piece) = follower.next() {
            pieces += 1;
            assert!(pieces <= listed, "more pieces than the playlist has");
            assert!(piece.stretch >= stretch, "stretches fall from {stretch} to {}", piece.stretch);
            assert!(piece.number >= number, "numbers fall from {number} to {}", piece.number);
            (stretch, number) = (piece.stretch, piece.number);
            let line = lines.get(piece.range.line as usize - 1).expect("a line of the playlist");
            assert!(line.contains(&piece.range.uri), "{piece:?}");
            if is_missing { follower.missed() } else { follower.taken() }
        }
        match follower.next() {
            Next::Playlist(request) => {
                assert!(!has_ended && request.at <= now + target.max(Duration::from_millis(100)));
                assert!(request.awaits.is_none_or(|(awaited, _)| awaited >= number));
            }
            next => assert!(has_ended && next == Next::Ended),
        }
        now += Duration::from_millis(700);
        let _ = follower.stands_still(now);
    }
});
