//! Byte ranges of requests (RFC 9110 section 14).

use std::ops::Range;

/// What a `Range` field asks of a body of a known length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The whole: no range, one that isn't of bytes, one that is malformed, or several (14.2 lets a server ignore them).
    Whole,
    /// One range.
    Part(Range<u64>),
    /// A range that begins behind the end (416).
    Unsatisfiable,
}

/// Reads a `Range` field's value.
pub(crate) fn parse(value: Option<&str>, len: u64) -> Asked {
    // Names of units are case-insensitive (14.1).
    let Some((unit, spec)) = value.and_then(|v| v.trim().split_once('=')) else { return Asked::Whole };
    if !unit.eq_ignore_ascii_case("bytes") {
        return Asked::Whole;
    }
    if spec.contains(',') {
        return Asked::Whole;
    }
    let Some((first, last)) = spec.trim().split_once('-') else { return Asked::Whole };
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last && first < len => {
            Asked::Part(first..last.saturating_add(1).min(len))
        }
        (Some(first), Some(last)) if first > last => Asked::Whole,
        (Some(first), None) if last.is_empty() && first < len => Asked::Part(first..len),
        (Some(_), Some(_)) => Asked::Unsatisfiable,
        (Some(_), None) if last.is_empty() => Asked::Unsatisfiable,
        (None, Some(0)) if first.is_empty() => Asked::Unsatisfiable,
        (None, Some(suffix)) if first.is_empty() && len > 0 => Asked::Part(len.saturating_sub(suffix)..len),
        (None, Some(_)) if first.is_empty() => Asked::Unsatisfiable,
        _ => Asked::Whole,
    }
}

/// Digits as a number; one that is too large lies behind every end.
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
        assert_eq!(parse(None, 100), Asked::Whole);
        assert_eq!(ask("bytes=0-9"), Asked::Part(0..10));
        assert_eq!(ask("bytes=90-"), Asked::Part(90..100));
        assert_eq!(ask("bytes=90-1000"), Asked::Part(90..100));
        assert_eq!(ask("bytes=-10"), Asked::Part(90..100));
        assert_eq!(ask("bytes=-1000"), Asked::Part(0..100));
        assert_eq!(ask("bytes=100-"), Asked::Unsatisfiable);
        assert_eq!(ask("bytes=100-120"), Asked::Unsatisfiable);
        assert_eq!(ask("bytes=-0"), Asked::Unsatisfiable);
        assert_eq!(ask("Bytes=0-9"), Asked::Part(0..10));
        assert_eq!(ask("bytes=99999999999999999999-"), Asked::Unsatisfiable);
        assert_eq!(ask("bytes=90-99999999999999999999"), Asked::Part(90..100));
        assert_eq!(ask("bytes=-99999999999999999999"), Asked::Part(0..100));
        assert_eq!(parse(Some("bytes=-5"), 0), Asked::Unsatisfiable);
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
            assert_eq!(ask(ignored), Asked::Whole, "{ignored}");
        }
    }
}
