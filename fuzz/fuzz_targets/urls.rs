//! Paths and places: nothing parsed may leave its place.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_library::Route;
use millpond_store::{ObjectPath, PlaceSpec};

fuzz_target!(|text: &str| {
    if let Ok(path) = ObjectPath::parse(text) {
        assert!(path.components().all(|c| c != ".." && c != "." && !c.is_empty() && !c.contains(['\0', '/', '\\'])));
        if let Ok(below) = path.join(text) {
            assert!(below.as_str().starts_with(path.as_str()) || text.contains(".."));
        }
    }
    if let Some(route) = Route::parse(text) {
        assert!(text.contains(&route.asset));
    }
    let _ = PlaceSpec::parse(text);
});
