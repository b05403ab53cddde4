//! Paths with tokens, tokens, and files of keys: nothing strange is admitted, and no file of keys breaks the parser.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_access::{
    keys::Keys,
    token::{self, Parties},
};
use millpond_fuzz::fuzz_target;

const SECRET: &[u8] = b"a secret of thirty-two bytes....";

fuzz_target!(|bytes: &[u8]| {
    let _ = Keys::parse(bytes);
    let _ = Keys::parse_set(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let keys = Keys::parse(SECRET).expect("a secret");
    let (found, rest) = token::split(text).unwrap_or((text, ""));
    if let Some((token, _)) = token::split(text) {
        assert!(token.starts_with("eyJ") && !token.contains('/'));
        assert_eq!(format!("/~{token}{rest}"), text);
    }
    // Only who knows the secret makes a token that is read. The corpus has none that lasts.
    assert!(token::read(found, &keys, &Parties::default()).is_err());
});
