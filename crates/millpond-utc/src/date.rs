//! Days of the Gregorian calendar.

use std::time::Duration;

/// Days from 1 March of year 0 to 1 January 1970. Years are counted from March, so that the leap day is the last one.
const EPOCH: i64 = 719_468;
/// Days of 400 years, after which the calendar repeats itself.
const ERA: i64 = 146_097;

/// A day of the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// Year of the common era.
    pub year: i64,
    /// Month, from 1.
    pub month: u8,
    /// Day of the month, from 1.
    pub day: u8,
}

impl Date {
    /// Returns the date in UTC of a time since the Unix epoch.
    #[must_use]
    pub fn of_wall(wall: Duration) -> Self {
        Self::of_days((wall.as_secs() / 86_400).cast_signed())
    }

    /// Returns the date of a day since 1970-01-01.
    fn of_days(days: i64) -> Self {
        let days = days + EPOCH;
        let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let of_year = day - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        Self { year: era * 400 + year + i64::from(month <= 2), month: month as u8, day: day as u8 }
    }

    /// Returns the days since 1970-01-01, negative for earlier dates. `None` if the calendar has no such date.
    #[must_use]
    pub fn days(self) -> Option<i64> {
        let (month, day) = (i64::from(self.month), i64::from(self.day));
        let (year, month) = if month > 2 { (self.year, month - 3) } else { (self.year.checked_sub(1)?, month + 9) };
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        let of_year = (153 * month + 2) / 5 + day - 1;
        let days = year.checked_mul(365)?.checked_add(leap_days)?.checked_add(of_year - EPOCH)?;
        (Self::of_days(days) == self).then_some(days)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        for (days, year, month, day) in [
            (-7305, 1950, 1, 1),
            (-1, 1969, 12, 31),
            (0, 1970, 1, 1),
            (58, 1970, 2, 28),
            (59, 1970, 3, 1),
            (789, 1972, 2, 29),
            (11_016, 2000, 2, 29),
            (20_779, 2026, 11, 22),
            (47_540, 2100, 2, 28),
            (47_541, 2100, 3, 1),
            (146_097, 2370, 1, 1),
        ] {
            let date = Date { year, month, day };
            assert_eq!((Date::of_days(days), date.days()), (date, Some(days)), "{days}");
        }
    }

    #[test]
    fn dates_that_do_not_exist_are_no_days() {
        for (year, month, day) in
            [(2026, 2, 29), (2100, 2, 29), (2026, 0, 1), (2026, 13, 1), (2026, 4, 31), (2026, 1, 0)]
        {
            assert_eq!(Date { year, month, day }.days(), None, "{year}-{month}-{day}");
        }
        assert_eq!(Date { year: i64::MAX, month: 1, day: 1 }.days(), None);
    }
}
