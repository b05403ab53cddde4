//! Request heads of HTTP/1: parsing never panics, and later bytes never change the result.
#![cfg_attr(feature = "libfuzzer", no_main)]

use http::header::TRANSFER_ENCODING;
use millpond_fuzz::fuzz_target;
use millpond_http::request::head::{ParsedHead, parse};

fuzz_target!(|bytes: &[u8]| {
    let ParsedHead::Request(head) = parse(bytes) else { return };
    assert!(head.used <= bytes.len());
    let target = &head.request.target;
    assert!(target.starts_with('/') || target == "*", "{target}");
    assert!(!(head.http10 && head.request.headers.contains_key(TRANSFER_ENCODING)));
    let alone = parse(&bytes[..head.used]);
    assert!(matches!(alone, ParsedHead::Request(same) if same.used == head.used && same.has_body == head.has_body));
});
