//! Authorities of requests: `Host` and `:authority` (RFC 9110 section 7.2).

use super::HeadError;
use http::{HeaderMap, header};

/// Checks `Host` (RFC 9112 section 3.2): one valid field. HTTP/1.0 clients may leave it out.
///
/// # Errors
/// A missing, repeated or malformed field.
pub fn check_host(headers: &HeaderMap, may_be_missing: bool) -> Result<(), HeadError> {
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if may_be_missing => Ok(()),
        (None, _) => Err(HeadError::bad_request("no Host header field")),
        (Some(_), Some(_)) => Err(HeadError::bad_request("more than one Host header field")),
        (Some(host), None) if is_authority(host.as_bytes()) => Ok(()),
        (Some(_), None) => Err(HeadError::bad_request("invalid Host header field")),
    }
}

/// Checks `:authority` and `Host` of HTTP/2 (RFC 9113 section 8.3.1): one is present, both are valid and equal.
///
/// # Errors
/// A missing or malformed authority, or two that differ.
pub fn check_authority(authority: Option<&str>, headers: &HeaderMap) -> Result<(), HeadError> {
    let Some(authority) = authority else { return check_host(headers, false) };
    if authority.is_empty() || !is_authority(authority.as_bytes()) {
        return Err(HeadError::bad_request("invalid :authority"));
    }
    check_host(headers, true)?;
    match headers.get(header::HOST) {
        Some(host) if !host.as_bytes().eq_ignore_ascii_case(authority.as_bytes()) => {
            Err(HeadError::bad_request("Host and :authority differ"))
        }
        _ => Ok(()),
    }
}

/// Tells whether bytes are `uri-host [ ":" port ]` (RFC 9110 section 7.2), without user information.
pub(super) fn is_authority(text: &[u8]) -> bool {
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

/// Tells whether bytes are a registered name or an IPv4 address (RFC 3986 section 3.2.2).
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

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

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
}
