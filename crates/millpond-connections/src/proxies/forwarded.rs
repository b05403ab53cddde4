//! `X-Forwarded-For`, and `Forwarded` of RFC 7239: the chain of proxies that a request has passed.
//!
//! Each proxy appends the address of its own client. So the list is read from its end: the first address that is not that of a
//! trusted proxy is the client's, and all before it may be forged.

use std::{
    borrow::Cow,
    net::{IpAddr, SocketAddr},
};

/// An entry of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Address of the client of a proxy; `None` where it is hidden or can't be read.
    pub address: Option<IpAddr>,
    /// Whether that client is connected by TLS, where the entry tells so.
    pub is_secure: bool,
}

impl Hop {
    const UNKNOWN: Self = Self { address: None, is_secure: false };
}

/// Returns the chain in the lines of `X-Forwarded-For`, the nearest hop last. An empty entry is an unknown hop: otherwise a client
/// whose proxy appends nothing chooses its own address.
pub fn x_forwarded_for<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Vec<Hop> {
    let of_line = |line: &[u8]| -> Vec<Hop> {
        let line = String::from_utf8_lossy(line);
        let is_empty = line.split(',').all(|entry| entry.trim().is_empty());
        let entries = line.split(',').map(str::trim).filter(|_| !is_empty);
        entries.map(|entry| Hop { address: address(entry), ..Hop::UNKNOWN }).collect()
    };
    lines.flat_map(of_line).collect()
}

/// Returns the chain in the lines of `Forwarded` (RFC 7239 section 4), the nearest hop last. A line with a quoted string that does not
/// end is one unknown hop: otherwise a client could hide what the proxy appended.
pub fn forwarded<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Vec<Hop> {
    let of_line = |line: &[u8]| -> Vec<Hop> {
        let line = String::from_utf8_lossy(line);
        let Some(elements) = split(&line, ',') else { return vec![Hop::UNKNOWN] };
        let elements = elements.into_iter().filter(|element| !element.trim().is_empty());
        elements.map(|element| hop(element).unwrap_or(Hop::UNKNOWN)).collect()
    };
    lines.flat_map(of_line).collect()
}

/// Returns the hop of the client: the nearest one whose address is not trusted, or the farthest. A hop without an address hides all
/// behind it. `None` for an empty chain.
pub fn client(hops: &[Hop], is_trusted: impl Fn(IpAddr) -> bool) -> Option<Hop> {
    let ends = |hop: &&Hop| hop.address.is_none_or(|address| !is_trusted(address));
    hops.iter().rev().find(ends).or(hops.first()).copied()
}

/// Whether the last entry of a list, such as that of `X-Forwarded-Proto`, is `https`.
pub fn ends_with_https(list: &[u8]) -> bool {
    list.rsplit(|byte| *byte == b',').next().is_some_and(|last| last.trim_ascii().eq_ignore_ascii_case(b"https"))
}

/// Parses a forwarded-element: pairs of names and values. `None` where a name occurs twice or there is no address.
fn hop(element: &str) -> Option<Hop> {
    let (mut found, mut is_secure) = (None, false);
    for pair in split(element, ';')? {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if name.trim().eq_ignore_ascii_case("for") {
            if found.replace(unquoted(value.trim())).is_some() {
                return None;
            }
        } else if name.trim().eq_ignore_ascii_case("proto") {
            is_secure = unquoted(value.trim()).eq_ignore_ascii_case("https");
        }
    }
    Some(Hop { address: Some(address(&found?)?), is_secure })
}

/// Splits a text at a separator outside of quoted strings. `None` where one does not end.
fn split(text: &str, separator: char) -> Option<Vec<&str>> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ if character == separator && !is_quoted => {
                parts.push(&text[start..at]);
                start = at + character.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    (!is_quoted).then_some(parts)
}

/// The text of a token or of a quoted string (RFC 9110 section 5.6.4).
fn unquoted(value: &str) -> Cow<'_, str> {
    let Some(inside) = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return value.into() };
    if inside.contains('\\') { inside.replace('\\', "").into() } else { inside.into() }
}

/// Parses an address with or without brackets and a port.
fn address(text: &str) -> Option<IpAddr> {
    let inside = || text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let plain = text.parse().ok().or_else(|| inside()?.parse::<std::net::Ipv6Addr>().ok().map(IpAddr::from));
    let found = plain.or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    found.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(hops: &[Hop]) -> String {
        let is_trusted = |address: IpAddr| address.to_string().starts_with("10.");
        client(hops, is_trusted).map_or("nobody".into(), |hop| hop.address.map_or("unknown".into(), |a| a.to_string()))
    }

    #[test]
    fn the_nearest_address_that_is_not_trusted_is_the_clients() {
        for (lines, found) in [
            (&["192.0.2.1"][..], "192.0.2.1"),
            (&["127.0.0.1, 192.0.2.1"], "192.0.2.1"),
            (&["127.0.0.1, 192.0.2.1, 10.0.0.1"], "192.0.2.1"),
            (&["192.0.2.1", "192.0.2.2,10.0.0.1", "10.0.0.2"], "192.0.2.2"),
            (&["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            (&["192.0.2.1:4711"], "192.0.2.1"),
            (&["[2001:db8::1]:4711"], "2001:db8::1"),
            (&["[2001:db8::1]"], "2001:db8::1"),
            (&["2001:db8::1"], "2001:db8::1"),
            (&["::ffff:192.0.2.1"], "192.0.2.1"),
            (&["192.0.2.1, unknown, 10.0.0.1"], "unknown"),
            (&["192.0.2.1, [192.0.2.1]"], "unknown"),
            (&["192.0.2.1,,"], "unknown"),
            (&["10.1.2.3,"], "unknown"),
            (&["10.1.2.3,", "192.0.2.1"], "192.0.2.1"),
            (&["192.0.2.1,,10.0.0.1"], "unknown"),
            (&["", ","], "nobody"),
        ] {
            assert_eq!(of(&x_forwarded_for(lines.iter().map(|line| line.as_bytes()))), found, "{lines:?}");
        }
        assert_eq!(of(&[]), "nobody");
        assert_eq!(of(&x_forwarded_for([&b"192.0.2.1, \xff"[..]].into_iter())), "unknown");
    }

    #[test]
    fn elements_of_forwarded_are_read_as_the_standard_has_them() {
        for (lines, found) in [
            // RFC 7239 sections 4 and 6.
            (&["for=\"_gazonk\""][..], "unknown"),
            (&["For=\"[2001:db8:cafe::17]:4711\""], "2001:db8:cafe::17"),
            (&["for=192.0.2.60;proto=http;by=203.0.113.43"], "192.0.2.60"),
            (&["for=192.0.2.43, for=198.51.100.17"], "198.51.100.17"),
            (&["for=192.0.2.43;by=\"a,b;c\\\"d\", for=10.0.0.1"], "192.0.2.43"),
            (&["for=\"192.0.2.43:47011\""], "192.0.2.43"),
            (&["for=unknown"], "unknown"),
            // A client can't hide what the proxy appends.
            (&["for=127.0.0.1;a=\", for=192.0.2.1"], "unknown"),
            (&["for=127.0.0.1, for=\", for=\"[2001:db8::1]\""], "unknown"),
            (&["for=\"", "for=192.0.2.1"], "192.0.2.1"),
            (&["for=127.0.0.1;for=192.0.2.1"], "unknown"),
            (&["for=\"192.0.2.1\"x"], "unknown"),
            (&[" , "], "nobody"),
        ] {
            assert_eq!(of(&forwarded(lines.iter().map(|line| line.as_bytes()))), found, "{lines:?}");
        }
        let secure = |text: &str| forwarded([text.as_bytes()].into_iter()).last().unwrap().is_secure;
        assert!(secure("for=192.0.2.1;proto=HTTPS") && secure("proto=\"https\";for=192.0.2.1"));
        assert!(!secure("for=192.0.2.1;proto=https, for=192.0.2.1"));
    }
}
