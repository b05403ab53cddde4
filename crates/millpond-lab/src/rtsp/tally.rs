//! Measurements of signalling: latencies, starts, ends of sessions, and causes of failures.

use super::{
    failure::{Failure, FailureKind},
    figures::Counters,
};
use crate::{
    histogram::Histogram,
    tally::{Ending, ErrorTally},
};
use millpond_rtp::client::RequestKind;
use std::{collections::BTreeMap, time::Duration};

/// The signalling of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Latencies of requests, in the order of [`RequestKind::ALL`].
    pub(crate) latencies: [Histogram; RequestKind::ALL.len()],
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
    pub(crate) fn took(&mut self, request: RequestKind, time: Duration) {
        self.latencies[request as usize].record(time);
    }

    /// Latencies of requests that were answered.
    pub(crate) fn methods(&self) -> impl Iterator<Item = (RequestKind, &Histogram)> {
        RequestKind::ALL.into_iter().zip(&self.latencies).filter(|(_, histogram)| histogram.count() > 0)
    }

    /// From sending a request to its reply, whatever it asked for.
    pub(crate) fn requests(&self) -> Histogram {
        let mut all = Histogram::new();
        let requests = self.methods().filter(|(request, _)| *request != RequestKind::Connect);
        requests.for_each(|(_, histogram)| all.merge(histogram));
        all
    }

    pub(crate) fn failure(&mut self, failure: Failure, counters: &Counters) {
        self.failures.entry(failure.kind).or_default().add(failure.detail);
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
        for (mine, theirs) in self.latencies.iter_mut().zip(&other.latencies) {
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
            self.failures.entry(kind).or_default().merge(theirs);
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
        left.took(RequestKind::Describe, Duration::from_millis(1));
        right.took(RequestKind::Describe, Duration::from_millis(3));
        right.took(RequestKind::Connect, Duration::from_millis(50));
        let missing =
            |at: &str| Failure { kind: FailureKind::Status(RequestKind::Describe, 404), detail: at.to_owned() };
        for tally in [&mut left, &mut right] {
            for at in ["a", "b", "b", "c", "d"] {
                tally.failure(missing(at), &counters);
            }
            tally.ended(Ending::Failed);
        }
        right.ended(Ending::Done);
        right.ended(Ending::CutOff);
        left.merge(right);
        let methods: Vec<_> = left.methods().map(|(request, histogram)| (request, histogram.count())).collect();
        assert_eq!(methods, [(RequestKind::Connect, 1), (RequestKind::Describe, 2)]);
        assert_eq!((left.requests().count(), left.requests().max()), (2, Duration::from_millis(3)));
        assert_eq!((left.done, left.failed, left.cut_off), (1, 2, 1));
        let (kind, tally) = left.failures.first_key_value().unwrap();
        assert_eq!((kind.to_string().as_str(), tally.count), ("DESCRIBE status 404", 10));
        assert_eq!(tally.examples, ["a", "b", "c"]);
        assert_eq!(counters.read().failures, 10);
    }
}
