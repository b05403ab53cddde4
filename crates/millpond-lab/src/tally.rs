//! Measurements of a run's threads: counters read while it runs, and tallies added up at its end.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::abr::Switches;
use crate::histogram::Histogram;
use crate::player::Outcome;

/// Examples kept of each kind of error.
const EXAMPLES: usize = 3;

/// The figures that are shown during a run. Every thread adds and one reads, so these are atomics: a lock would
/// make the threads wait for each other once a request.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    active: AtomicU64,
    requests: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) active: u64,
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    pub(crate) errors: u64,
}

impl Counters {
    pub(crate) fn arrived(&self) {
        self.active.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn left(&self) {
        self.active.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn received(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Counts {
        Counts {
            active: self.active.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
        }
    }
}

/// Purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Manifest,
    Init,
    Segment,
    /// A media playlist that is answered once it lists a part.
    Reload,
    Part,
    /// The URL itself, in plain mode.
    Plain,
}

impl RequestKind {
    pub(crate) const ALL: [Self; 6] =
        [Self::Manifest, Self::Init, Self::Segment, Self::Reload, Self::Part, Self::Plain];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Manifest => "manifest",
            Self::Init => "init",
            Self::Segment => "segment",
            Self::Reload => "reload",
            Self::Part => "part",
            Self::Plain => "plain",
        }
    }
}

/// Why a request or what it brought was no good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ErrorKind {
    Dns,
    Connect,
    Timeout,
    /// The connection ended or broke the protocol before a response.
    Request,
    Status(u16),
    /// The body ended early or broke the protocol.
    Body,
    /// The body was whole but not what was promised or asked for.
    Length,
    /// A manifest longer than is taken.
    TooLong,
    Manifest,
    /// A live playlist against the rules.
    Rule,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dns => "name not resolved",
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::Request => "no response",
            Self::Status(code) => return write!(f, "status {code}"),
            Self::Body => "broken body",
            Self::Length => "wrong length",
            Self::TooLong => "manifest too long",
            Self::Manifest => "manifest not playable",
            Self::Rule => "rule broken",
        })
    }
}

/// One failed request.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    pub(crate) detail: String,
}

/// One request that was answered in full.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    pub(crate) bytes: u64,
    pub(crate) first_byte: Duration,
    pub(crate) total: Duration,
}

/// How a viewer's time ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It watched all it wanted to.
    Done,
    /// A request failed too often.
    Failed,
    /// The run ended first.
    CutOff,
}

/// The requests of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct KindTally {
    pub(crate) bytes: u64,
    pub(crate) first_byte: Histogram,
    pub(crate) total: Histogram,
}

/// The errors of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct ErrorTally {
    pub(crate) count: u64,
    pub(crate) examples: Vec<String>,
}

impl ErrorTally {
    /// Counts an error.
    pub(crate) fn add(&mut self, detail: String) {
        self.merge(Self { count: 1, examples: vec![detail] });
    }

    /// Adds the errors of another thread.
    pub(crate) fn merge(&mut self, other: Self) {
        self.count += other.count;
        for example in other.examples {
            if self.examples.len() < EXAMPLES && !self.examples.contains(&example) {
                self.examples.push(example);
            }
        }
    }
}

/// Everything one thread has measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) kinds: [KindTally; 6],
    pub(crate) errors: BTreeMap<ErrorKind, ErrorTally>,
    pub(crate) startup: Histogram,
    pub(crate) stalls: u64,
    pub(crate) stalled: Duration,
    pub(crate) stalled_viewers: u64,
    /// Longest sum of the stalls of one viewer.
    pub(crate) longest_stalled: Duration,
    /// Number of times that players went on at another server.
    pub(crate) moves: u64,
    /// Delays of parts behind the earliest one of their track.
    pub(crate) lateness: Histogram,
    pub(crate) late: u64,
    /// Ages of parts when they arrived, since the wall time of their ends.
    pub(crate) ages: Histogram,
    pub(crate) switches: Switches,
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) cut_off: u64,
}

impl Tally {
    pub(crate) fn answered(&mut self, kind: RequestKind, answered: Answered, counters: &Counters) {
        let tally = &mut self.kinds[kind as usize];
        tally.bytes += answered.bytes;
        tally.first_byte.record(answered.first_byte);
        tally.total.record(answered.total);
        counters.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn failed(&mut self, failure: &Failure, counters: &Counters) {
        self.errors.entry(failure.kind).or_default().add(failure.detail.clone());
        counters.errors.fetch_add(1, Ordering::Relaxed);
    }

    /// A part of a live stream, `late` behind the earliest one.
    pub(crate) fn part(&mut self, late: Duration, is_late: bool) {
        self.lateness.record(late);
        self.late += u64::from(is_late);
    }

    pub(crate) fn ended(&mut self, ending: Ending) {
        match ending {
            Ending::Done => self.done += 1,
            Ending::Failed => self.failed += 1,
            Ending::CutOff => self.cut_off += 1,
        }
    }

    pub(crate) fn watched(&mut self, outcome: Outcome, switches: Switches) {
        if let Some(startup) = outcome.startup {
            self.startup.record(startup);
        }
        self.stalls += outcome.stalls;
        self.stalled += outcome.stalled;
        self.stalled_viewers += u64::from(outcome.stalls > 0);
        self.longest_stalled = self.longest_stalled.max(outcome.stalled);
        self.switches.up += switches.up;
        self.switches.down += switches.down;
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.bytes += theirs.bytes;
            mine.first_byte.merge(&theirs.first_byte);
            mine.total.merge(&theirs.total);
        }
        for (kind, theirs) in other.errors {
            self.errors.entry(kind).or_default().merge(theirs);
        }
        self.startup.merge(&other.startup);
        self.stalls += other.stalls;
        self.stalled += other.stalled;
        self.stalled_viewers += other.stalled_viewers;
        self.longest_stalled = self.longest_stalled.max(other.longest_stalled);
        self.moves += other.moves;
        self.lateness.merge(&other.lateness);
        self.late += other.late;
        self.ages.merge(&other.ages);
        self.switches.up += other.switches.up;
        self.switches.down += other.switches.down;
        self.done += other.done;
        self.failed += other.failed;
        self.cut_off += other.cut_off;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_tallies_add_up() {
        let counters = Counters::default();
        let failure = |kind, detail: &str| Failure { kind, detail: detail.to_owned() };
        let mut left = Tally::default();
        let mut right = Tally::default();
        let answer = Answered { bytes: 7, first_byte: Duration::from_millis(1), total: Duration::from_millis(2) };
        left.answered(RequestKind::Init, answer, &counters);
        right.answered(RequestKind::Init, answer, &counters);
        for index in 0..5 {
            left.failed(&failure(ErrorKind::Status(404), &format!("left {index}")), &counters);
            right.failed(&failure(ErrorKind::Status(500), "the same"), &counters);
        }
        right.failed(&failure(ErrorKind::Status(404), "right"), &counters);
        left.ended(Ending::Done);
        right.ended(Ending::CutOff);
        let outcome = Outcome { startup: Some(Duration::ZERO), stalls: 2, stalled: Duration::from_secs(1) };
        (left.moves, right.moves) = (1, 2);
        left.watched(outcome, Switches { up: 1, down: 0 });
        right.watched(Outcome::default(), Switches { up: 1, down: 2 });
        left.merge(right);

        let init = &left.kinds[RequestKind::Init as usize];
        assert_eq!((init.bytes, init.total.count()), (14, 2));
        let missing = &left.errors[&ErrorKind::Status(404)];
        assert_eq!(
            (missing.count, missing.examples.as_slice()),
            (6, ["left 0", "left 1", "left 2"].map(str::to_owned).as_slice())
        );
        let broken = &left.errors[&ErrorKind::Status(500)];
        assert_eq!((broken.count, broken.examples.len()), (5, 1));
        assert_eq!((left.startup.count(), left.stalls, left.stalled_viewers), (1, 2, 1));
        assert_eq!((left.longest_stalled, left.moves), (Duration::from_secs(1), 3));
        assert_eq!(left.switches, Switches { up: 2, down: 2 });
        assert_eq!((left.done, left.cut_off), (1, 1));
        let counts = counters.read();
        assert_eq!((counts.requests, counts.errors), (2, 11));
    }
}
