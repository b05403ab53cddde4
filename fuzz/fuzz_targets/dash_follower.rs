//! Live DASH manifests of a hostile source, read again and again: readings between zero bytes. A reading that begins with `-` has
//! segments that are missing, and before one that begins with `!` the source is opened again.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_package::dash_manifest::{Failed, Follower, LiveManifest, Next, Presentation};
use std::time::Duration;

/// Most pieces that are taken of a reading.
const PIECES: usize = 64;

fuzz_target!(|text: &str| {
    // A day of the year 2026.
    let mut now = Duration::from_secs(1_795_341_600);
    let mut presentation = Presentation::new(Some(1_000_000));
    let mut followers: Vec<(Follower, Option<(u64, u64)>)> = Vec::new();
    let mut is_new = true;
    for reading in text.split('\0').take(16) {
        let is_missing = reading.starts_with('-');
        let Ok(manifest) = LiveManifest::parse(reading.trim_start_matches(['-', '!'])) else { continue };
        if reading.starts_with('!') {
            (presentation, is_new) = (Presentation::new(None), true);
        }
        let before = presentation.roles();
        if presentation.take(&manifest, now, now).is_err() {
            assert_eq!(presentation.roles(), before, "a bad reading changes nothing");
            continue;
        }
        let roles = presentation.roles();
        assert!((1..=5).contains(&roles.len()));
        if std::mem::take(&mut is_new) {
            let mut known = std::mem::take(&mut followers).into_iter();
            followers = roles
                .into_iter()
                .map(|role| match known.next() {
                    Some((known, _)) => (Follower::new(role).following(&known), None),
                    None => (Follower::new(role), None),
                })
                .collect();
        }
        for (follower, last) in &mut followers {
            for _ in 0..PIECES {
                let piece = match follower.next(&presentation, now) {
                    Next::Piece(piece) => piece,
                    Next::Wait { until } => {
                        assert!(until > now && until <= now + Duration::from_secs(1));
                        break;
                    }
                    Next::Ended => {
                        assert!(presentation.has_ended());
                        break;
                    }
                };
                let place = (piece.stretch, piece.time);
                assert!(last.is_none_or(|last| last < place), "a piece comes twice: {last:?}, {piece:?}");
                assert!(piece.uri.len() <= 4096);
                if !is_missing {
                    follower.taken(&piece);
                } else if follower.failed(&piece, &presentation, now, piece.number % 3 == 0) == Failed::Again {
                    break;
                }
                *last = Some(place);
            }
        }
        if let Some(at) = presentation.reload(is_missing) {
            assert!(at > now);
        }
        let _ = presentation.stands_still(now);
        now += Duration::from_millis(700);
    }
});
