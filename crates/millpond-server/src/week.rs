//! Days of the week in UTC.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

use std::{fmt, ops::RangeInclusive};

/// Seconds of a day.
pub(crate) const DAY: u64 = 86_400;
/// Days, as they are written, from Monday on.
const NAMES: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/// Day of the week of 1970-01-01, a Thursday.
const FIRST: u64 = 3;

/// Some days of the week, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Days(RangeInclusive<u8>);

impl Days {
    /// Parses `mon-fri` or `sat`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let day = |text: &str| NAMES.iter().position(|day| *day == text).and_then(|place| u8::try_from(place).ok());
        Some(Self(day(first)?..=day(last)?))
    }

    /// Whether they have the day of a number since 1970-01-01. They may go over Sunday.
    pub(crate) fn has(&self, day: u64) -> bool {
        let (first, last, day) = (u64::from(*self.0.start()), u64::from(*self.0.end()), of_week(day));
        if first <= last { (first..=last).contains(&day) } else { day >= first || day <= last }
    }
}

/// Day of the week of a day since 1970-01-01: 0 for Monday.
pub(crate) fn of_week(day: u64) -> u64 {
    (day + FIRST) % 7
}

/// The text that is parsed to it.
impl fmt::Display for Days {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |day: &u8| NAMES.get(usize::from(*day)).copied().unwrap_or_default();
        let (first, last) = (self.0.start(), self.0.end());
        if first == last { f.write_str(name(first)) } else { write!(f, "{}-{}", name(first), name(last)) }
    }
}
