//! Splice information sections: as they are, and with a right length and checksum.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_media::ts::{SpliceSection, checksum};

fn check(section: &[u8]) {
    match SpliceSection::read(section) {
        Ok(Some(found)) => {
            assert!(found.time.is_none_or(|time| time < 1 << 33));
            // An event takes nine bytes at least.
            assert!(found.events.len() <= 16 && found.events.len() * 9 <= section.len());
            assert!(found.events.iter().all(|event| event.duration.is_none_or(|duration| duration < 1 << 40)));
        }
        Ok(None) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    if let [table, indicators, _, body @ ..] = bytes
        && body.len() < 4090
    {
        let [high, low] = ((body.len() + 4) as u16).to_be_bytes();
        let mut section = [&[*table, indicators & 0xf0 | high, low], body].concat();
        section.extend(checksum(&section).to_be_bytes());
        check(&section);
    }
});
