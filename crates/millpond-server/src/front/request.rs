//! Requests and replies, apart from the protocol that carries them.

use crate::delivery::Body;
use http::{HeaderMap, Method, StatusCode};

/// A request head.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// Path and query, as sent.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
}

impl Request {
    /// The path, still percent-encoded, and the query.
    pub(crate) fn split(&self) -> (&str, &str) {
        let target = self.target.split('#').next().unwrap_or("");
        target.split_once('?').unwrap_or((target, ""))
    }

    /// A header field's value, where it is text.
    pub(crate) fn header(&self, name: http::HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|v| v.to_str().ok())
    }
}

/// A reply: head and body.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}
