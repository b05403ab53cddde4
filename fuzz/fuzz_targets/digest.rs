//! Authorization headers and the nonces in them, and challenges.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_rtp::digest::{Algorithm, Authorization, DigestRequest, Guard, Secret, challenges, nonce::Nonces};
use std::time::Duration;

const NOW: Duration = Duration::from_secs(1 << 30);
const URL: &str = "rtsp://host/film.mp4";

fuzz_target!(|text: &str| {
    let guard = Guard::new("fuzz", &[Algorithm::Sha256, Algorithm::Md5], Nonces::new(&[5; 32], NOW));
    let secret = |user: &str, algorithm| Some(Secret::of(algorithm, user, "fuzz", "unguessable"));
    let asked = DigestRequest { method: "PLAY", uri: URL, authorization: Some(text) };
    assert!(guard.check(&asked, NOW, secret).is_err(), "nobody knows the password");
    let _ = challenges(text);
    let Ok(read) = text.parse::<Authorization>() else { return };
    // What was understood, written the plain way, is understood the same.
    let plain = read.to_string();
    if plain.len() <= 4096 {
        assert_eq!(plain.parse(), Ok(read));
    }
});
