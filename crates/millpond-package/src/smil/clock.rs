//! Clock values of SMIL 3.0 (section 5.4.3), and ranges of them as command lines write them.

use millpond_media::stitch::StitchClip;
use std::time::Duration;

/// Longest time that is read: more than eleven years.
const MOST: Duration = Duration::from_secs(100_000 * 3600);

/// Reads a clock value: `1:02:03.5`, `02:03`, `90`, `90s`, `1.5min`, `2h` or `500ms`, also after `npt=`.
pub(super) fn time(text: &str) -> Option<Duration> {
    let text = text.trim();
    let text = text.strip_prefix("npt=").unwrap_or(text);
    let time = if text.contains(':') { clock(text) } else { count(text) };
    time.filter(|time| *time <= MOST)
}

/// The reason why a text is no range of clock values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// It has no dash: it may be meant as the start or as the end.
    #[error("found the part {0:?}, expected {0}- for the file from there on, or -{0} for the file up to there")]
    Alone(String),
    /// It has the unit `m`, which may be meant as minutes.
    #[error(
        "found the part {0:?} with the unit m, expected minutes as min or with a colon, such as 10s-5min or 10s-5:00"
    )]
    Minutes(String),
    /// It is something else, or a time in it is none.
    #[error("found the part {0:?}, expected FROM-TO, such as 10s-40s, 1:30- (from there on) or -90s (the first 90 s)")]
    Form(String),
    /// It ends before it begins.
    #[error("found the part {0:?}, which ends before it begins, expected a later end than start, such as 10s-40s")]
    Order(String),
}

/// Reads a range of clock values, such as `10s-40s`, `10s-` or `-40s`.
///
/// # Errors
/// The text has another form, or the range ends where it begins or before.
pub fn range(text: &str) -> Result<StitchClip, RangeError> {
    let is_minutes = |part: &str| part.strip_suffix('m').is_some_and(|number| decimal(number, 1).is_some());
    let form = || match text.split('-').any(is_minutes) {
        true => RangeError::Minutes(text.to_owned()),
        false => RangeError::Form(text.to_owned()),
    };
    let Some((from, to)) = text.split_once('-') else {
        return Err(if time(text).is_some() { RangeError::Alone(text.to_owned()) } else { form() });
    };
    if from.is_empty() && to.is_empty() {
        return Err(form());
    }
    let from = if from.is_empty() { Duration::ZERO } else { time(from).ok_or_else(form)? };
    let to = if to.is_empty() { None } else { Some(time(to).ok_or_else(form)?) };
    match to {
        Some(to) if to <= from => Err(RangeError::Order(text.to_owned())),
        to => Ok(StitchClip { from, to }),
    }
}

/// Reads hours, minutes and seconds, or minutes and seconds.
fn clock(text: &str) -> Option<Duration> {
    let (minutes, seconds) = text.rsplit_once(':')?;
    let (hours, minutes) = minutes.split_once(':').unwrap_or(("0", minutes));
    let below_60 = |text: &str| whole(text).filter(|number| text.len() <= 2 && *number < 60);
    let (digits, _) = seconds.split_once('.').unwrap_or((seconds, ""));
    below_60(digits).filter(|_| digits.len() == 2)?;
    let minutes = whole(hours)?.checked_mul(60)?.checked_add(below_60(minutes)?)?;
    Duration::from_secs(minutes.checked_mul(60)?).checked_add(decimal(seconds, 1_000_000_000)?)
}

/// Reads a number with a unit; without one it counts seconds.
fn count(text: &str) -> Option<Duration> {
    const UNITS: [(&str, u64); 4] =
        [("ms", 1_000_000), ("min", 60_000_000_000), ("h", 3_600_000_000_000), ("s", 1_000_000_000)];
    let unit = UNITS.iter().find_map(|(unit, nanos)| Some((text.strip_suffix(unit)?, *nanos)));
    let (number, nanos) = unit.unwrap_or((text, 1_000_000_000));
    decimal(number, nanos)
}

/// Reads a decimal number of units of `nanos` nanoseconds.
fn decimal(text: &str, nanos: u64) -> Option<Duration> {
    let (digits, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let fraction = fraction.get(..fraction.len().min(9))?;
    let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part = u128::from(whole(fraction)?) * u128::from(nanos) / u128::from(scale);
    let units = whole(digits)?.checked_mul(nanos)?;
    Some(Duration::from_nanos(units.checked_add(u64::try_from(part).ok()?)?))
}

/// Reads a number of digits only.
fn whole(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_values_have_several_forms() {
        let millis = |text: &str| time(text).map(|time| time.as_millis());
        for (text, expected) in [
            ("1:02:03.5", 3_723_500),
            ("02:03", 123_000),
            ("2:03", 123_000),
            ("90", 90_000),
            ("npt=10s", 10_000),
            ("1.5min", 90_000),
            ("2h", 7_200_000),
            ("500ms", 500),
            ("0.04", 40),
        ] {
            assert_eq!(millis(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "s",
            "-1",
            "+1",
            "1e3",
            "1:2",
            "00:60",
            "1:60:00",
            "smpte=10:12:33:20",
            "99999999999h",
            "١",
            "1.",
            ".5",
        ] {
            assert_eq!(millis(text), None, "{text}");
        }
    }

    #[test]
    fn ranges_may_be_open() {
        let seconds = Duration::from_secs;
        let of = |from, to: Option<u64>| Ok(StitchClip { from: seconds(from), to: to.map(seconds) });
        assert_eq!(range("10s-40s"), of(10, Some(40)));
        assert_eq!((range("10s-"), range("-1:00")), (of(10, None), of(0, Some(60))));
        for (text, cure) in [
            ("10s", "expected 10s- for the file from there on, or -10s for the file up to there"),
            ("a-b", "expected FROM-TO"),
            ("abc", "expected FROM-TO"),
            ("10s-5m", "expected minutes as min or with a colon, such as 10s-5min or 10s-5:00"),
            ("-", "expected FROM-TO"),
            ("1-2-3", "expected FROM-TO"),
            ("40s-30s", "which ends before it begins"),
            ("40s-40s", "which ends before it begins"),
        ] {
            let error = range(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("found the part {text:?}")) && error.contains(cure), "{error}");
        }
    }
}
