//! Measurements of starts, and causes of failures. All viewers share one.

use super::failure::{Failure, FailureKind};
use crate::{histogram::Histogram, rtsp::figures::Counters, tally::ErrorTally};
use std::{collections::BTreeMap, time::Duration};

/// A step of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// From the offer sent to its answer.
    Answer,
    /// From the first check of ICE to the first answer of one.
    Check,
    /// From then to the keys.
    Handshake,
    /// From then to the first packet.
    Packet,
}

impl Step {
    pub(crate) const ALL: [Self; 4] = [Self::Answer, Self::Check, Self::Handshake, Self::Packet];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Check => "check",
            Self::Handshake => "handshake",
            Self::Packet => "packet",
        }
    }
}

/// The viewers' starts and ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// In the order of [`Step::ALL`].
    latencies: [Histogram; Step::ALL.len()],
    /// From the offer sent to the first packet.
    pub(crate) startup: Histogram,
    /// Viewers that got a packet.
    pub(crate) starts: u64,
    pub(crate) failed: u64,
    /// Viewers that were about to start at the end of the run.
    pub(crate) cut_off: u64,
    pub(crate) failures: BTreeMap<FailureKind, ErrorTally>,
}

impl Tally {
    pub(crate) fn took(&mut self, step: Step, time: Duration) {
        self.latencies[step as usize].record(time);
    }

    pub(crate) fn steps(&self) -> impl Iterator<Item = (Step, &Histogram)> {
        Step::ALL.into_iter().zip(&self.latencies).filter(|(_, histogram)| histogram.count() > 0)
    }

    pub(crate) fn failure(&mut self, failure: Failure, counters: &Counters) {
        self.failed += 1;
        self.failures.entry(failure.kind).or_default().add(failure.detail);
        counters.failed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_by_kind_with_examples() {
        let (counters, mut tally) = (Counters::default(), Tally::default());
        for at in ["a", "b", "b", "c", "d"] {
            tally.failure(Failure::new(FailureKind::Status(404), at), &counters);
        }
        tally.took(Step::Check, Duration::from_millis(2));
        let (kind, errors) = tally.failures.first_key_value().unwrap();
        assert_eq!((kind.to_string().as_str(), errors.count, tally.failed), ("status 404", 5, 5));
        assert_eq!(errors.examples, ["a", "b", "c"]);
        assert_eq!(counters.read().failures, 5);
        let steps: Vec<&str> = tally.steps().map(|(step, _)| step.name()).collect();
        assert_eq!(steps, ["check"]);
    }
}
