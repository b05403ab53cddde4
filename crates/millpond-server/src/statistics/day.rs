//! Days in UTC.
#![forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types)]

use millpond_utc::Date;
use std::{fmt, str::FromStr, time::Duration};

/// Length of a day. Leap seconds are not counted.
const LENGTH: Duration = Duration::from_secs(86_400);

/// A day in UTC, as its number since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UtcDay(u64);

/// A text that is no day from 1970 on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoDay;

impl UtcDay {
    /// Returns the day of a time since the Unix epoch.
    pub(crate) fn of_wall(wall: Duration) -> Self {
        Self(wall.as_secs() / LENGTH.as_secs())
    }

    /// Returns the day before; 1970-01-01 has none before it.
    pub(super) fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// Returns the time of a day that has passed at a time since the Unix epoch.
    pub(super) fn passed(self, wall: Duration) -> Duration {
        wall.saturating_sub(self.begin())
    }

    /// Returns the number of days between two days.
    pub(super) fn distance(self, other: Self) -> u64 {
        self.0.abs_diff(other.0)
    }

    fn begin(self) -> Duration {
        Duration::from_secs(self.0.saturating_mul(LENGTH.as_secs()))
    }
}

impl fmt::Display for UtcDay {
    /// Writes the day as `2026-11-30`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Date { year, month, day } = Date::of_wall(self.begin());
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

impl FromStr for UtcDay {
    type Err = NoDay;

    /// Parses the form `2026-11-30`.
    fn from_str(text: &str) -> Result<Self, NoDay> {
        millpond_utc::parse(&format!("{text}T00:00:00Z")).map(Self::of_wall).ok_or(NoDay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read_as_they_are_written() {
        let day = UtcDay::of_wall(Duration::from_secs(1_795_996_799));
        assert_eq!(day.to_string(), "2026-11-29");
        assert_eq!(UtcDay::of_wall(Duration::from_secs(1_795_996_800)).to_string(), "2026-11-30");
        assert_eq!("2026-11-29".parse(), Ok(day));
        assert_eq!(day.passed(Duration::from_secs(1_795_996_799)), Duration::from_secs(86_399));
        assert_eq!(UtcDay::of_wall(Duration::ZERO).before().to_string(), "1970-01-01");
        for text in ["", "2026-11-31", "2026-1-1", "1969-12-31", "2026-11-30T00:00:00Z", "today", "2026-11-30 "] {
            assert_eq!(text.parse::<UtcDay>(), Err(NoDay), "{text:?}");
        }
    }
}
