//! Measurements of signalling: latencies, starts, ends of sessions, and causes of failures.

use super::figures::Counters;
use crate::histogram::Histogram;
use crate::tally::{Ending, ErrorTally};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Examples kept of each kind of failure.
const EXAMPLES: usize = 3;

/// Steps of signalling whose replies are awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// The connection, its name resolved.
    Connect,
    Options,
    Describe,
    Setup,
    Play,
    Pause,
    /// GET_PARAMETER, or OPTIONS where a server doesn't have it.
    KeepAlive,
    Teardown,
}

impl Step {
    pub(crate) const ALL: [Self; 8] = [
        Self::Connect,
        Self::Options,
        Self::Describe,
        Self::Setup,
        Self::Play,
        Self::Pause,
        Self::KeepAlive,
        Self::Teardown,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Options => "OPTIONS",
            Self::Describe => "DESCRIBE",
            Self::Setup => "SETUP",
            Self::Play => "PLAY",
            Self::Pause => "PAUSE",
            Self::KeepAlive => "keep-alive",
            Self::Teardown => "TEARDOWN",
        }
    }
}

/// Why a session failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FailureKind {
    Connect,
    /// Took too long.
    Timeout(Step),
    /// The connection ended or broke.
    Closed,
    /// Another status than 200.
    Status(Step, u16),
    /// A reply without what it must have, or bytes that are none.
    Reply(Step),
    /// A description that can't be played.
    Description,
    /// No port or descriptor to be had here.
    Ports,
    /// Not one packet after PLAY.
    NoMedia,
    /// Packets stopped long before the end of the title.
    Stopped,
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect => f.write_str("connect"),
            Self::Timeout(step) => write!(f, "{} timeout", step.name()),
            Self::Closed => f.write_str("connection closed"),
            Self::Status(step, code) => write!(f, "{} status {code}", step.name()),
            Self::Reply(step) => write!(f, "{} reply", step.name()),
            Self::Description => f.write_str("description not playable"),
            Self::Ports => f.write_str("no ports"),
            Self::NoMedia => f.write_str("no media"),
            Self::Stopped => f.write_str("media stopped"),
        }
    }
}

/// One failed session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    /// The URL and what happened.
    pub(crate) detail: String,
}

/// The signalling of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) steps: [Histogram; 8],
    /// From DESCRIBE sent to the first packet.
    pub(crate) startup: Histogram,
    /// From a later PLAY sent, after a jump or a pause, to the first packet.
    pub(crate) resumed: Histogram,
    pub(crate) seeks: u64,
    pub(crate) pauses: u64,
    /// Sessions that played.
    pub(crate) starts: u64,
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) cut_off: u64,
    pub(crate) failures: BTreeMap<FailureKind, ErrorTally>,
}

impl Tally {
    pub(crate) fn took(&mut self, step: Step, time: Duration) {
        self.steps[step as usize].record(time);
    }

    pub(crate) fn steps(&self) -> impl Iterator<Item = (Step, &Histogram)> {
        Step::ALL.into_iter().zip(&self.steps).filter(|(_, histogram)| histogram.count() > 0)
    }

    /// From sending a request to its reply, whatever it asked for.
    pub(crate) fn requests(&self) -> Histogram {
        let mut all = Histogram::new();
        self.steps().filter(|(step, _)| *step != Step::Connect).for_each(|(_, histogram)| all.merge(histogram));
        all
    }

    pub(crate) fn failure(&mut self, failure: Failure, counters: &Counters) {
        let tally = self.failures.entry(failure.kind).or_default();
        tally.count += 1;
        if tally.examples.len() < EXAMPLES && !tally.examples.contains(&failure.detail) {
            tally.examples.push(failure.detail);
        }
        counters.failed();
    }

    pub(crate) fn ended(&mut self, ending: Ending) {
        match ending {
            Ending::Done => self.done += 1,
            Ending::Failed => self.failed += 1,
            Ending::CutOff => self.cut_off += 1,
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (mine, theirs) in self.steps.iter_mut().zip(&other.steps) {
            mine.merge(theirs);
        }
        self.startup.merge(&other.startup);
        self.resumed.merge(&other.resumed);
        self.seeks += other.seeks;
        self.pauses += other.pauses;
        self.starts += other.starts;
        self.done += other.done;
        self.failed += other.failed;
        self.cut_off += other.cut_off;
        for (kind, theirs) in other.failures {
            let mine = self.failures.entry(kind).or_default();
            mine.count += theirs.count;
            for example in theirs.examples {
                if mine.examples.len() < EXAMPLES && !mine.examples.contains(&example) {
                    mine.examples.push(example);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up() {
        let counters = Counters::default();
        let (mut left, mut right) = (Tally::default(), Tally::default());
        left.took(Step::Describe, Duration::from_millis(1));
        right.took(Step::Describe, Duration::from_millis(3));
        right.took(Step::Connect, Duration::from_millis(50));
        let missing = |at: &str| Failure { kind: FailureKind::Status(Step::Describe, 404), detail: at.to_owned() };
        for tally in [&mut left, &mut right] {
            for at in ["a", "b", "b", "c", "d"] {
                tally.failure(missing(at), &counters);
            }
            tally.ended(Ending::Failed);
        }
        right.ended(Ending::Done);
        right.ended(Ending::CutOff);
        left.merge(right);
        let steps: Vec<(Step, u64)> = left.steps().map(|(step, histogram)| (step, histogram.count())).collect();
        assert_eq!(steps, [(Step::Connect, 1), (Step::Describe, 2)]);
        assert_eq!((left.requests().count(), left.requests().max()), (2, Duration::from_millis(3)));
        assert_eq!((left.done, left.failed, left.cut_off), (1, 2, 1));
        let (kind, tally) = left.failures.first_key_value().unwrap();
        assert_eq!((kind.to_string().as_str(), tally.count), ("DESCRIBE status 404", 10));
        assert_eq!(tally.examples, ["a", "b", "c"]);
        assert_eq!(counters.read().failures, 10);
    }
}
