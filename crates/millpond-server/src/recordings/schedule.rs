//! The times of the week at which a stream is recorded.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

use crate::week::{DAY, Days};
use std::{fmt, time::Duration};

/// A time of the day in UTC, on some days of the week.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Minutes of the day at which it begins and ends. It ends on the next day where the end is not behind the beginning.
    from: u16,
    to: u16,
    /// Days on which it begins; `None` for all.
    days: Option<Days>,
}

impl Schedule {
    /// Parses `08:00-18:00`, or with `mon-fri` or `sat` as days.
    pub(super) fn parse(times: &str, days: Option<&str>) -> Option<Self> {
        let (from, to) = times.split_once('-')?;
        let days = match days {
            Some(days) => Some(Days::parse(days)?),
            None => None,
        };
        Some(Self { from: minute(from, 23)?, to: minute(to, 24)?, days })
    }

    /// Whether a time since the Unix epoch is one of it.
    pub(super) fn covers(&self, wall: Duration) -> bool {
        let (today, minute) = (wall.as_secs() / DAY, wall.as_secs() % DAY / 60);
        let (from, to) = (u64::from(self.from), u64::from(self.to));
        let is_on = |day: u64| self.days.as_ref().is_none_or(|days| days.has(day));
        if from < to {
            return is_on(today) && (from..to).contains(&minute);
        }
        (is_on(today) && minute >= from) || (is_on(today.saturating_sub(1)) && minute < to)
    }
}

/// Parses `08:30` as minutes of the day.
fn minute(text: &str, most: u16) -> Option<u16> {
    let (hour, minute) = text.split_once(':').filter(|(hour, minute)| hour.len() == 2 && minute.len() == 2)?;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (hour, minute): (u16, u16) = match is_number(hour) && is_number(minute) {
        true => (hour.parse().ok()?, minute.parse().ok()?),
        false => return None,
    };
    let minutes = hour * 60 + minute;
    (minute < 60 && hour <= most && minutes <= 24 * 60).then_some(minutes)
}

/// The text that is parsed to it.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, days } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)?;
        days.as_ref().map_or(Ok(()), |days| write!(f, " {days}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A time of the week that begins on Monday, 2026-11-23.
    fn at(day: u64, hour: u64, minute: u64) -> Duration {
        Duration::from_secs((20_780 + day) * DAY + hour * 3600 + minute * 60)
    }

    #[test]
    fn times_of_the_week_are_covered() {
        let office = Schedule::parse("08:00-18:00", Some("mon-fri")).unwrap();
        assert!(office.covers(at(0, 8, 0)) && office.covers(at(4, 17, 59)));
        assert!(!office.covers(at(0, 7, 59)) && !office.covers(at(0, 18, 0)) && !office.covers(at(5, 12, 0)));
        // Over midnight: the night of Friday goes on into Saturday.
        let night = Schedule::parse("22:00-06:00", Some("fri")).unwrap();
        assert!(night.covers(at(4, 22, 0)) && night.covers(at(5, 5, 59)));
        assert!(!night.covers(at(5, 6, 0)) && !night.covers(at(4, 5, 0)) && !night.covers(at(5, 22, 0)));
        // Over Sunday.
        let end = Schedule::parse("00:00-24:00", Some("sat-mon")).unwrap();
        assert!(
            end.covers(at(5, 0, 0))
                && end.covers(at(6, 23, 59))
                && end.covers(at(7, 12, 0))
                && !end.covers(at(1, 0, 0))
        );
        let always = Schedule::parse("12:00-12:00", None).unwrap();
        assert!((0..48).all(|half| always.covers(at(2, half / 2, half % 2 * 30))));
    }

    #[test]
    fn schedules_are_shown_as_they_are_parsed() {
        for text in ["08:00-18:00", "22:30-06:00 fri", "00:00-24:00 sat-mon"] {
            let (times, days) = text.split_once(' ').map_or((text, None), |(times, days)| (times, Some(days)));
            assert_eq!(Schedule::parse(times, days).unwrap().to_string(), text);
        }
        for (times, days) in [
            ("8:00-18:00", None),
            ("08:00", None),
            ("08:00-25:00", None),
            ("24:00-08:00", None),
            ("08:60-09:00", None),
            ("+8:00-09:00", None),
            ("08:00-18:00", Some("monday")),
            ("08:00-18:00", Some("mon-")),
            ("24:01-24:01", None),
        ] {
            assert_eq!(Schedule::parse(times, days), None, "{times} {days:?}");
        }
    }
}
