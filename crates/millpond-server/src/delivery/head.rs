//! HTTP/1.1 message heads: reading requests (RFC 9112) and writing reply heads.

use super::rules::{self, Bad};
use crate::front::{Reply, Request};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use std::io::Write as _;

/// Largest request head.
pub(crate) const MAX_HEAD: usize = 16 << 10;
const MAX_HEADERS: usize = 64;

/// A request head that was read.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) request: Request,
    /// Bytes of the head.
    pub(crate) used: usize,
    /// Whether the client speaks HTTP/1.0: it knows no chunked coding.
    pub(crate) http10: bool,
    /// Whether the connection may carry another request.
    pub(crate) keep_alive: bool,
    pub(crate) has_body: bool,
}

/// What the bytes read so far hold.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// Not yet a whole head.
    Partial,
    /// A request.
    Request(Box<Head>),
    /// HTTP/2 with prior knowledge (RFC 9113 section 3.3).
    Http2Preface,
    /// Not a request.
    Bad(Bad),
}

/// Looks for a request head at the start of `bytes`.
pub(crate) fn parse(bytes: &[u8]) -> Parsed {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\n";
    if bytes.starts_with(PREFACE) {
        return Parsed::Http2Preface;
    }
    if PREFACE.starts_with(bytes) {
        return Parsed::Partial;
    }
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut raw = httparse::Request::new(&mut headers);
    match raw.parse(bytes) {
        Ok(httparse::Status::Complete(used)) if used > MAX_HEAD => Parsed::Bad(too_long(bytes)),
        Ok(httparse::Status::Complete(used)) => match request(&raw, used) {
            Ok(head) => Parsed::Request(Box::new(head)),
            Err(bad) => Parsed::Bad(bad),
        },
        Ok(httparse::Status::Partial) if bytes.len() >= MAX_HEAD => Parsed::Bad(too_long(bytes)),
        Ok(httparse::Status::Partial) => Parsed::Partial,
        Err(httparse::Error::TooManyHeaders) => {
            Parsed::Bad(Bad::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "more than 64 header fields"))
        }
        Err(httparse::Error::Version) => Parsed::Bad(version(bytes)),
        Err(_) => Parsed::Bad(Bad::request("not an HTTP request")),
    }
}

/// A head over [`MAX_HEAD`]: the request line is at fault (RFC 9112 section 3), or the fields are (RFC 6585 section 5).
fn too_long(bytes: &[u8]) -> Bad {
    let text = bytes.trim_ascii_start();
    if text.iter().take(MAX_HEAD / 2).any(|b| *b == b'\n') {
        Bad::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "request head over 16 KiB")
    } else {
        Bad::new(StatusCode::URI_TOO_LONG, "request line over 8 KiB")
    }
}

/// A version that isn't spoken here (505), or bytes that are no version (400).
fn version(bytes: &[u8]) -> Bad {
    let line = bytes.trim_ascii_start().split(|b| *b == b'\n').next().unwrap_or_default().trim_ascii_end();
    // Method, target, version: what has more parts is no request line at all.
    let mut parts = line.split(|b| *b == b' ').skip(2);
    match parts.next().filter(|_| parts.next().is_none()).unwrap_or_default() {
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor] if major.is_ascii_digit() && minor.is_ascii_digit() => {
            Bad::new(StatusCode::HTTP_VERSION_NOT_SUPPORTED, "HTTP/1.0 and HTTP/1.1 are spoken here, and HTTP/2")
        }
        _ => Bad::request("the request line names no HTTP version"),
    }
}

fn request(raw: &httparse::Request<'_, '_>, used: usize) -> Result<Head, Bad> {
    let (Some(method), Some(target), Some(version)) = (raw.method, raw.path, raw.version) else {
        return Err(Bad::request("incomplete request line"));
    };
    if target.len() > MAX_HEAD / 2 {
        return Err(Bad::new(StatusCode::URI_TOO_LONG, "request target over 8 KiB"));
    }
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| Bad::request("malformed method"))?;
    let mut headers = HeaderMap::with_capacity(raw.headers.len());
    for header in raw.headers.iter() {
        let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(header.name.as_bytes()), HeaderValue::from_bytes(header.value))
        else {
            return Err(Bad::request("malformed header field"));
        };
        headers.append(name, value);
    }
    let http10 = version == 0;
    rules::check_host(&headers, http10)?;
    rules::check_expectation(&headers, http10)?;
    let has_body = rules::has_body(&headers, http10)?;
    let target = rules::target(&method, target)?.to_owned();
    let closes = rules::names_token(&headers, http::header::CONNECTION, "close");
    let stays = rules::names_token(&headers, http::header::CONNECTION, "keep-alive");
    let keep_alive = !closes && (stays || !http10);
    Ok(Head { request: Request { method, target, headers }, used, http10, keep_alive, has_body })
}

/// How the client knows where the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// `Content-Length`.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// The connection ends with it: HTTP/1.0 knows no chunks.
    Close,
    /// No body follows (204, 304).
    None,
}

/// What the reply says of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// It stays, as HTTP/1.1 has it by default.
    Stays,
    /// It stays, which an HTTP/1.0 client must be told.
    StaysTold,
    /// It ends after this reply.
    Ends,
}

/// Writes the status line and header fields.
pub(crate) fn write(reply: &Reply, framing: Framing, persistence: Persistence, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(reply.status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(reply.status.canonical_reason().unwrap_or("").as_bytes());
    out.extend_from_slice(b"\r\n");
    for (name, value) in &reply.headers {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    match framing {
        Framing::Length(len) => drop(write!(out, "content-length: {len}\r\n")),
        Framing::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        Framing::Close | Framing::None => {}
    }
    match persistence {
        Persistence::Stays => {}
        Persistence::StaysTold => out.extend_from_slice(b"connection: keep-alive\r\n"),
        Persistence::Ends => out.extend_from_slice(b"connection: close\r\n"),
    }
    out.extend_from_slice(b"\r\n");
}
