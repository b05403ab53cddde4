//! Admission to the admin address: requests of programs and of its own pages, with the token where one is set.

use super::hosts::AllowedHosts;
use crate::problem::Problem;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header, uri::Authority};
use sha2::{Digest, Sha256};
use std::fmt;

/// Least length of a token.
const LEAST: usize = 16;
const MOST: usize = 512;

/// The token of the admin API. It is kept as a hash, and is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct AdminToken {
    hash: [u8; 32],
    is_strong: bool,
}

impl AdminToken {
    /// The form of a token, in words.
    pub(super) const EXPECTED: &str =
        "the token of the admin API needs 16 characters or more of letters, digits and -._~+/=";

    /// Creates a token of its text.
    pub fn new(text: &str) -> Self {
        // RFC 6750 section 2.1: b64token.
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        Self { hash: hash(text), is_strong: (LEAST..=MOST).contains(&text.len()) && text.bytes().all(fits) }
    }

    /// Whether it has the form of a token, and is long enough.
    pub fn is_strong(&self) -> bool {
        self.is_strong
    }

    /// Whether a text is the token. Hashes are compared, so the time tells nothing of the token.
    pub fn is(&self, text: &str) -> bool {
        self.hash == hash(text)
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(***)")
    }
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

/// The rules of the admin address.
#[derive(Clone, Debug)]
pub(crate) struct AdminGate {
    /// Names that requests may have; `None` for a socket file, which no web page reaches.
    pub(crate) hosts: Option<AllowedHosts>,
    /// Token of the API; `None` admits everyone.
    pub(crate) token: Option<AdminToken>,
}

impl AdminGate {
    /// Checks a request of any path. The error is the problem to answer with.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<(), Problem> {
        let Some(hosts) = &self.hosts else { return Ok(()) };
        hosts.check(request)?;
        let host = request.uri().authority().cloned();
        let host = host.or_else(|| request.headers().get(header::HOST)?.to_str().ok()?.parse().ok());
        match is_foreign(request.method(), request.headers(), host.as_ref()) {
            true => Err(Problem::new(StatusCode::FORBIDDEN)
                .detail("web pages of other origins may neither read nor change anything here")),
            false => Ok(()),
        }
    }

    /// Checks the token of a request to the API.
    pub(super) fn check_token(&self, headers: &HeaderMap) -> Result<(), Problem> {
        // The permissions of the socket file are the credentials of its clients.
        let Some(token) = self.token.as_ref().filter(|_| self.hosts.is_some()) else { return Ok(()) };
        let mut fields = headers.get_all(header::AUTHORIZATION).iter();
        let (field, more) = (fields.next().and_then(|value| value.to_str().ok()), fields.next());
        let given = field.and_then(|field| field.split_once(' '));
        let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer") && more.is_none());
        match given {
            Some((_, given)) if token.is(given.trim()) => Ok(()),
            Some(_) => Err(Problem::new(StatusCode::UNAUTHORIZED).detail("the token is wrong")),
            None => {
                Err(Problem::new(StatusCode::UNAUTHORIZED).detail("Authorization: Bearer TOKEN is needed: admin-token"))
            }
        }
    }
}

/// The challenge of a reply with status 401 (RFC 6750 section 3).
pub(super) const CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer realm=\"millpond admin\"");

/// Whether a page of another origin makes the request. Browsers say so (`Origin`, and Fetch Metadata); following a link
/// to here is allowed.
fn is_foreign(method: &Method, headers: &HeaderMap, host: Option<&Authority>) -> bool {
    let told = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_own_site = told("sec-fetch-site").is_none_or(|site| site == "none" || site == "same-origin");
    if matches!(*method, Method::GET | Method::HEAD) {
        return !is_own_site && told("sec-fetch-dest") != Some("document");
    }
    let is_own = match headers.get(header::ORIGIN) {
        Some(origin) => host.is_some_and(|host| is_origin(origin, host)),
        None => true,
    };
    !is_own || !is_own_site
}

/// Whether an origin is that of a host and port, by any scheme: a proxy may add TLS.
fn is_origin(origin: &HeaderValue, host: &Authority) -> bool {
    let Some((scheme, rest)) = origin.to_str().ok().and_then(|origin| origin.split_once("://")) else { return false };
    let default = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return false,
    };
    let Ok(origin) = rest.parse::<Authority>() else { return false };
    let is_same_host = origin.host().eq_ignore_ascii_case(host.host()) && !rest.contains('@');
    is_same_host && origin.port_u16().unwrap_or(default) == host.port_u16().unwrap_or(default)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(token: Option<&str>) -> AdminGate {
        let hosts = AllowedHosts::new("127.0.0.1:8380".parse().unwrap(), &["edge1.internal".to_owned()]);
        AdminGate { hosts: Some(hosts), token: token.map(AdminToken::new) }
    }

    fn status(result: Result<(), Problem>) -> u16 {
        result.map_or_else(|problem| problem.status.as_u16(), |()| 200)
    }

    #[test]
    fn pages_of_other_origins_neither_read_nor_change() {
        let gate = gate(None);
        for (method, fields, expected) in [
            ("GET", &[][..], 200),
            ("GET", &[("sec-fetch-site", "none")], 200),
            ("GET", &[("sec-fetch-site", "same-origin")], 200),
            ("GET", &[("sec-fetch-site", "cross-site"), ("sec-fetch-dest", "document")], 200),
            ("GET", &[("sec-fetch-site", "cross-site"), ("sec-fetch-dest", "script")], 403),
            ("GET", &[("sec-fetch-site", "same-site"), ("sec-fetch-dest", "iframe")], 403),
            ("POST", &[], 200),
            ("POST", &[("origin", "http://localhost:8380")], 200),
            ("POST", &[("origin", "https://localhost:8380"), ("sec-fetch-site", "same-origin")], 200),
            ("POST", &[("origin", "http://localhost:8080")], 403),
            ("POST", &[("origin", "http://localhost")], 403),
            ("POST", &[("origin", "http://127.0.0.1:8380")], 403),
            ("POST", &[("origin", "http://x@localhost:8380")], 403),
            ("POST", &[("origin", "null")], 403),
            ("POST", &[("origin", "file://localhost:8380")], 403),
            ("POST", &[("origin", "http://page.example")], 403),
            ("POST", &[("origin", "http://localhost:8380"), ("sec-fetch-site", "cross-site")], 403),
            ("POST", &[("sec-fetch-site", "same-site")], 403),
            ("DELETE", &[("origin", "http://page.example:8380")], 403),
        ] {
            let request = Request::builder().method(method).uri("/api/v1/cache").header("host", "localhost:8380");
            let request = fields.iter().fold(request, |request, (name, value)| request.header(*name, *value));
            assert_eq!(status(gate.check(&request.body(()).unwrap())), expected, "{method} {fields:?}");
        }
    }

    #[test]
    fn origins_have_default_ports() {
        let is = |origin: &str, host: &str| is_origin(&HeaderValue::from_str(origin).unwrap(), &host.parse().unwrap());
        assert!(is("https://edge1.internal", "edge1.internal") && is("http://edge1.internal", "Edge1.internal:80"));
        assert!(is("https://edge1.internal:443", "edge1.internal"));
        assert!(!is("http://edge1.internal", "edge1.internal:443") && !is("http://edge2.internal", "edge1.internal"));
    }

    #[test]
    fn the_token_is_wanted_where_there_is_one() {
        let headers = |value: &[&str]| -> HeaderMap {
            value.iter().map(|value| (header::AUTHORIZATION, HeaderValue::from_str(value).unwrap())).collect()
        };
        let token = "correct-horse-battery";
        let good = format!("Bearer {token}");
        for (fields, expected) in [
            (&[&*good][..], 200),
            (&["bearer correct-horse-battery"], 200),
            (&[], 401),
            (&["Bearer correct-horse-batter"], 401),
            (&["Bearer correct-horse-battery2"], 401),
            (&["Basic correct-horse-battery"], 401),
            (&["correct-horse-battery"], 401),
            (&["Bearer"], 401),
        ] {
            assert_eq!(status(gate(Some(token)).check_token(&headers(fields))), expected, "{fields:?}");
            assert_eq!(status(gate(None).check_token(&headers(fields))), 200);
        }
        let mut twice = headers(&[&good]);
        twice.append(header::AUTHORIZATION, HeaderValue::from_static("Bearer x"));
        assert_eq!(status(gate(Some(token)).check_token(&twice)), 401);
        let socket = AdminGate { hosts: None, token: Some(AdminToken::new(token)) };
        assert_eq!(status(socket.check_token(&HeaderMap::new())), 200);
    }
}
