//! Web origins whose pages may play (CORS, <https://fetch.spec.whatwg.org/#http-cors-protocol>).

use http::{HeaderMap, HeaderValue, header};
use millpond_settings::value::{self, BadValue};

/// Fields of requests that players of pages send.
const REQUEST_FIELDS: HeaderValue = HeaderValue::from_static(
    "*, Authorization, Content-Type, If-Match, Range, If-Range, If-None-Match, If-Modified-Since, Cache-Control, CMCD-Request, CMCD-Object, CMCD-Status, \
     CMCD-Session",
);
/// Fields of replies that pages may read.
const REPLY_FIELDS: HeaderValue = HeaderValue::from_static(
    "*, Accept-Patch, Content-Length, Content-Range, Date, ETag, Link, Location, Retry-After, WWW-Authenticate, X-Request-Id",
);
/// Time for which browsers keep the answer to a preflight, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("86400");

/// Web origins whose pages may play.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CorsOrigins {
    /// Those of this server only.
    None,
    /// All, without credentials of the browser.
    All,
    /// These, also with credentials of the browser.
    Some(Vec<HeaderValue>),
}

impl CorsOrigins {
    /// Parses `*`, `none`, or origins with commas between them.
    pub(super) fn parse(text: &str) -> Result<Self, BadValue> {
        match text {
            "*" => return Ok(Self::All),
            "none" => return Ok(Self::None),
            _ => {}
        }
        let bad = || BadValue::new("\"*\", origins such as \"https://player.example\", or \"none\"");
        let origins: Option<Vec<_>> = value::list(text).iter().map(|text| origin(text)).collect();
        origins.filter(|origins| !origins.is_empty()).map(Self::Some).ok_or_else(bad)
    }

    /// The text of the setting.
    pub(super) fn show(&self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::All => "*".to_owned(),
            Self::Some(origins) => {
                let texts: Vec<_> = origins.iter().filter_map(|origin| origin.to_str().ok()).collect();
                texts.join(",")
            }
        }
    }

    /// Adds the fields of a reply to a request of an `origin`. Replies that depend on it say so to caches.
    pub fn add(&self, origin: Option<&HeaderValue>, headers: &mut HeaderMap) {
        match self {
            Self::None => {}
            Self::All => {
                headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
                headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, REPLY_FIELDS);
            }
            Self::Some(origins) => {
                headers.append(header::VARY, HeaderValue::from_static("Origin"));
                let Some(origin) = origin.and_then(|origin| origins.iter().find(|known| *known == origin)) else {
                    return;
                };
                headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
                headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
                headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, REPLY_FIELDS);
            }
        }
    }

    /// Adds the fields of the answer to a preflight. `allowed` has the methods.
    pub fn add_preflight(&self, allowed: HeaderValue, headers: &mut HeaderMap) {
        if *self == Self::None {
            return;
        }
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, allowed);
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_FIELDS);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    }
}

/// Parses an origin as browsers write it: scheme, host and a port that is not the scheme's own.
fn origin(text: &str) -> Option<HeaderValue> {
    let url = url::Url::parse(text).ok()?;
    let is_web = matches!(url.scheme(), "http" | "https");
    let written = url.origin().ascii_serialization();
    (is_web && written == text.trim_end_matches('/')).then(|| HeaderValue::from_str(&written).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(setting: &str, origin: Option<&'static str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let origin = origin.map(HeaderValue::from_static);
        CorsOrigins::parse(setting).unwrap().add(origin.as_ref(), &mut headers);
        headers
    }

    #[test]
    fn listed_origins_are_allowed_by_name() {
        let setting = "https://a.example,http://b.example:8080";
        let found = reply(setting, Some("https://a.example"));
        assert_eq!(found[header::ACCESS_CONTROL_ALLOW_ORIGIN], "https://a.example");
        assert_eq!(found[header::ACCESS_CONTROL_ALLOW_CREDENTIALS], "true");
        for other in [None, Some("https://b.example:8080"), Some("https://a.example.evil"), Some("null")] {
            let found = reply(setting, other);
            assert_eq!((found.len(), &found[header::VARY]), (1, &HeaderValue::from_static("Origin")), "{other:?}");
        }
    }

    #[test]
    fn all_are_allowed_without_credentials() {
        let found = reply("*", Some("https://a.example"));
        assert_eq!(found[header::ACCESS_CONTROL_ALLOW_ORIGIN], "*");
        assert!(!found.contains_key(header::ACCESS_CONTROL_ALLOW_CREDENTIALS) && !found.contains_key(header::VARY));
        assert!(reply("none", Some("https://a.example")).is_empty());
    }

    #[test]
    fn settings_are_shown_as_they_are_read() {
        for text in ["*", "none", "https://a.example", "https://a.example,http://[2001:db8::1]:8080"] {
            assert_eq!(CorsOrigins::parse(text).unwrap().show(), text);
        }
        for text in ["", "a.example", "https://a.example/path", "https://a.example:443", "file:///a", "null"] {
            assert!(CorsOrigins::parse(text).is_err(), "{text}");
        }
    }
}
