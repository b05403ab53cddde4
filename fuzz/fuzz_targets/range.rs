//! `Range`, conditional fields and `Accept-Encoding`: every range lies inside the body. Input: lines, the first a length.
#![cfg_attr(feature = "libfuzzer", no_main)]

use http::{HeaderMap, HeaderName, Method, header::RANGE};
use millpond_fuzz::fuzz_target;
use millpond_http::request::{
    Request,
    coding::Coding,
    conditional::{Validators, evaluate, range_applies},
    range::{self, RequestedRange},
};
use std::time::{Duration, SystemTime};

fuzz_target!(|text: &str| {
    let mut lines = text.lines();
    let len = lines.next().and_then(|line| line.parse().ok()).unwrap_or(100);
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), value.parse()) {
            headers.append(name, value);
        }
    }
    let request = Request::new(Method::GET, "/".to_owned(), headers);
    let now = Validators { etag: "\"a\"", modified: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)) };
    let _ = (evaluate(&request, &now), range_applies(&request, &now), Coding::preferred(&request));
    if let RequestedRange::Bytes(range) = range::parse(request.single(RANGE).valid(), len) {
        assert!(range.start < range.end && range.end <= len, "{range:?} of {len}");
    }
});
