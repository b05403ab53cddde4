//! Targets of requests (RFC 9112 section 3.2).

use super::{HeadError, authority::is_authority};
use http::Method;

/// Returns path and query of a request target (RFC 9112 section 3.2), whichever of its four forms it has.
///
/// # Errors
/// A target of another form, another scheme than `http` or `https`, or an invalid authority.
pub fn path_and_query<'a>(method: &Method, target: &'a str) -> Result<&'a str, HeadError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_every_form() {
        let path = |text| path_and_query(&Method::GET, text).ok();
        assert_eq!(path("/a?b"), Some("/a?b"));
        assert_eq!(path("http://host/a?b"), Some("/a?b"));
        assert_eq!(path("HTTPS://host:1"), Some("/"));
        assert_eq!(path("http://host?a=/b"), Some("/"));
        for bad in ["*", "a", "ftp://a/b", "http://", "http:///a", "http://u@a/b", "http://a b/", "//"] {
            assert!(bad == "//" || path(bad).is_none(), "{bad}");
        }
        assert_eq!(path_and_query(&Method::OPTIONS, "*"), Ok("*"));
        assert_eq!(path_and_query(&Method::OPTIONS, "http://a"), Ok("*"));
        assert_eq!(path_and_query(&Method::CONNECT, "a:1"), Ok("/"));
    }
}
