//! Framing of request bodies and `Expect` (RFC 9112 section 6, RFC 9110 section 10.1.1).

use super::HeadError;
use http::{HeaderMap, StatusCode, header};

/// Tells whether a body follows the head (RFC 9112 section 6.3).
///
/// # Errors
/// Framing that two readers could interpret differently, and transfer codings other than chunked.
pub fn has_body(headers: &HeaderMap, http10: bool) -> Result<bool, HeadError> {
    let length = content_length(headers)?;
    if !headers.contains_key(header::TRANSFER_ENCODING) {
        return Ok(length.is_some_and(|l| l > 0));
    }
    if length.is_some() {
        return Err(HeadError::bad_request("both Transfer-Encoding and Content-Length"));
    }
    if http10 {
        return Err(HeadError::bad_request("Transfer-Encoding in HTTP/1.0"));
    }
    let mut last_chunked = false;
    let mut unknown = false;
    for value in headers.get_all(header::TRANSFER_ENCODING) {
        for coding in value.to_str().unwrap_or("?").split(',').map(str::trim).filter(|c| !c.is_empty()) {
            if last_chunked {
                return Err(HeadError::bad_request("Transfer-Encoding: chunked is not the last coding"));
            }
            last_chunked = coding.eq_ignore_ascii_case("chunked");
            unknown |= !last_chunked;
        }
    }
    match (unknown, last_chunked) {
        (false, true) => Ok(true),
        (true, true) => Err(HeadError::new(StatusCode::NOT_IMPLEMENTED, "Transfer-Encoding other than chunked")),
        (true, false) => Err(HeadError::bad_request("Transfer-Encoding does not end with chunked")),
        (false, false) => Err(HeadError::bad_request("empty Transfer-Encoding")),
    }
}

/// Returns the declared length of the body, if there is one.
///
/// # Errors
/// A repeated field, even with equal values, or a value that is not a decimal number.
pub fn content_length(headers: &HeaderMap) -> Result<Option<u64>, HeadError> {
    let mut fields = headers.get_all(header::CONTENT_LENGTH).iter();
    let Some(value) = fields.next() else { return Ok(None) };
    if fields.next().is_some() {
        return Err(HeadError::bad_request("more than one Content-Length"));
    }
    let digits = value.to_str().ok().filter(|v| !v.is_empty() && v.bytes().all(|b| b.is_ascii_digit()));
    match digits.map(str::parse) {
        Some(Ok(length)) => Ok(Some(length)),
        _ => Err(HeadError::bad_request("invalid Content-Length")),
    }
}

/// Checks `Expect` (RFC 9110 section 10.1.1). The final reply answers an expectation of 100-continue.
///
/// # Errors
/// Any other expectation, with status 417.
pub fn check_expectation(headers: &HeaderMap, http10: bool) -> Result<(), HeadError> {
    let known = |value: &http::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if http10 || headers.get_all(header::EXPECT).iter().all(known) {
        return Ok(());
    }
    Err(HeadError::new(StatusCode::EXPECTATION_FAILED, "the only supported expectation is 100-continue"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    fn headers(fields: &[(HeaderName, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            map.append(name, value.parse().unwrap());
        }
        map
    }

    #[test]
    fn framing_is_never_guessed() {
        let body = |fields: &[(HeaderName, &str)]| has_body(&headers(fields), false).map_err(|b| b.status.as_u16());
        let (length, coding) = (header::CONTENT_LENGTH, header::TRANSFER_ENCODING);
        assert_eq!(body(&[]), Ok(false));
        assert_eq!(body(&[(length.clone(), "0")]), Ok(false));
        assert_eq!(body(&[(length.clone(), "00")]), Ok(false));
        assert_eq!(body(&[(length.clone(), "54")]), Ok(true));
        assert_eq!(body(&[(length.clone(), "0"), (length.clone(), "54")]), Err(400));
        for bad in ["-1", "+1", "1, 1", "0x1", "", "18446744073709551616"] {
            assert_eq!(body(&[(length.clone(), bad)]), Err(400), "{bad}");
        }
        assert_eq!(body(&[(coding.clone(), "Chunked")]), Ok(true));
        assert_eq!(body(&[(coding.clone(), "chunked"), (length, "5")]), Err(400));
        assert_eq!(body(&[(coding.clone(), "gzip, chunked")]), Err(501));
        assert_eq!(body(&[(coding.clone(), "chunked, gzip")]), Err(400));
        assert_eq!(body(&[(coding.clone(), "chunked"), (coding.clone(), "chunked")]), Err(400));
        assert_eq!(body(&[(coding.clone(), "identity")]), Err(400));
        assert!(has_body(&headers(&[(coding, "chunked")]), true).is_err());
    }
}
