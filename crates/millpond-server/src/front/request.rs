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

    /// The value of the first header field of a name, where it is text.
    pub(crate) fn header(&self, name: http::HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|v| v.to_str().ok())
    }

    /// The value of a field that may occur once.
    pub(crate) fn single(&self, name: http::HeaderName) -> Single<'_> {
        let mut fields = self.headers.get_all(name).iter();
        match (fields.next(), fields.next()) {
            (None, _) => Single::Absent,
            (Some(value), None) => value.to_str().map_or(Single::Invalid, Single::Value),
            (Some(_), Some(_)) => Single::Invalid,
        }
    }

    /// Whether any field of a name contains a text: for lists, whose members may be spread over fields (RFC 9110 5.3).
    pub(crate) fn contains(&self, name: http::HeaderName, text: &str) -> bool {
        let has = |value: &http::HeaderValue| {
            value.as_bytes().windows(text.len().max(1)).any(|part| part.eq_ignore_ascii_case(text.as_bytes()))
        };
        self.headers.get_all(name).iter().any(has)
    }
}

/// A field that may occur once (RFC 9110 section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Single<'a> {
    /// There is none.
    Absent,
    /// Its value.
    Value(&'a str),
    /// It isn't text, or there are several.
    Invalid,
}

impl<'a> Single<'a> {
    /// The value, where there is a valid one.
    pub(crate) fn value(self) -> Option<&'a str> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Invalid => None,
        }
    }
}

/// A reply: head and body.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}
