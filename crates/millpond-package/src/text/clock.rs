//! Times of cues in subtitle files.

/// Reads a time such as `00:01:02.345` from the start of `text`; returns milliseconds and the rest of the text.
///
/// Accepts the form of WebVTT (4.3.1 "collect a WebVTT timestamp"), and variations found in SubRip files: hours of any
/// length or none, a comma for the point, up to three decimals, single digits.
pub(super) fn take(text: &str) -> Option<(i64, &str)> {
    let (first, rest) = number(text)?;
    let (second, rest) = number(rest.strip_prefix(':')?)?;
    let (hours, minutes, seconds, rest) = match rest.strip_prefix(':') {
        Some(rest) => {
            let (third, rest) = number(rest)?;
            (first, second, third, rest)
        }
        None => (0, first, second, rest),
    };
    if minutes > 59 || seconds > 59 {
        return None;
    }
    let (millis, rest) = match rest.strip_prefix(['.', ',']) {
        Some(rest) => fraction(rest)?,
        None => (0, rest),
    };
    let millis =
        hours.checked_mul(3600)?.checked_add(minutes * 60 + seconds)?.checked_mul(1000)?.checked_add(millis)?;
    Some((millis, rest))
}

/// The line before a cue's text, such as `00:00:01.000 --> 00:00:02.500 line:0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timing<'a> {
    /// In milliseconds.
    pub(super) start: i64,
    /// In milliseconds.
    pub(super) end: i64,
    /// Cue settings: the rest of the line behind the times.
    pub(super) rest: &'a str,
}

/// Reads the line before a cue's text.
pub(super) fn take_timing(line: &str) -> Option<Timing<'_>> {
    let (start, rest) = take(line.trim_start())?;
    let (end, rest) = take(rest.trim_start().strip_prefix("-->")?.trim_start())?;
    Some(Timing { start, end, rest })
}

fn digits(text: &str) -> (&str, &str) {
    let len = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at(len)
}

fn number(text: &str) -> Option<(i64, &str)> {
    let (digits, rest) = digits(text);
    Some((digits.parse().ok()?, rest))
}

fn fraction(text: &str) -> Option<(i64, &str)> {
    let (digits, rest) = digits(text);
    let millis = digits.bytes().chain(*b"00").take(3).fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    (1..=3).contains(&digits.len()).then_some((millis, rest))
}

/// Appends a time in the form of WebVTT, with at least two digits of hours; times before 0 become 0.
pub(super) fn push(out: &mut String, millis: i64) {
    use std::fmt::Write;
    let millis = millis.max(0);
    let (seconds, rest) = (millis / 1000, millis % 1000);
    // Writing to a string never fails.
    let _ = write!(out, "{:02}:{:02}:{:02}.{rest:03}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_they_are_found() {
        let cases = [
            ("00:00:01.000", Some(1000)),
            ("01:02.345", Some(62_345)),
            ("100:00:00.001", Some(360_000_001)),
            ("00:00:01,5", Some(1500)),
            ("0:0:1", Some(1000)),
            ("00:60:00.000", None),
            ("00:00:61.000", None),
            ("00:00:00.", None),
            ("00:00:00.1234", None),
            ("12", None),
            (":00:01", None),
            ("-1:00:00.000", None),
            ("9223372036854775807:00:00.000", None),
            ("99999999999999999999:00:00.000", None),
        ];
        for (text, millis) in cases {
            assert_eq!(take(text).map(|t| t.0), millis, "{text}");
        }
    }

    #[test]
    fn spans_with_and_without_room() {
        assert_eq!(
            take_timing("00:01.000 --> 00:02.000 line:0"),
            Some(Timing { start: 1000, end: 2000, rest: " line:0" })
        );
        assert_eq!(take_timing(" 00:01.000-->00:02.000"), Some(Timing { start: 1000, end: 2000, rest: "" }));
        assert_eq!(take_timing("00:01.000 -> 00:02.000"), None);
    }

    #[test]
    fn writing_is_the_reverse() {
        for millis in [0, 999, 61_001, 3_600_000, 359_999_999, 360_000_000] {
            let mut out = String::new();
            push(&mut out, millis);
            assert_eq!(take(&out), Some((millis, "")));
        }
        let mut out = String::new();
        push(&mut out, -5);
        assert_eq!(out, "00:00:00.000");
    }
}
