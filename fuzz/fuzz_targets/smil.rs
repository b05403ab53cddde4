//! Server manifests.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = millpond_package::smil::parse(text);
});
