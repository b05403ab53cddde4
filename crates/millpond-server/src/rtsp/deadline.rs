//! What a missed deadline does to those that follow (Srinilta and Choudhary, row C6).

use super::cut::PERIOD;
use std::time::Duration;

/// By how much deadlines move when frames come too late to be sent when they were due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lateness {
    /// Not at all: what is late goes out at once, and the session catches up.
    #[default]
    None,
    /// By half a period.
    Half,
    /// By one period.
    One,
    /// By as much as was missed: nothing is sent faster than it plays.
    All,
}

impl Lateness {
    /// All of them, and their names in the configuration.
    const EACH: [Self; 4] = [Self::None, Self::Half, Self::One, Self::All];
    /// The names.
    pub const NAMES: [&'static str; 4] = ["none", "half", "one", "all"];

    /// The one of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::EACH.into_iter().find(|policy| policy.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The delay of all that follows a frame that is late by so much: never more than that.
    pub(super) fn shift(self, late: Duration) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Half => late.min(PERIOD / 2),
            Self::One => late.min(PERIOD),
            Self::All => late,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_move_by_the_policy_and_by_no_more_than_was_missed() {
        let (short, long) = (Duration::from_millis(50), Duration::from_secs(3));
        assert_eq!(
            [Lateness::None, Lateness::Half, Lateness::One].map(|l| l.shift(short)),
            [Duration::ZERO, short, short]
        );
        assert_eq!(Lateness::Half.shift(long), PERIOD / 2);
        assert_eq!([Lateness::One, Lateness::All].map(|l| l.shift(long)), [PERIOD, long]);
        assert_eq!(Lateness::NAMES.map(|name| Lateness::named(name).unwrap().name()), Lateness::NAMES);
    }
}
