//! Chunked bodies of HTTP/1: the same bytes in pieces of any size, and no more than have arrived. The first byte is the size
//! of the pieces.
#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::BytesMut;
use http::{HeaderMap, HeaderValue, header::TRANSFER_ENCODING};
use millpond_fuzz::fuzz_target;
use millpond_http::request::body::{BodyDecoder, Decoded};

/// The body, and whether it is over, invalid or neither.
fn decoded(bytes: &[u8], size: usize) -> (Vec<u8>, Option<bool>) {
    let headers = HeaderMap::from_iter([(TRANSFER_ENCODING, HeaderValue::from_static("chunked"))]);
    let Ok(mut decoder) = BodyDecoder::new(&headers) else { return (Vec::new(), Some(false)) };
    let (mut input, mut body) = (BytesMut::new(), Vec::new());
    for piece in bytes.chunks(size) {
        input.extend_from_slice(piece);
        loop {
            match decoder.next(&mut input) {
                Ok(Decoded::Bytes(bytes)) => body.extend_from_slice(&bytes),
                Ok(Decoded::Partial) => break,
                Ok(Decoded::Over) => return (body, Some(true)),
                Err(_) => return (body, Some(false)),
            }
        }
    }
    (body, None)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((size, input)) = bytes.split_first() else { return };
    let found = decoded(input, usize::from(*size) + 1);
    assert!(found.0.len() <= input.len());
    assert!(found == decoded(input, input.len().max(1)), "the body depends on the pieces");
});
