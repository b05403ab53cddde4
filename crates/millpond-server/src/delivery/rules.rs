//! Rules for request heads that hold in every version of HTTP (RFC 9110, 9112, 9113): authorities, targets, framing.

use http::{HeaderMap, HeaderName, Method, StatusCode, header};

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    pub(crate) status: StatusCode,
    pub(crate) why: &'static str,
}

impl Bad {
    pub(crate) fn new(status: StatusCode, why: &'static str) -> Self {
        Self { status, why }
    }

    /// 400
    pub(crate) fn request(why: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, why)
    }
}

/// Checks `Host` (RFC 9112 section 3.2): exactly one that is valid; HTTP/1.0 may leave it out.
pub(crate) fn check_host(headers: &HeaderMap, may_be_missing: bool) -> Result<(), Bad> {
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if may_be_missing => Ok(()),
        (None, _) => Err(Bad::request("no Host header field")),
        (Some(_), Some(_)) => Err(Bad::request("more than one Host header field")),
        (Some(host), None) if is_authority(host.as_bytes()) => Ok(()),
        (Some(_), None) => Err(Bad::request("invalid Host header field")),
    }
}

/// Checks `:authority` and `Host` of HTTP/2 (RFC 9113 section 8.3.1): there is one, valid, and both name the same.
pub(crate) fn check_authority(authority: Option<&str>, headers: &HeaderMap) -> Result<(), Bad> {
    let Some(authority) = authority else { return check_host(headers, false) };
    if authority.is_empty() || !is_authority(authority.as_bytes()) {
        return Err(Bad::request("invalid :authority"));
    }
    check_host(headers, true)?;
    match headers.get(header::HOST) {
        Some(host) if !host.as_bytes().eq_ignore_ascii_case(authority.as_bytes()) => {
            Err(Bad::request("Host and :authority differ"))
        }
        _ => Ok(()),
    }
}

/// Whether bytes are `uri-host [ ":" port ]` (RFC 9110 section 7.2), without user information.
fn is_authority(text: &[u8]) -> bool {
    let (host, port) = match text {
        [b'[', rest @ ..] => match rest.iter().position(|b| *b == b']') {
            Some(end) => {
                let literal = std::str::from_utf8(&rest[..end]).unwrap_or_default();
                if literal.parse::<std::net::Ipv6Addr>().is_err() {
                    return false;
                }
                (&b""[..], &rest[end + 1..])
            }
            None => return false,
        },
        _ => text.split_at(text.iter().position(|b| *b == b':').unwrap_or(text.len())),
    };
    is_name(host) && (port.is_empty() || is_port(port))
}

/// A registered name or an IPv4 address (RFC 3986 section 3.2.2).
fn is_name(text: &[u8]) -> bool {
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        rest = match (first, tail) {
            (b'%', [high, low, tail @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => tail,
            (b, tail) if b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(b) => tail,
            _ => return false,
        };
    }
    true
}

fn is_port(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b":").unwrap_or_default();
    text.starts_with(b":")
        && digits.iter().all(u8::is_ascii_digit)
        && digits.iter().try_fold(0_u16, |sum, d| sum.checked_mul(10)?.checked_add(u16::from(d - b'0'))).is_some()
}

/// Path and query of a request target (RFC 9112 section 3.2), whichever of its forms it has.
pub(crate) fn target<'a>(method: &Method, target: &'a str) -> Result<&'a str, Bad> {
    if target.starts_with('/') {
        return Ok(target);
    }
    if *method == Method::CONNECT {
        // Authority form; the method is refused after.
        return Ok("/");
    }
    if target == "*" {
        return if *method == Method::OPTIONS {
            Ok("*")
        } else {
            Err(Bad::request("the target * is for OPTIONS alone"))
        };
    }
    let Some((scheme, rest)) = target.split_once("://") else {
        return Err(Bad::request("the request target is neither a path nor a URI"));
    };
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(Bad::request("the scheme of the request target is neither http nor https"));
    }
    // The authority overrules Host (section 3.2.2); nothing here depends on either.
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if authority.is_empty() || authority.starts_with(':') || !is_authority(authority.as_bytes()) {
        return Err(Bad::request("the request target has an invalid authority"));
    }
    match path {
        "" if *method == Method::OPTIONS => Ok("*"),
        "" => Ok("/"),
        path if path.starts_with('/') => Ok(path),
        // A query right behind the authority: no page that takes one has an empty path.
        _ => Ok("/"),
    }
}

/// Whether a body follows; refuses framing that two readers could take differently (RFC 9112 section 6.3).
pub(crate) fn has_body(headers: &HeaderMap, http10: bool) -> Result<bool, Bad> {
    let length = content_length(headers)?;
    if !headers.contains_key(header::TRANSFER_ENCODING) {
        return Ok(length.is_some_and(|l| l > 0));
    }
    if length.is_some() {
        return Err(Bad::request("both Transfer-Encoding and Content-Length"));
    }
    if http10 {
        return Err(Bad::request("Transfer-Encoding in HTTP/1.0"));
    }
    let mut last_chunked = false;
    let mut unknown = false;
    for value in headers.get_all(header::TRANSFER_ENCODING) {
        for coding in value.to_str().unwrap_or("?").split(',').map(str::trim).filter(|c| !c.is_empty()) {
            if last_chunked {
                return Err(Bad::request("Transfer-Encoding: chunked is not the last coding"));
            }
            last_chunked = coding.eq_ignore_ascii_case("chunked");
            unknown |= !last_chunked;
        }
    }
    match (unknown, last_chunked) {
        (false, true) => Ok(true),
        (true, true) => Err(Bad::new(StatusCode::NOT_IMPLEMENTED, "Transfer-Encoding other than chunked")),
        (true, false) => Err(Bad::request("Transfer-Encoding does not end with chunked")),
        (false, false) => Err(Bad::request("empty Transfer-Encoding")),
    }
}

/// The length that a request declares: one field of digits, as a second one would be a second opinion.
pub(crate) fn content_length(headers: &HeaderMap) -> Result<Option<u64>, Bad> {
    let mut fields = headers.get_all(header::CONTENT_LENGTH).iter();
    let Some(value) = fields.next() else { return Ok(None) };
    if fields.next().is_some() {
        return Err(Bad::request("more than one Content-Length"));
    }
    let digits = value.to_str().ok().filter(|v| !v.is_empty() && v.bytes().all(|b| b.is_ascii_digit()));
    match digits.map(str::parse) {
        Some(Ok(length)) => Ok(Some(length)),
        _ => Err(Bad::request("invalid Content-Length")),
    }
}

/// Refuses what can't be fulfilled (RFC 9110 section 10.1.1): 100-continue is met by the final reply.
pub(crate) fn check_expectation(headers: &HeaderMap, http10: bool) -> Result<(), Bad> {
    let known = |value: &http::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if http10 || headers.get_all(header::EXPECT).iter().all(known) {
        return Ok(());
    }
    Err(Bad::new(StatusCode::EXPECTATION_FAILED, "the only expectation known is 100-continue"))
}

/// Whether any of the fields of a name lists a token.
pub(crate) fn names_token(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    let lists = |value: &http::HeaderValue| {
        value.as_bytes().split(|b| *b == b',').any(|t| t.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
    };
    headers.get_all(name).iter().any(lists)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(HeaderName, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            map.append(name, value.parse().unwrap());
        }
        map
    }

    #[test]
    fn authorities() {
        for good in ["", "a", "a.b-c:80", "127.0.0.1:8080", "[::1]", "[2001:db8::1]:443", "a:", "%41b", "x,y"] {
            assert!(is_authority(good.as_bytes()), "{good}");
        }
        for bad in
            ["a b", "a/b", "u@a", "a:b", "a:65536", "[::1", "[x]", "[::1]x", "a?b", "a#", "%4", "ü", "a:1:2", "a\\b"]
        {
            assert!(!is_authority(bad.as_bytes()), "{bad}");
        }
        let host = |h| headers(&[(header::HOST, h)]);
        assert!(check_authority(Some("a:1"), &host("A:1")).is_ok() && check_authority(None, &host("a")).is_ok());
        assert!(check_authority(Some("a"), &host("b")).is_err() && check_authority(None, &HeaderMap::new()).is_err());
        assert!(check_authority(Some("u@a"), &HeaderMap::new()).is_err());
    }

    #[test]
    fn framing_is_never_guessed() {
        let body = |fields: &[(HeaderName, &str)]| has_body(&headers(fields), false).map_err(|b| b.status.as_u16());
        let (length, coding) = (header::CONTENT_LENGTH, header::TRANSFER_ENCODING);
        assert_eq!(body(&[]), Ok(false));
        assert_eq!(body(&[(length.clone(), "0")]), Ok(false));
        assert_eq!(body(&[(length.clone(), "00")]), Ok(false));
        assert_eq!(body(&[(length.clone(), "54")]), Ok(true));
        assert_eq!(body(&[(length.clone(), "0"), (length.clone(), "54")]), Err(400));
        for bad in ["-1", "+1", "1, 1", "0x1", "", "18446744073709551616"] {
            assert_eq!(body(&[(length.clone(), bad)]), Err(400), "{bad}");
        }
        assert_eq!(body(&[(coding.clone(), "Chunked")]), Ok(true));
        assert_eq!(body(&[(coding.clone(), "chunked"), (length, "5")]), Err(400));
        assert_eq!(body(&[(coding.clone(), "gzip, chunked")]), Err(501));
        assert_eq!(body(&[(coding.clone(), "chunked, gzip")]), Err(400));
        assert_eq!(body(&[(coding.clone(), "chunked"), (coding.clone(), "chunked")]), Err(400));
        assert_eq!(body(&[(coding.clone(), "identity")]), Err(400));
        assert!(has_body(&headers(&[(coding, "chunked")]), true).is_err());
    }

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
}
