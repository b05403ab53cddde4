//! A request head, whichever version of HTTP carried it.

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use millpond_access::token;
use millpond_connections::proxies::Forwarded;
use std::{borrow::Cow, net::IpAddr};

/// A request head.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// Path and query, still percent-encoded.
    pub target: String,
    /// Header fields.
    pub headers: HeaderMap,
    /// The token that the path began with, which is not in `target`.
    pub token: Option<String>,
    /// The client, where a trusted proxy forwarded the request.
    pub forwarded: Option<Forwarded>,
}

impl Request {
    /// Creates a request. A token at the beginning of the path is taken out of the target.
    pub fn new(method: Method, target: String, headers: HeaderMap) -> Self {
        let Some((token, rest)) = token::split(&target) else {
            return Self { method, target, headers, token: None, forwarded: None };
        };
        let slash = if rest.starts_with('/') { "" } else { "/" };
        let (token, target) = (token.to_owned(), format!("{slash}{rest}"));
        Self { method, target, headers, token: Some(token), forwarded: None }
    }

    /// Returns the address of the client, where that of its connection is `peer`.
    pub fn client(&self, peer: IpAddr) -> IpAddr {
        self.forwarded.map_or(peer, |forwarded| forwarded.address)
    }

    /// Tells whether the client is connected by TLS, where `is_secure` tells it of the connection.
    pub fn is_secure(&self, is_secure: bool) -> bool {
        self.forwarded.map_or(is_secure, |forwarded| forwarded.is_secure)
    }

    /// What stands before the path in URLs for this client: nothing, or the token that its path began with.
    pub fn prefix(&self) -> String {
        self.token.as_ref().map(|token| format!("/~{token}")).unwrap_or_default()
    }

    /// Returns the relative reference from the target to the server's root, such as `../../`. It holds behind a proxy that removes
    /// a prefix of the path, and behind the token that the path began with.
    pub fn root(&self) -> String {
        match self.split().0.matches('/').count() {
            0 | 1 => "./".to_owned(),
            slashes => "../".repeat(slashes - 1),
        }
    }

    /// The target for the log, without tokens and without the argument of CMCD, which has a field of its own.
    pub fn logged_target(&self) -> Cow<'_, str> {
        logged(&self.target)
    }

    /// The URL of the page that the client says to come from, for the log: without tokens, at most `most` characters.
    pub fn logged_referrer(&self, most: usize) -> Option<String> {
        let value = self.headers.get(http::header::REFERER)?;
        let text = String::from_utf8_lossy(value.as_bytes());
        Some(logged(&text).chars().take(most).collect())
    }

    /// The target as the client wrote it.
    pub fn written_target(&self) -> String {
        format!("{}{}", self.prefix(), self.target)
    }

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

/// A target or URL without tokens and without CMCD.
fn logged(target: &str) -> Cow<'_, str> {
    let whole = target.split('#').next().unwrap_or_default();
    let (path, query) = whole.split_once('?').unwrap_or((whole, ""));
    let is_dropped = |pair: &str| token::is_parameter(pair) || pair.starts_with("CMCD=");
    let is_inside = path.split('/').any(token::is_component);
    if !is_inside && !query.split('&').any(is_dropped) {
        return Cow::Borrowed(target);
    }
    // A second token, behind the one that was taken out.
    let path: Vec<&str> = path.split('/').map(|part| if token::is_component(part) { "~" } else { part }).collect();
    let query: Vec<&str> = query.split('&').filter(|pair| !is_dropped(pair)).collect();
    Cow::Owned(format!("{}?{}", path.join("/"), query.join("&")).trim_end_matches('?').to_owned())
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
