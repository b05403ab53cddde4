//! Server manifests.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_package::smil;

fuzz_target!(|text: &str| {
    let Ok(manifest) = smil::parse(text) else { return };
    if manifest.is_sequence {
        let items: Vec<_> = manifest.entries.iter().map(|entry| (entry.src.clone(), entry.clip)).collect();
        let again = smil::parse(&smil::written(&items)).expect("written sequences are read");
        assert!(again.is_sequence && again.entries.len() == items.len());
        assert!(again.entries.iter().zip(&items).all(|(entry, (src, _))| entry.src == *src));
    }
    let _ = smil::range(text);
});
