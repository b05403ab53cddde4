//! Tags of objects: an object has at most 64 different ones in a kibibyte, and each of them is one that a purge can name. An input is
//! values of `Surrogate-Key` and `Cache-Tag` in turn, which line feeds separate.
#![cfg_attr(feature = "libfuzzer", no_main)]

use http::{HeaderMap, HeaderName, HeaderValue};
use millpond_fuzz::fuzz_target;
use millpond_store::{PurgeTag, StatedTags};
use std::collections::HashSet;

fuzz_target!(|bytes: &[u8]| {
    let names = ["surrogate-key", "cache-tag"].map(HeaderName::from_static);
    let mut headers = HeaderMap::new();
    for (name, value) in names.iter().cycle().zip(bytes.split(|byte| *byte == b'\n').take(1000)) {
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.append(name, value);
        }
    }
    let StatedTags { kept, cut } = StatedTags::of_headers(&headers);
    let tags: Vec<_> = kept.as_str().split('\n').filter(|tag| !tag.is_empty()).collect();
    assert!(tags.len() <= 64 && kept.as_str().len() <= 1024 && cut <= 1024);
    assert_eq!(tags.iter().collect::<HashSet<_>>().len(), tags.len());
    for tag in tags {
        assert_eq!(PurgeTag::parse(tag).map(|tag| tag.as_str().to_owned()).as_deref(), Ok(tag));
    }
});
