//! Authorization headers, and the nonces in them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_rtp::digest::{Algorithm, Authorization, DigestRequest, Guard, Secret, nonce::Nonces};
use std::time::Duration;

const NOW: Duration = Duration::from_secs(1 << 30);
const URL: &str = "rtsp://host/film.mp4";

fuzz_target!(|text: &str| {
    let guard = Guard::new("fuzz", &[Algorithm::Sha256, Algorithm::Md5], Nonces::new(&[5; 32], NOW));
    let secret = |user: &str, algorithm| Some(Secret::of(algorithm, user, "fuzz", "unguessable"));
    let asked = DigestRequest { method: "PLAY", uri: URL, authorization: Some(text) };
    assert!(guard.check(&asked, NOW, secret).is_err(), "nobody knows the password");
    let Ok(read) = text.parse::<Authorization>() else { return };
    // What was understood, written the plain way, is understood the same.
    let quote = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let (user, realm, nonce) = (quote(&read.user), quote(&read.realm), quote(&read.nonce));
    let (uri, response, algorithm) = (quote(&read.uri), quote(&read.response), read.algorithm.name());
    let mut plain = format!(
        "Digest username={user}, realm={realm}, nonce={nonce}, uri={uri}, response={response}, algorithm={algorithm}"
    );
    if let Some(qop) = &read.qop {
        plain.push_str(&format!(", qop=auth, nc={:08x}, cnonce={}", qop.count, quote(&qop.cnonce)));
    }
    if plain.len() <= 4096 {
        assert_eq!(plain.parse(), Ok(read));
    }
});
