//! How a missed deadline moves the deadlines after it (Srinilta and Choudhary).

use crate::stored::PERIOD;
use std::time::Duration;

/// How far deadlines move when frames are loaded too late to be sent in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lateness {
    /// Not at all: late frames are sent at once, and playback catches up.
    #[default]
    None,
    /// By half a period.
    Half,
    /// By one period.
    One,
    /// By the whole delay: nothing is sent faster than it plays.
    All,
}

impl Lateness {
    /// All policies, in the order of their names.
    const EACH: [Self; 4] = [Self::None, Self::Half, Self::One, Self::All];
    /// Names of the policies.
    pub const NAMES: [&'static str; 4] = ["none", "half", "one", "all"];

    /// Finds a policy by its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::EACH.into_iter().find(|policy| policy.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The delay of all frames after one that is `late`. Never more than that.
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
