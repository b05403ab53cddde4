//! Differences of the nodes' wall clocks. Pure: times are arguments.
//!
//! A node that answers a request states the wall time of its machine, and the time that the nodes share. They were read between the request and the
//! answer, so half of that interval is the error (as NTP's, RFC 5905 section 8). Readings are kept against the monotonic clock of this node, so they
//! hold when its own wall clock is set.

use super::NodeName;
use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

/// Readings of a node that are kept. The one with the least error counts.
const KEPT: usize = 8;
/// Time for which a reading counts.
const FRESH: Duration = Duration::from_secs(120);
/// Times are of one age that differ by less.
const OF_ONE_AGE: Duration = Duration::from_millis(20);
/// Least difference of shared times that is corrected, in milliseconds: less is no matter for what is counted in seconds.
const LEAST: i64 = 500;

/// Most milliseconds by which another clock may be ahead to count for numbers that only rise.
const DAY: i64 = 24 * 3600 * 1000;

/// The time that a node shares with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedTime {
    /// Its time since the Unix epoch.
    pub time: Duration,
    /// How long nodes have shared it.
    pub age: Duration,
}

/// The times that another node has stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// The wall time of its machine, since the Unix epoch.
    pub wall: Duration,
    /// The time that it shares with the other nodes; `None` where it has not agreed on one yet.
    pub shared: Option<SharedTime>,
    /// Time at which it was asked, since any moment.
    pub asked: Duration,
    /// Time at which its answer came, since the same moment.
    pub answered: Duration,
}

impl ClockReading {
    /// The longest time by which it may be wrong.
    fn error(&self) -> Duration {
        self.answered.saturating_sub(self.asked) / 2
    }

    /// Milliseconds by which a stated time is ahead of a clock that reads `own` at `now`.
    fn ahead(&self, stated: Duration, own: Duration, now: Duration) -> i64 {
        let read = self.asked + self.error();
        (ms(stated) - ms(read)) - (ms(own) - ms(now))
    }

    /// Whether a clock was set between two readings: they differ by more than their errors.
    fn differs(&self, other: &Self) -> bool {
        let zero = Duration::ZERO;
        let allowed = (self.error() + other.error()).as_millis() + u128::from(LEAST.unsigned_abs());
        let apart = |one: Duration, two: Duration| {
            u128::from(self.ahead(one, zero, zero).abs_diff(other.ahead(two, zero, zero))) > allowed
        };
        let shared = match (self.shared, other.shared) {
            // A node that began anew, or took over another time.
            (Some(one), Some(two)) => {
                let begun = |of: &Self, age: Duration| ms(of.answered) - ms(age);
                let apart_in_age = begun(self, one.age).abs_diff(begun(other, two.age));
                apart(one.time, two.time) || u128::from(apart_in_age) > allowed
            }
            (one, two) => one.is_some() != two.is_some(),
        };
        apart(self.wall, other.wall) || shared
    }
}

fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)
}

/// The middle one of some differences, of two the lesser; 0 without any.
fn median(mut all: Vec<i64>) -> i64 {
    all.sort_unstable();
    all.get(all.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

/// Clocks of other nodes, compared with those of this one.
#[derive(Clone, Debug, Default)]
pub struct Clocks(BTreeMap<NodeName, VecDeque<ClockReading>>);

impl Clocks {
    /// Notes a reading of a node's clock.
    pub fn note(&mut self, node: &NodeName, reading: ClockReading) {
        let readings = self.0.entry(node.clone()).or_default();
        if readings.back() == Some(&reading) {
            return;
        }
        readings.retain(|known| !known.differs(&reading));
        readings.push_back(reading);
        if readings.len() > KEPT {
            readings.pop_front();
        }
    }

    /// Forgets nodes.
    pub fn keep(&mut self, is_kept: impl Fn(&NodeName) -> bool) {
        self.0.retain(|node, _| is_kept(node));
    }

    /// The reading of a node that counts.
    fn reading(&self, node: &NodeName, now: Duration) -> Option<&ClockReading> {
        let fresh = self.0.get(node)?.iter().filter(|reading| now.saturating_sub(reading.answered) <= FRESH);
        fresh.min_by_key(|reading| reading.error())
    }

    /// Milliseconds by which the clock of a node's machine is ahead of this one's, which reads `wall` at `now`; `None` where no reading is fresh.
    pub fn ahead(&self, node: &NodeName, wall: Duration, now: Duration) -> Option<i64> {
        self.reading(node, now).map(|reading| reading.ahead(reading.wall, wall, now))
    }

    fn all_ahead(&self, wall: Duration, now: Duration) -> impl Iterator<Item = i64> {
        self.0.keys().filter_map(move |node| self.ahead(node, wall, now))
    }

    /// Milliseconds by which the clocks of most machines are ahead of this one's, which counts as one of them.
    pub fn median(&self, wall: Duration, now: Duration) -> i64 {
        median(self.all_ahead(wall, now).chain([0]).collect())
    }

    /// Milliseconds by which the clock that is ahead most is ahead of this one's; 0 where none is. Clocks that are ahead by more than a day do not count.
    pub fn greatest(&self, wall: Duration, now: Duration) -> i64 {
        self.all_ahead(wall, now).filter(|ahead| *ahead <= DAY).fold(0, i64::max)
    }

    /// The shared time that this node takes over at `now`, instead of its own, which reads `own` and has an age once it has begun; `None` where it keeps
    /// that. The time that has been shared longest counts: so a node that begins moves no time of others. Of two that are of one age, the lesser
    /// counts. Less than half a second is left alone.
    pub fn shared(&self, (own, own_age): (Duration, Option<Duration>), now: Duration) -> Option<SharedTime> {
        let others = self.0.keys().filter_map(|node| {
            let reading = self.reading(node, now)?;
            let SharedTime { time, age } = reading.shared?;
            let by = reading.ahead(time, own, now);
            let time = own.saturating_add(Duration::from_millis(u64::try_from(by).unwrap_or(0)));
            let time = time.saturating_sub(Duration::from_millis(u64::try_from(-by).unwrap_or(0)));
            Some((SharedTime { time, age: age + now.saturating_sub(reading.answered) }, by))
        });
        let counts = |(other, by): &(SharedTime, i64)| match own_age {
            None => true,
            Some(age) if other.age.abs_diff(age) > OF_ONE_AGE => other.age > age,
            Some(_) => *by <= -LEAST,
        };
        let (eldest, by) = others.filter(counts).max_by_key(|(other, by)| (other.age, std::cmp::Reverse(*by)))?;
        Some(if by.abs() < LEAST { SharedTime { time: own, ..eldest } } else { eldest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(node: &str) -> NodeName {
        node.parse().unwrap()
    }

    /// A reading of clocks that are ahead of a machine whose clock read 1000 s at 0 s, with an answer after some time.
    fn reading(ahead: i64, asked: u64, takes: u64) -> ClockReading {
        let wall = i64::try_from(1_000_000 + asked + takes / 2).unwrap() + ahead;
        let (ms, wall) = (Duration::from_millis, Duration::from_millis(wall.unsigned_abs()));
        let shared = Some(SharedTime { time: wall, age: Duration::ZERO });
        ClockReading { wall, shared, asked: ms(asked), answered: ms(asked + takes) }
    }

    fn wall(at: u64) -> (Duration, Duration) {
        (Duration::from_millis(1_000_000 + at), Duration::from_millis(at))
    }

    #[test]
    fn the_reading_with_the_least_error_counts_while_it_is_fresh() {
        let mut clocks = Clocks::default();
        let shared = |of: ClockReading, age| Some(SharedTime { time: of.wall, age: Duration::from_millis(age) });
        let late = reading(100, 1000, 10);
        let late = ClockReading { shared: shared(late, 1400), answered: Duration::from_millis(1800), ..late };
        clocks.note(&name("a"), reading(100, 0, 10));
        clocks.note(&name("a"), late);
        let ahead = |clocks: &Clocks, at| clocks.ahead(&name("a"), wall(at).0, wall(at).1);
        assert_eq!(ahead(&clocks, 2000), Some(100));
        assert_eq!((ahead(&clocks, 500_000), clocks.median(wall(500_000).0, wall(500_000).1)), (None, 0));
        // The other clock is set, and then this one's own by ten seconds.
        clocks.note(&name("a"), reading(-30_000, 3000, 400));
        assert_eq!(ahead(&clocks, 4000), Some(-30_000));
        assert_eq!(clocks.ahead(&name("a"), wall(14_000).0, wall(4000).1), Some(-40_000));
        clocks.keep(|_| false);
        assert_eq!(ahead(&clocks, 4000), None);
    }

    #[test]
    fn the_clock_that_is_ahead_most_counts_up_to_a_day() {
        let mut clocks = Clocks::default();
        assert_eq!(clocks.greatest(wall(0).0, wall(0).1), 0);
        for (node, ahead) in [("a", 400), ("b", -7000), ("c", 2 * DAY)] {
            clocks.note(&name(node), reading(ahead, 0, 2));
        }
        assert_eq!(clocks.greatest(wall(0).0, wall(0).1), 400);
    }

    /// A reading of a time that has been shared for some seconds.
    fn shared(ahead: i64, age: u64) -> ClockReading {
        let of = reading(ahead, 0, 2);
        ClockReading { shared: Some(SharedTime { time: of.wall, age: Duration::from_secs(age) }), ..of }
    }

    #[test]
    fn the_time_that_was_shared_longest_counts() {
        let mut clocks = Clocks::default();
        let taken = |clocks: &Clocks, age| {
            let age = (age > 0).then(|| Duration::from_secs(age));
            let taken = clocks.shared((wall(0).0, age), wall(0).1)?;
            Some((ms(taken.time) - ms(wall(0).0), taken.age.as_secs()))
        };
        assert_eq!(taken(&clocks, 0), None);
        // The node that is asked has not agreed on a time yet.
        clocks.note(&name("a"), ClockReading { shared: None, ..reading(-9000, 0, 2) });
        assert_eq!(taken(&clocks, 0), None);
        clocks.note(&name("a"), shared(9000, 50));
        clocks.note(&name("b"), shared(-7000, 20));
        assert_eq!((taken(&clocks, 0), taken(&clocks, 30)), (Some((9000, 50)), Some((9000, 50))));
        assert_eq!((taken(&clocks, 60), taken(&clocks, 50)), (None, None));
        // Of one age: the lesser.
        clocks.note(&name("b"), shared(-7000, 50));
        assert_eq!((taken(&clocks, 50), taken(&clocks, 49)), (Some((-7000, 50)), Some((-7000, 50))));
        // Times that are alike stay, and only the age is taken over.
        clocks.keep(|_| false);
        clocks.note(&name("a"), shared(-400, 90));
        assert_eq!((taken(&clocks, 0), taken(&clocks, 90)), (Some((0, 90)), None));
    }

    proptest! {
        /// Nodes that read each other's times come to share one, whatever their clocks and ages are.
        #[test]
        fn nodes_come_to_share_a_time(
            begun in proptest::collection::vec((-600_000_i64..600_000, 0_u64..10), 2..7),
            takes in 0_u64..100,
        ) {
            let mut own: Vec<_> = begun.iter().map(|(ahead, age)| (*ahead, Duration::from_secs(*age))).collect();
            for _ in 0..begun.len() * 2 {
                for at in 0..own.len() {
                    let mut clocks = Clocks::default();
                    for (other, (ahead, age)) in own.iter().enumerate().filter(|(other, _)| *other != at) {
                        let of = reading(*ahead, 100 - takes, takes);
                        let shared = Some(SharedTime { time: of.wall, age: *age });
                        clocks.note(&name(&format!("n{other}")), ClockReading { shared, ..of });
                    }
                    let now = reading(own[at].0, 100, 0).wall;
                    if let Some(taken) = clocks.shared((now, Some(own[at].1)), wall(100).1) {
                        own[at] = (own[at].0 + ms(taken.time) - ms(now), taken.age);
                    }
                }
            }
            let times = own.iter().map(|(ahead, _)| *ahead);
            let (least, most) = (times.clone().min().unwrap(), times.max().unwrap());
            prop_assert!(most - least <= LEAST, "{own:?} of {begun:?}");
        }
    }
}
