//! Wall times as text (RFC 3339).

use std::time::Duration;

/// Appends a time since the Unix epoch with milliseconds, such as `2026-11-22T10:00:00.000Z`. Rounds down.
pub fn push(out: &mut String, wall: Duration) {
    let seconds = wall.as_secs();
    let (year, month, day) = date(seconds / 86_400);
    let of_day = seconds % 86_400;
    let fields = [(year, 4, '-'), (month, 2, '-'), (day, 2, 'T')];
    let time = [(of_day / 3600, 2, ':'), (of_day / 60 % 60, 2, ':'), (of_day % 60, 2, '.')];
    for (value, width, end) in fields.into_iter().chain(time).chain([(wall.subsec_millis().into(), 3, 'Z')]) {
        padded(out, value, width);
        out.push(end);
    }
}

fn padded(out: &mut String, value: u64, width: u32) {
    for place in (0..width).rev() {
        out.push(char::from(b'0' + (value / 10_u64.pow(place) % 10) as u8));
    }
}

/// Returns year, month and day of a day since 1970-01-01, in the Gregorian calendar.
fn date(days: u64) -> (u64, u64, u64) {
    // Years are counted from March, so that the leap day is the last one.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
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
        }
    }
}
