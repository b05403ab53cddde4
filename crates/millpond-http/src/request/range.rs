//! Byte ranges of requests (RFC 9110 section 14).

use std::ops::Range;

/// The part of a body that a client requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestedRange {
    /// The whole body: no range, another unit than bytes, a malformed range, or several ranges. RFC 9110 section 14.2
    /// lets a server ignore them.
    Whole,
    /// One range, not empty and inside the body.
    Bytes(Range<u64>),
    /// A range that begins after the end of the body: status 416.
    Unsatisfiable,
}

/// Parses the value of a `Range` field for a body of `len` bytes.
pub fn parse(value: Option<&str>, len: u64) -> RequestedRange {
    // Names of range units are case-insensitive (RFC 9110 section 14.1).
    let Some((unit, spec)) = value.and_then(|v| v.trim().split_once('=')) else { return RequestedRange::Whole };
    if !unit.eq_ignore_ascii_case("bytes") {
        return RequestedRange::Whole;
    }
    if spec.contains(',') {
        return RequestedRange::Whole;
    }
    let Some((first, last)) = spec.trim().split_once('-') else { return RequestedRange::Whole };
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last && first < len => {
            RequestedRange::Bytes(first..last.saturating_add(1).min(len))
        }
        (Some(first), Some(last)) if first > last => RequestedRange::Whole,
        (Some(first), None) if last.is_empty() && first < len => RequestedRange::Bytes(first..len),
        (Some(_), Some(_)) => RequestedRange::Unsatisfiable,
        (Some(_), None) if last.is_empty() => RequestedRange::Unsatisfiable,
        (None, Some(0)) if first.is_empty() => RequestedRange::Unsatisfiable,
        (None, Some(suffix)) if first.is_empty() && len > 0 => RequestedRange::Bytes(len.saturating_sub(suffix)..len),
        (None, Some(_)) if first.is_empty() => RequestedRange::Unsatisfiable,
        _ => RequestedRange::Whole,
    }
}

/// Parses decimal digits. A number that is too large becomes `u64::MAX`, which lies after the end of every body.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let ask = |value| parse(Some(value), 100);
        assert_eq!(parse(None, 100), RequestedRange::Whole);
        assert_eq!(ask("bytes=0-9"), RequestedRange::Bytes(0..10));
        assert_eq!(ask("bytes=90-"), RequestedRange::Bytes(90..100));
        assert_eq!(ask("bytes=90-1000"), RequestedRange::Bytes(90..100));
        assert_eq!(ask("bytes=-10"), RequestedRange::Bytes(90..100));
        assert_eq!(ask("bytes=-1000"), RequestedRange::Bytes(0..100));
        assert_eq!(ask("bytes=100-"), RequestedRange::Unsatisfiable);
        assert_eq!(ask("bytes=100-120"), RequestedRange::Unsatisfiable);
        assert_eq!(ask("bytes=-0"), RequestedRange::Unsatisfiable);
        assert_eq!(ask("Bytes=0-9"), RequestedRange::Bytes(0..10));
        assert_eq!(ask("bytes=99999999999999999999-"), RequestedRange::Unsatisfiable);
        assert_eq!(ask("bytes=90-99999999999999999999"), RequestedRange::Bytes(90..100));
        assert_eq!(ask("bytes=-99999999999999999999"), RequestedRange::Bytes(0..100));
        assert_eq!(parse(Some("bytes=-5"), 0), RequestedRange::Unsatisfiable);
        for ignored in [
            "bytes=9-0",
            "bytes=a-b",
            "bytes=0-1,5-6",
            "items=0-1",
            "bytes=",
            "bytes=-",
            "bytes=+1-2",
            "bytes 0-1",
            "=0-1",
        ] {
            assert_eq!(ask(ignored), RequestedRange::Whole, "{ignored}");
        }
    }
}
