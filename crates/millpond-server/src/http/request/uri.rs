//! URIs of requests: targets, paths and queries (RFC 9112 section 3.2, RFC 3986).

use super::{HeadError, authority::is_authority};
use crate::library;
use http::Method;
use std::borrow::Cow;

/// Returns path and query of a request target (RFC 9112 section 3.2), whichever of its four forms it has.
///
/// # Errors
/// A target of another form, another scheme than `http` or `https`, or an invalid authority.
pub fn target<'a>(method: &Method, target: &'a str) -> Result<&'a str, HeadError> {
    if target.starts_with('/') {
        return Ok(target);
    }
    if *method == Method::CONNECT {
        // Authority form. The method is refused later.
        return Ok("/");
    }
    if target == "*" {
        return if *method == Method::OPTIONS {
            Ok("*")
        } else {
            Err(HeadError::bad_request("only OPTIONS may have the target *"))
        };
    }
    let Some((scheme, rest)) = target.split_once("://") else {
        return Err(HeadError::bad_request("the request target is neither a path nor a URI"));
    };
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(HeadError::bad_request("the scheme of the request target is neither http nor https"));
    }
    // The authority overrules Host (section 3.2.2). No reply depends on either.
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if authority.is_empty() || authority.starts_with(':') || !is_authority(authority.as_bytes()) {
        return Err(HeadError::bad_request("the request target has an invalid authority"));
    }
    match path {
        "" if *method == Method::OPTIONS => Ok("*"),
        "" => Ok("/"),
        path if path.starts_with('/') => Ok(path),
        // A query directly after the authority. No resource with an empty path takes a query.
        _ => Ok("/"),
    }
}

/// Decodes a percent-encoded path. Returns `None` if it is not UTF-8 text or contains a NUL.
pub fn decode_path(path: &str) -> Option<Cow<'_, str>> {
    library::decode_path(path).filter(|path| !path.contains('\0'))
}

/// Percent-encodes a path for a URL. Slashes stay.
pub fn encode(path: &str) -> String {
    const KEEP: &percent_encoding::AsciiSet = &percent_encoding::NON_ALPHANUMERIC
        .remove(b'/')
        .remove(b'-')
        .remove(b'_')
        .remove(b'.')
        .remove(b'~')
        .remove(b',');
    percent_encoding::utf8_percent_encode(path, KEEP).to_string()
}

/// Returns the decoded value of a query's first parameter of a name. Missing ones are empty.
pub fn parameter(query: &str, name: &str) -> String {
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| {
            percent_encoding::percent_decode_str(&value.replace('+', " ")).decode_utf8_lossy().into_owned()
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_every_form() {
        let path = |text| target(&Method::GET, text).ok();
        assert_eq!(path("/a?b"), Some("/a?b"));
        assert_eq!(path("http://host/a?b"), Some("/a?b"));
        assert_eq!(path("HTTPS://host:1"), Some("/"));
        assert_eq!(path("http://host?a=/b"), Some("/"));
        for bad in ["*", "a", "ftp://a/b", "http://", "http:///a", "http://u@a/b", "http://a b/", "//"] {
            assert!(bad == "//" || path(bad).is_none(), "{bad}");
        }
        assert_eq!(target(&Method::OPTIONS, "*"), Ok("*"));
        assert_eq!(target(&Method::OPTIONS, "http://a"), Ok("*"));
        assert_eq!(target(&Method::CONNECT, "a:1"), Ok("/"));
    }

    #[test]
    fn an_encoded_path_decodes_to_itself() {
        for path in ["films/a b.mp4", "100%", "ü/é", "a?b#c", ""] {
            assert_eq!(decode_path(&encode(path)).as_deref(), Some(path));
        }
        assert_eq!(decode_path("%00"), None);
        assert_eq!(decode_path("%ff"), None);
    }

    #[test]
    fn parameters_are_decoded() {
        assert_eq!(parameter("a=1&folder=x%2Fy+z&folder=2", "folder"), "x/y z");
        assert_eq!(parameter("folder", "folder"), "");
        assert_eq!(parameter("", "folder"), "");
    }
}
