//! Stamps of changes, by a hybrid logical clock: the time of the node that made the change, and a counter that keeps causes before effects.

use std::time::Duration;

/// Bits of the counter below the milliseconds.
const COUNTER_BITS: u32 = 16;
/// Greatest number that a node accepts from others: a time some 1,100 years after 1970.
const GREATEST: i64 = 1 << 61;
/// Greatest number of all. Changes to a stamp that was accepted have room up to it.
const LIMIT: i64 = 1 << 62;
/// A stamp this far ahead of the own time does not move the own clock: one wrong clock must not move those of all nodes for ever.
const AHEAD: Duration = Duration::from_secs(60);

/// The stamp of a change: milliseconds since 1970, and a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GossipStamp(i64);

impl GossipStamp {
    /// The first stamp of a time since 1970.
    #[must_use]
    pub fn at(wall: Duration) -> Self {
        let millis = i64::try_from(wall.as_millis()).unwrap_or(GREATEST >> COUNTER_BITS);
        Self(millis.min(GREATEST >> COUNTER_BITS) << COUNTER_BITS)
    }

    /// The stamp of a number; `None` where the number is none of a change.
    #[must_use]
    pub fn from_number(number: i64) -> Option<Self> {
        (1..=GREATEST).contains(&number).then_some(Self(number))
    }

    /// Its number, which is greater for later changes.
    #[must_use]
    pub fn number(self) -> i64 {
        self.0
    }

    /// The time since 1970.
    pub(super) fn wall(self) -> Duration {
        Duration::from_millis(u64::try_from(self.0 >> COUNTER_BITS).unwrap_or(0))
    }

    fn next(self) -> Self {
        Self((self.0 + 1).min(LIMIT))
    }
}

/// The clock of a node.
#[derive(Debug, Default)]
pub(super) struct StampClock {
    last: GossipStamp,
}

impl StampClock {
    /// The stamp of a change that is made now, and that must be greater than `above`.
    pub(super) fn tick(&mut self, wall: Duration, above: GossipStamp) -> GossipStamp {
        self.last = self.last.next().max(GossipStamp::at(wall));
        self.last.max(above.next())
    }

    /// Notes the stamp of another node's change.
    pub(super) fn observe(&mut self, stamp: GossipStamp, wall: Duration) {
        if stamp.wall() <= wall + AHEAD {
            self.last = self.last.max(stamp);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_grow_whatever_the_clocks_say() {
        let (mut clock, at) = (StampClock::default(), Duration::from_secs);
        let first = clock.tick(at(1000), GossipStamp::default());
        assert_eq!(first.wall(), at(1000));
        let second = clock.tick(at(900), GossipStamp::default());
        assert!(second > first && second.wall() == at(1000), "the clock was set back");
        clock.observe(GossipStamp::at(at(1030)), at(1000));
        assert!(clock.tick(at(1000), GossipStamp::default()) > GossipStamp::at(at(1030)));
        // A clock an hour ahead: changes of its keys are above it, and the own clock stays.
        let far = GossipStamp::at(at(5000));
        clock.observe(far, at(1000));
        assert!(clock.tick(at(1000), far) > far);
        assert!(clock.tick(at(1001), GossipStamp::default()).wall() < at(1031));
    }

    #[test]
    fn numbers_beyond_all_times_are_none() {
        for number in [i64::MIN, -1, 0, GREATEST + 1, i64::MAX] {
            assert_eq!(GossipStamp::from_number(number), None);
        }
        assert_eq!(GossipStamp::from_number(GREATEST).map(GossipStamp::number), Some(GREATEST));
        assert!(GossipStamp::at(Duration::MAX).number() <= GREATEST);
        assert_eq!(GossipStamp(LIMIT).next(), GossipStamp(LIMIT));
    }
}
