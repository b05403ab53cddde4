//! HTTP/1.1 message heads: reading requests (RFC 9112 section 3) and writing reply heads.

use crate::front::{Reply, Request};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use std::io::Write as _;

/// Largest request head.
pub(crate) const MAX_HEAD: usize = 16 << 10;
const MAX_HEADERS: usize = 64;

/// What the bytes read so far hold.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// Not yet a whole head.
    Partial,
    /// A request, and the bytes its head took.
    Request { request: Request, used: usize, keep_alive: bool, has_body: bool },
    /// HTTP/2 with prior knowledge (RFC 9113 section 3.3).
    Http2Preface,
    /// Not a request.
    Bad(&'static str),
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
        Ok(httparse::Status::Complete(used)) => request(&raw, used),
        Ok(httparse::Status::Partial) if bytes.len() >= MAX_HEAD => Parsed::Bad("request head over 16 KiB"),
        Ok(httparse::Status::Partial) => Parsed::Partial,
        Err(httparse::Error::TooManyHeaders) => Parsed::Bad("more than 64 header fields"),
        Err(_) => Parsed::Bad("not an HTTP request"),
    }
}

fn request(raw: &httparse::Request<'_, '_>, used: usize) -> Parsed {
    let (Some(method), Some(target), Some(version)) = (raw.method, raw.path, raw.version) else {
        return Parsed::Bad("incomplete request line");
    };
    let Ok(method) = Method::from_bytes(method.as_bytes()) else { return Parsed::Bad("unknown method") };
    let mut headers = HeaderMap::with_capacity(raw.headers.len());
    for header in raw.headers.iter() {
        let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(header.name.as_bytes()), HeaderValue::from_bytes(header.value))
        else {
            return Parsed::Bad("bad header field");
        };
        headers.append(name, value);
    }
    let tokens = headers.get(http::header::CONNECTION).and_then(|v| v.to_str().ok()).unwrap_or("").to_ascii_lowercase();
    let keep_alive = if version == 0 { tokens.contains("keep-alive") } else { !tokens.contains("close") };
    let has_body = headers.contains_key(http::header::TRANSFER_ENCODING)
        || headers.get(http::header::CONTENT_LENGTH).is_some_and(|v| v.as_bytes() != b"0");
    if version == 1 && !headers.contains_key(http::header::HOST) {
        return Parsed::Bad("no Host header field");
    }
    // Absolute form (RFC 9112 3.2.2): the path begins after the authority.
    let target = match target.split_once("://") {
        Some((_, rest)) if !target.starts_with('/') => rest.find('/').map_or("/", |at| &rest[at..]),
        _ => target,
    };
    let request = Request { method, target: target.to_owned(), headers };
    Parsed::Request { request, used, keep_alive, has_body }
}

/// How the client knows where the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// `Content-Length`.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// No body follows (204, 304).
    None,
}

/// Writes the status line and header fields.
pub(crate) fn write(reply: &Reply, framing: Framing, keep_alive: bool, out: &mut Vec<u8>) {
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
        Framing::None => {}
    }
    if !keep_alive {
        out.extend_from_slice(b"connection: close\r\n");
    }
    out.extend_from_slice(b"\r\n");
}
