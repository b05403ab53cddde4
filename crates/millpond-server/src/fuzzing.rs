//! What the fuzz targets reach of the parsers of requests; the feature `fuzz` builds it.

use crate::{
    delivery::{Parsed, parse_head},
    front::{Asked, Coding, Request, Validators, evaluate, parse_range, range_applies},
};
use std::time::{Duration, SystemTime};

/// Reads a request head. Checks that what is taken lies in `bytes`, and that a head stays one whatever follows it.
///
/// # Panics
/// Where one of these doesn't hold.
pub fn request_head(bytes: &[u8]) {
    let Parsed::Request(head) = parse_head(bytes) else { return };
    assert!(head.used <= bytes.len());
    let target = &head.request.target;
    assert!(target.starts_with('/') || target == "*", "{target}");
    assert!(!(head.http10 && head.request.headers.contains_key(http::header::TRANSFER_ENCODING)));
    let alone = parse_head(&bytes[..head.used]);
    assert!(matches!(alone, Parsed::Request(same) if same.used == head.used && same.has_body == head.has_body));
}

/// Reads a range of a body of `len` bytes, evaluates preconditions and chooses a coding, all from the fields that a request head has.
///
/// # Panics
/// Where a range lies outside of the body or is empty.
pub fn range_and_conditions(fields: &[(&str, &str)], len: u64) {
    let mut headers = http::HeaderMap::new();
    for (name, value) in fields {
        if let (Ok(name), Ok(value)) = (http::HeaderName::from_bytes(name.as_bytes()), value.parse()) {
            headers.append(name, value);
        }
    }
    let request = Request { method: http::Method::GET, target: "/".to_owned(), headers };
    let now = Validators { etag: "\"a\"", modified: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)) };
    let _ = (evaluate(&request, &now), range_applies(&request, &now), Coding::preferred(&request));
    if let Asked::Part(range) = parse_range(request.single(http::header::RANGE).value(), len) {
        assert!(range.start < range.end && range.end <= len, "{range:?} of {len}");
    }
}
