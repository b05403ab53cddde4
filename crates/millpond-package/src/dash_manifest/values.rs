//! Values of attributes (XML Schema).

use std::time::Duration;

/// Longest time that is read: with it, nanoseconds fit in 64 bits with a sign.
const LONGEST: u64 = 1 << 33;

/// Reads a duration, such as `PT1H2M3.5S` (xs:duration). Years have 365 days and months 30.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let rest = text.trim().strip_prefix('P')?;
    let (days, time) = rest.split_once('T').unwrap_or((rest, ""));
    if days.is_empty() && time.is_empty() {
        return None;
    }
    let days = parts(days, &[('Y', 365 * 86_400), ('M', 30 * 86_400), ('D', 86_400)])?;
    let time = parts(time, &[('H', 3600), ('M', 60), ('S', 1)])?;
    days.checked_add(time).filter(|sum| sum.as_secs() < LONGEST)
}

fn parts(mut text: &str, units: &[(char, u32)]) -> Option<Duration> {
    let (mut sum, mut units) = (Duration::ZERO, units.iter());
    while !text.is_empty() {
        let end = text.find(|character: char| character.is_ascii_alphabetic())?;
        let (number, rest) = text.split_at_checked(end)?;
        let unit = rest.chars().next()?;
        let (_, seconds) = units.find(|(known, _)| *known == unit)?;
        sum = sum.checked_add(seconds_of(number)?.checked_mul(*seconds)?)?;
        text = rest.get(1..)?;
    }
    Some(sum)
}

/// Reads seconds, such as `1.960`.
pub(super) fn seconds_of(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let seconds: u64 = whole.parse().ok().filter(|seconds| *seconds < LONGEST)?;
    let nanos: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    Some(Duration::new(seconds, nanos.parse().ok()?))
}

/// Reads a date with its time. One without a zone is of UTC.
pub(super) fn wall(text: &str) -> Option<Duration> {
    let text = text.trim();
    let time = millpond_utc::parse(text).or_else(|| millpond_utc::parse(&format!("{text}Z")));
    time.filter(|time| time.as_secs() < LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_dates() {
        let millis = |text: &str| duration(text).map(|time| time.as_millis());
        assert_eq!(millis("PT1H2M3.5S"), Some(3_723_500));
        assert_eq!(millis("P1DT0.0401S"), Some(86_400_040));
        assert_eq!(millis("P1Y2M"), Some((365 + 60) * 86_400_000));
        for text in ["", "P", "PT", "1S", "PT-1S", "PTS", "PT1S2M", "PT99999999999S", "PT1,5S", "P1S", "PT1é"] {
            assert_eq!(duration(text), None, "{text}");
        }
        assert_eq!(seconds_of("1.9600000001"), Some(Duration::from_millis(1960)));
        assert_eq!(seconds_of("INF"), None);
        assert_eq!(wall("2026-11-22T10:00:00"), wall("2026-11-22T11:00:00+01:00"));
        assert_eq!(wall("1970-01-01T00:00:00.000Z"), Some(Duration::ZERO));
    }
}
