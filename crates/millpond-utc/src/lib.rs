//! Wall times as text (RFC 3339), the calendar (UTC, without leap seconds), and a wall clock that can be corrected.

mod date;
mod wall_clock;

pub use date::Date;
pub use wall_clock::WallClock;

use std::time::Duration;

/// Appends a time since the Unix epoch with milliseconds, such as `2026-11-22T10:00:00.000Z`. Rounds down.
pub fn push(out: &mut String, wall: Duration) {
    let seconds = wall.as_secs();
    let Date { year, month, day } = Date::of_wall(wall);
    let of_day = seconds % 86_400;
    let fields = [(year.unsigned_abs(), 4, '-'), (month.into(), 2, '-'), (day.into(), 2, 'T')];
    let time = [(of_day / 3600, 2, ':'), (of_day / 60 % 60, 2, ':'), (of_day % 60, 2, '.')];
    for (value, width, end) in fields.into_iter().chain(time).chain([(wall.subsec_millis().into(), 3, 'Z')]) {
        padded(out, value, width);
        out.push(end);
    }
}

/// Appends the same without separators, such as `20261122T100000.000Z` (ISO 8601 basic format).
pub fn push_basic(out: &mut String, wall: Duration) {
    let mut text = String::new();
    push(&mut text, wall);
    out.extend(text.chars().filter(|character| !matches!(character, '-' | ':')));
}

fn padded(out: &mut String, value: u64, width: u32) {
    for place in (0..width).rev() {
        out.push(char::from(b'0' + (value / 10_u64.pow(place) % 10) as u8));
    }
}

/// Parses a time of RFC 3339, such as `2026-11-22T10:00:00.5+01:00`, as time since the Unix epoch. `None` for other texts, times
/// before 1970 and leap seconds.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    let (date, time) = text.split_once(['T', 't'])?;
    let [year, month, day] = fields(date, '-', [4, 2, 2])?;
    let (time, zone) = time.split_at_checked(time.find(['Z', 'z', '+', '-'])?)?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = fields(time, ':', [2, 2, 2])?;
    if !(1970..=9999).contains(&year) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let date = Date { year: year.cast_signed(), month: month.try_into().ok()?, day: day.try_into().ok()? };
    let days = date.days()?.cast_unsigned();
    let is_fraction = (1..=9).contains(&fraction.len()) && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let nanos: u64 = format!("{fraction:0<9}").parse().ok().filter(|_| is_fraction)?;
    let local = Duration::from_secs(days * 86_400 + hour * 3600 + minute * 60 + second) + Duration::from_nanos(nanos);
    match zone.split_at_checked(1)? {
        ("Z" | "z", "") => Some(local),
        (sign, offset) => {
            let [hours, minutes] = fields(offset, ':', [2, 2])?;
            let offset = Duration::from_secs(hours * 3600 + minutes * 60);
            let is_valid = hours <= 23 && minutes <= 59;
            let utc = if sign == "+" { local.checked_sub(offset) } else { Some(local + offset) };
            utc.filter(|_| is_valid)
        }
    }
}

/// Parses a UTC time of RTSP, such as `20261122T100000.25Z` (RFC 2326 3.7), as time since the Unix epoch. `None` for other texts,
/// times before 1970 and leap seconds.
#[must_use]
pub fn parse_basic(text: &str) -> Option<Duration> {
    let (date, time) = text.split_once('T')?;
    let time = time.strip_suffix('Z').filter(|time| !time.contains(['z', '+', '-']))?;
    let (year, rest) = date.split_at_checked(4)?;
    let (month, day) = rest.split_at_checked(2)?;
    let (hour, rest) = time.split_at_checked(2)?;
    let (minute, second) = rest.split_at_checked(2)?;
    parse(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))
}

/// Splits a text into numbers with these counts of digits.
fn fields<const N: usize>(text: &str, separator: char, digits: [usize; N]) -> Option<[u64; N]> {
    let mut values = [0; N];
    let mut texts = text.split(separator);
    for (value, digits) in values.iter_mut().zip(digits) {
        let text =
            texts.next().filter(|text| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit()))?;
        *value = text.parse().ok()?;
    }
    texts.next().is_none().then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        let table = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_795_341_600_040, "2026-11-22T10:00:00.040Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ];
        for (millis, expected) in table {
            let mut out = String::new();
            push(&mut out, Duration::from_millis(millis));
            assert_eq!(out, expected);
            assert_eq!(parse(expected), Some(Duration::from_millis(millis)));
        }
    }

    #[test]
    fn times_of_rtsp_have_no_separators() {
        let wall = Duration::from_millis(1_795_341_600_040);
        let mut out = String::new();
        push_basic(&mut out, wall);
        assert_eq!(out, "20261122T100000.040Z");
        assert_eq!(parse_basic(&out), Some(wall));
        assert_eq!(parse_basic("20261122T100000Z"), Some(Duration::from_secs(1_795_341_600)));
        for text in ["", "T", "TZ", "20261122T100000", "20261122T1000Z", "20261122T100000.Z", "2026-11-22T10:00:00Z"] {
            assert_eq!(parse_basic(text), None, "{text}");
        }
        for text in ["20261122T100000+0100Z", "20261122T100000zZ", "20261322T100000Z", "2026112\u{e9}T100000Z"] {
            assert_eq!(parse_basic(text), None, "{text}");
        }
    }

    #[test]
    fn times_are_parsed_with_their_zone() {
        let hour = Duration::from_secs(1_795_341_600);
        for (text, expected) in [
            ("2026-11-22T10:00:00Z", Some(hour)),
            ("2026-11-22t11:00:00.000000001+01:00", Some(hour + Duration::from_nanos(1))),
            ("2026-11-22T04:30:00.5-05:30", Some(hour + Duration::from_millis(500))),
            ("1969-12-31T23:59:59Z", None),
            ("1970-01-01T00:00:00+00:01", None),
            ("2026-02-29T10:00:00Z", None),
            ("2026-00-01T10:00:00Z", None),
            ("2026-11-22T24:00:00Z", None),
            ("2026-11-22T10:00:60Z", None),
            ("2026-11-22T10:00:00.Z", None),
            ("2026-11-22T10:00:00", None),
            ("2026-11-22T10:00:00Zx", None),
            ("2026-11-22T10:00:00+1:00", None),
            ("2026-11-22T10:00:00\u{e9}", None),
            ("2026-11-22 10:00:00Z", None),
            ("", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
