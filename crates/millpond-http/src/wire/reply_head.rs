//! Heads of HTTP/1.1 replies (RFC 9112).

use super::front_end::Reply;
use http::StatusCode;
use std::io::Write as _;

/// Framing of a reply's body: how the client finds its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// `Content-Length`.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// The end of the connection, for HTTP/1.0 without a known length.
    Close,
    /// No body, as with status 204 and 304.
    None,
}

/// Chooses the framing of a reply (RFC 9112 section 6.3).
pub(super) fn framing(reply: &Reply, http10: bool) -> Framing {
    match (reply.status, reply.body.len()) {
        (StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED, _) => Framing::None,
        (_, Some(len)) => Framing::Length(len),
        (_, None) if http10 => Framing::Close,
        (_, None) => Framing::Chunked,
    }
}

/// Whether the connection stays open after a reply, and how the reply says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Persistence {
    /// Open, without a field: the default of HTTP/1.1.
    Default,
    /// Open, with `Connection: keep-alive` for a client of HTTP/1.0.
    KeepAlive,
    /// Closed, with `Connection: close`.
    Close,
}

/// Appends status line and header fields to `out`.
pub(super) fn write(reply: &Reply, framing: Framing, persistence: Persistence, out: &mut Vec<u8>) {
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
        Persistence::Default => {}
        Persistence::KeepAlive => out.extend_from_slice(b"connection: keep-alive\r\n"),
        Persistence::Close => out.extend_from_slice(b"connection: close\r\n"),
    }
    out.extend_from_slice(b"\r\n");
}
