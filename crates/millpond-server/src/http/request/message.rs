//! A request head, whichever version of HTTP carried it.

use http::{HeaderMap, HeaderName, HeaderValue, Method};

/// A request head.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// Path and query, still percent-encoded.
    pub target: String,
    /// Header fields.
    pub headers: HeaderMap,
}

impl Request {
    /// Splits the target into its path, still percent-encoded, and its query. A fragment is dropped.
    pub fn split(&self) -> (&str, &str) {
        let target = self.target.split('#').next().unwrap_or("");
        target.split_once('?').unwrap_or((target, ""))
    }

    /// Returns the value of the first field of a name, if that is text.
    pub fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|v| v.to_str().ok())
    }

    /// Returns the value of a field that may occur only once.
    pub fn single(&self, name: HeaderName) -> FieldValue<'_> {
        let mut fields = self.headers.get_all(name).iter();
        match (fields.next(), fields.next()) {
            (None, _) => FieldValue::Absent,
            (Some(value), None) => value.to_str().map_or(FieldValue::Invalid, FieldValue::Valid),
            (Some(_), Some(_)) => FieldValue::Invalid,
        }
    }

    /// Tells whether any field of a name contains a text. The members of a list may be spread over fields (RFC 9110
    /// section 5.3).
    pub fn contains(&self, name: HeaderName, text: &str) -> bool {
        let has = |value: &HeaderValue| {
            value.as_bytes().windows(text.len().max(1)).any(|part| part.eq_ignore_ascii_case(text.as_bytes()))
        };
        self.headers.get_all(name).iter().any(has)
    }
}

/// Tells whether any field of a name lists a token.
pub(crate) fn names_token(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    let lists = |value: &HeaderValue| {
        value.as_bytes().split(|b| *b == b',').any(|t| t.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
    };
    headers.get_all(name).iter().any(lists)
}

/// The value of a field that may occur only once (RFC 9110 section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// No such field.
    Absent,
    /// One field, with text as its value.
    Valid(&'a str),
    /// Several fields, or a value that is not text.
    Invalid,
}

impl<'a> FieldValue<'a> {
    /// Returns the value, if there is a valid one.
    pub fn valid(self) -> Option<&'a str> {
        match self {
            Self::Valid(value) => Some(value),
            Self::Absent | Self::Invalid => None,
        }
    }
}
