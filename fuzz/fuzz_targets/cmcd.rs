//! CMCD of players: data that parses is written in the form of the standard, and reads back as the same.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_http::request::cmcd::Cmcd;

fuzz_target!(|text: &str| {
    for parsed in [Cmcd::parse(text), Cmcd::of_query(text)] {
        let Ok(data) = parsed else { continue };
        let written = data.to_string();
        assert!(written.is_ascii() && !written.contains(|c: char| c.is_ascii_control()), "{written:?}");
        if !written.is_empty() {
            assert_eq!(Cmcd::parse(&written).as_ref(), Ok(&data), "{written}");
        }
    }
});
