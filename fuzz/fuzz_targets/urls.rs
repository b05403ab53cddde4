//! Request targets, paths, filters and places: nothing parsed may leave its place, and a filter's text means the same filter.
#![cfg_attr(feature = "libfuzzer", no_main)]

use http::Method;
use millpond_fuzz::fuzz_target;
use millpond_http::request::target;
use millpond_library::{Route, uri};
use millpond_package::TrackFilter;
use millpond_place::PlaceSpec;
use millpond_store::ObjectPath;

fuzz_target!(|text: &str| {
    if let Ok(path) = ObjectPath::parse(text) {
        assert!(path.components().all(|c| c != ".." && c != "." && !c.is_empty() && !c.contains(['\0', '/', '\\'])));
        if let Ok(below) = path.join(text) {
            assert!(below.as_str().starts_with(path.as_str()) || text.contains(".."));
        }
    }
    if let Ok(target) = target::path_and_query(&Method::GET, text) {
        assert!(target.starts_with('/') && (target == "/" || text.ends_with(target)), "{target}");
    }
    if let Some(path) = uri::decode_path(text) {
        assert!(!path.contains('\0'));
        assert_eq!(uri::decode_path(&uri::encode(&path)), Some(path));
    }
    let _ = uri::parameter(text, "path");
    if let Some(route) = Route::parse(text) {
        assert!(text.contains(&route.asset));
    }
    if let Ok(filter) = TrackFilter::parse(text) {
        let canonical = filter.to_string();
        assert_eq!(TrackFilter::parse_strictly(&canonical).as_ref(), Ok(&filter), "{canonical}");
        assert_eq!(filter.and(&filter), filter, "{canonical}");
    }
    let _ = PlaceSpec::parse(text);
});
