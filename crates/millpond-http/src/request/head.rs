//! Request heads of HTTP/1.0 and HTTP/1.1 (RFC 9112).

use super::{HeadError, Request, authority, framing, message::names_token, target};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

/// Largest request head, in bytes.
pub const MAX_HEAD: usize = 16 << 10;
/// Longest request target, in bytes: path and query together, over HTTP/1 and HTTP/2.
pub const MAX_TARGET: usize = MAX_HEAD / 2;
/// Most header fields of a request.
const MAX_HEADERS: usize = 64;

/// A complete request head of HTTP/1.
#[derive(Debug)]
pub struct RequestHead {
    /// Method, target and header fields.
    pub request: Request,
    /// Length of the head, in bytes.
    pub used: usize,
    /// Whether the client speaks HTTP/1.0, which has no chunked coding.
    pub http10: bool,
    /// Whether the connection may carry another request.
    pub keep_alive: bool,
    /// Whether a body follows the head.
    pub has_body: bool,
}

/// The result of parsing the bytes that have arrived.
#[derive(Debug)]
pub enum ParsedHead {
    /// An incomplete head.
    Partial,
    /// A request.
    Request(Box<RequestHead>),
    /// The preface of HTTP/2 with prior knowledge (RFC 9113 section 3.3).
    Http2Preface,
    /// Bytes that are no request, or a request that is refused.
    Invalid(HeadError),
}

/// Parses a request head at the start of `bytes`. Later bytes do not change the result.
pub fn parse(bytes: &[u8]) -> ParsedHead {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\n";
    if bytes.starts_with(PREFACE) {
        return ParsedHead::Http2Preface;
    }
    if PREFACE.starts_with(bytes) {
        return ParsedHead::Partial;
    }
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut raw = httparse::Request::new(&mut headers);
    match raw.parse(bytes) {
        Ok(httparse::Status::Complete(used)) if used > MAX_HEAD => ParsedHead::Invalid(too_long(bytes)),
        Ok(httparse::Status::Complete(used)) => match request(&raw, used) {
            Ok(head) => ParsedHead::Request(Box::new(head)),
            Err(error) => ParsedHead::Invalid(error),
        },
        Ok(httparse::Status::Partial) if bytes.len() >= MAX_HEAD => ParsedHead::Invalid(too_long(bytes)),
        Ok(httparse::Status::Partial) => ParsedHead::Partial,
        Err(httparse::Error::TooManyHeaders) => ParsedHead::Invalid(HeadError::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "more than 64 header fields",
        )),
        Err(httparse::Error::Version) => ParsedHead::Invalid(version(bytes)),
        Err(_) => ParsedHead::Invalid(HeadError::bad_request("not an HTTP request")),
    }
}

/// Returns the error of a head over [`MAX_HEAD`]: status 414 for a long request line (RFC 9112 section 3), status 431
/// for long fields (RFC 6585 section 5).
fn too_long(bytes: &[u8]) -> HeadError {
    let text = bytes.trim_ascii_start();
    if text.iter().take(MAX_TARGET).any(|b| *b == b'\n') {
        HeadError::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "request head over 16 KiB")
    } else {
        HeadError::new(StatusCode::URI_TOO_LONG, "request line over 8 KiB")
    }
}

/// Checks the length of a request target.
///
/// # Errors
/// It is longer than [`MAX_TARGET`], with status 414 (RFC 9110 section 15.5.15).
pub fn check_target(target: &str) -> Result<(), HeadError> {
    match target.len() > MAX_TARGET {
        true => Err(HeadError::new(StatusCode::URI_TOO_LONG, "request target over 8 KiB")),
        false => Ok(()),
    }
}

/// Returns the error of a request line with another version (505) or without one (400).
fn version(bytes: &[u8]) -> HeadError {
    let line = bytes.trim_ascii_start().split(|b| *b == b'\n').next().unwrap_or_default().trim_ascii_end();
    // A request line has three parts: method, target and version.
    let mut parts = line.split(|b| *b == b' ').skip(2);
    match parts.next().filter(|_| parts.next().is_none()).unwrap_or_default() {
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor] if major.is_ascii_digit() && minor.is_ascii_digit() => {
            HeadError::new(StatusCode::HTTP_VERSION_NOT_SUPPORTED, "this server supports HTTP/1.0, HTTP/1.1 and HTTP/2")
        }
        _ => HeadError::bad_request("the request line names no HTTP version"),
    }
}

fn request(raw: &httparse::Request<'_, '_>, used: usize) -> Result<RequestHead, HeadError> {
    let (Some(method), Some(target), Some(version)) = (raw.method, raw.path, raw.version) else {
        return Err(HeadError::bad_request("incomplete request line"));
    };
    check_target(target)?;
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| HeadError::bad_request("malformed method"))?;
    let mut headers = HeaderMap::with_capacity(raw.headers.len());
    for field in raw.headers.iter() {
        let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(field.name.as_bytes()), HeaderValue::from_bytes(field.value))
        else {
            return Err(HeadError::bad_request("malformed header field"));
        };
        headers.append(name, value);
    }
    let http10 = version == 0;
    authority::check_host(&headers, http10)?;
    framing::check_expectation(&headers, http10)?;
    let has_body = framing::has_body(&headers, http10)?;
    let target = target::path_and_query(&method, target)?.to_owned();
    let closes = names_token(&headers, header::CONNECTION, "close");
    let stays = names_token(&headers, header::CONNECTION, "keep-alive");
    let keep_alive = !closes && (stays || !http10);
    Ok(RequestHead { request: Request::new(method, target, headers), used, http10, keep_alive, has_body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_the_same_however_much_of_it_has_arrived() {
        let bytes = b"GET /a?b HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1\r\n\r\nGET";
        let len = bytes.len() - 3;
        assert!((1..len).all(|end| matches!(parse(&bytes[..end]), ParsedHead::Partial)));
        for end in len..=bytes.len() {
            let ParsedHead::Request(head) = parse(&bytes[..end]) else { panic!("{end} bytes are a head") };
            assert_eq!((head.used, head.request.split()), (len, ("/a", "b")));
            assert!(head.keep_alive && !head.has_body && !head.http10);
        }
    }

    #[test]
    fn refused_heads_have_their_status() {
        for (head, status) in [
            ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
            ("GET a HTTP/1.0\r\n\r\n".to_owned(), 400),
            ("GET / HTTP/3.0\r\n\r\n".to_owned(), 505),
            ("GET /\r\n\r\n".to_owned(), 400),
            (format!("GET /{} HTTP/1.1\r\n", "a".repeat(MAX_HEAD)), 414),
            (format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(MAX_TARGET)), 414),
            (format!("GET /?{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(MAX_TARGET - 1)), 414),
            (format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}", "a".repeat(MAX_HEAD)), 431),
            (format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(MAX_HEADERS + 1)), 431),
            ("GET / HTTP/1.1\r\nHost: h\r\nExpect: more\r\n\r\n".to_owned(), 417),
        ] {
            let ParsedHead::Invalid(error) = parse(head.as_bytes()) else { panic!("{head:.40} is refused") };
            assert_eq!(error.status.as_u16(), status, "{head:.40}");
        }
    }
}
