//! Whether a node answers, by probes of it and by requests that failed.

use std::{collections::VecDeque, time::Duration};

/// Answers in a row by which a node that was down is up.
const ANSWERS: u32 = 2;
/// Probes without an answer, in a row, by which a node is down.
const SILENCES: u32 = 2;
/// Failed requests by which a node is probed at once, and the time within which they count.
const FAILURES: (usize, Duration) = (3, Duration::from_secs(5));

/// The result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probed {
    /// The application answered.
    Answered,
    /// The system refused the connection: no application listens.
    Refused,
    /// No answer came in time.
    Silent,
}

/// Whether a node answers. A single slow answer does not take a node out, and a single answer does not bring it back: viewers would be
/// sent to and fro.
#[derive(Clone, Debug, Default)]
pub struct Liveness {
    is_down: bool,
    /// The last result, and when the probe was sent.
    last: Option<(Probed, Duration)>,
    /// Results in a row that speak against the present state.
    against: u32,
    /// Times of requests that failed.
    failures: VecDeque<Duration>,
}

impl Liveness {
    /// Notes the result of a probe that was sent at `now`, a time since any moment. Returns whether the node is up, where that has
    /// changed.
    pub fn probed(&mut self, result: Probed, now: Duration) -> Option<bool> {
        self.last = Some((result, now));
        self.failures.clear();
        let needed = match (self.is_down, result) {
            (false, Probed::Refused) => 1,
            (false, Probed::Silent) => SILENCES,
            (true, Probed::Answered) => ANSWERS,
            _ => {
                self.against = 0;
                return None;
            }
        };
        self.against += 1;
        if self.against < needed {
            return None;
        }
        (self.is_down, self.against) = (!self.is_down, 0);
        Some(!self.is_down)
    }

    /// Notes that a request to the node failed at `now`. Returns whether the node is to be probed at once.
    pub fn failed(&mut self, now: Duration) -> bool {
        let (most, within) = FAILURES;
        self.failures.push_back(now);
        while self.failures.front().is_some_and(|first| now.saturating_sub(*first) > within) {
            self.failures.pop_front();
        }
        let is_due = self.failures.len() >= most;
        if is_due {
            self.failures.clear();
        }
        is_due
    }

    /// Whether viewers may be sent to the node: it is up, and its last probe was answered.
    pub fn is_usable(&self) -> bool {
        !self.is_down && self.last.is_none_or(|(result, _)| result == Probed::Answered)
    }

    /// Whether the node is down. `None` where it was never probed.
    pub fn is_down(&self) -> Option<bool> {
        self.last.map(|_| self.is_down)
    }

    /// When the last probe was sent; `None` where there was none.
    pub fn probed_at(&self) -> Option<Duration> {
        self.last.map(|(_, at)| at)
    }

    /// Whether the last probe was sent within a time before `now`.
    pub fn is_fresh(&self, now: Duration, within: Duration) -> bool {
        self.last.is_some_and(|(_, at)| now.saturating_sub(at) < within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Probed::{Answered, Refused, Silent};

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_node_goes_down_by_two_silences_or_a_refusal_and_comes_back_by_two_answers() {
        let mut node = Liveness::default();
        assert!(node.is_usable() && node.is_down().is_none() && !node.is_fresh(at(0), at(1)));
        assert_eq!(node.probed(Answered, at(1)), None);
        assert_eq!((node.probed(Silent, at(2)), node.is_usable(), node.is_down()), (None, false, Some(false)));
        assert_eq!((node.probed(Answered, at(3)), node.is_usable()), (None, true), "one slow answer");
        assert_eq!(node.probed(Silent, at(4)), None);
        assert_eq!((node.probed(Silent, at(5)), node.is_usable()), (Some(false), false));
        assert_eq!((node.probed(Answered, at(6)), node.is_usable()), (None, false), "one answer");
        assert_eq!(node.probed(Silent, at(7)), None);
        assert_eq!(node.probed(Answered, at(8)), None);
        assert_eq!((node.probed(Answered, at(9)), node.is_usable()), (Some(true), true));
        assert_eq!((node.probed(Refused, at(10)), node.is_usable()), (Some(false), false));
        assert!(node.is_fresh(at(10), at(1)) && !node.is_fresh(at(11), at(1)));
    }

    #[test]
    fn failures_of_requests_ask_for_a_probe() {
        let mut node = Liveness::default();
        assert!(!node.failed(at(0)) && !node.failed(at(1)));
        assert!(!node.failed(at(6)), "the first ones are long ago");
        assert!(!node.failed(at(7)) && node.failed(at(8)));
        assert!(!node.failed(at(8)), "once for each three");
        node.probed(Answered, at(9));
        assert!(!node.failed(at(9)) && !node.failed(at(9)) && node.failed(at(9)));
    }
}
