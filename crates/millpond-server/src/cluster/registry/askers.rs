//! The runs of nodes that ask this one. No question is answered twice, and a node that nobody asks is in nobody's list. Pure: times are arguments.

use millpond_cluster::PASS_VALID;
use std::{collections::BTreeMap, time::Duration};

/// Most runs that are remembered. Only nodes of the cluster have some.
const MOST: usize = 256;
/// Time after the last question of a run in which one of its passes may still be valid, by whichever clock.
const REMEMBERED: Duration = PASS_VALID.saturating_mul(3);

/// The runs that have asked.
#[derive(Debug, Default)]
pub(super) struct Askers(BTreeMap<u64, Asker>);

/// The questions of one run. They may come in another order than they were asked.
#[derive(Debug, Default)]
struct Asker {
    heard: Duration,
    greatest: u64,
    /// Those of the 64 numbers below the greatest that have come: bit 0 is the next lower one.
    before: u64,
}

impl Askers {
    /// Notes a question; tells whether it is new. One far below the greatest of its run counts as known.
    pub(super) fn is_new(&mut self, run: u64, number: u64, now: Duration) -> bool {
        match self.0.get_mut(&run) {
            Some(asker) => asker.is_new(number, now),
            None => {
                self.make_room(now);
                self.0.insert(run, Asker { heard: now, greatest: number, before: 0 });
                true
            }
        }
    }

    /// Notes that a run asks which has a certificate, and no numbers.
    pub(super) fn heard(&mut self, run: u64, now: Duration) {
        let next = self.0.get(&run).map_or(0, |asker| asker.greatest.saturating_add(1));
        self.is_new(run, next, now);
    }

    /// Whether a run has asked since a time.
    pub(super) fn has_asked(&self, run: u64, since: Duration) -> bool {
        self.0.get(&run).is_some_and(|asker| asker.heard >= since)
    }

    /// Whether any run but one has asked since a time.
    pub(super) fn has_any_but(&self, own: u64, since: Duration) -> bool {
        self.0.iter().any(|(run, asker)| *run != own && asker.heard >= since)
    }

    fn make_room(&mut self, now: Duration) {
        self.0.retain(|_, asker| now < asker.heard + REMEMBERED);
        let silent = self.0.iter().min_by_key(|(_, asker)| asker.heard).map(|(run, _)| *run);
        if let Some(run) = silent.filter(|_| self.0.len() >= MOST) {
            self.0.remove(&run);
        }
    }
}

impl Asker {
    fn is_new(&mut self, number: u64, now: Duration) -> bool {
        let is_new = match number.checked_sub(self.greatest) {
            Some(0) => false,
            Some(ahead) => {
                let shifted =
                    |bits: u64, by: u64| u32::try_from(by).ok().and_then(|by| bits.checked_shl(by)).unwrap_or(0);
                self.before = shifted(self.before, ahead) | shifted(1, ahead - 1);
                self.greatest = number;
                true
            }
            None => {
                let below = u32::try_from(self.greatest - number - 1).ok();
                let bit = below.and_then(|below| 1_u64.checked_shl(below)).unwrap_or(0);
                let is_new = bit != 0 && self.before & bit == 0;
                self.before |= bit;
                is_new
            }
        };
        self.heard = if is_new { now } else { self.heard };
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_question_is_new_once() {
        let mut askers = Askers::default();
        let mut is_new = |number| askers.is_new(1, number, at(1));
        assert!(is_new(100) && !is_new(100) && is_new(98) && !is_new(98) && is_new(101) && !is_new(98) && is_new(99));
        assert!(is_new(200) && !is_new(101) && is_new(136) && !is_new(135), "it is too old to tell");
        assert!(is_new(u64::MAX) && !is_new(u64::MAX) && !is_new(0));
        assert!(askers.is_new(2, 100, at(1)), "another run has numbers of its own");
    }

    #[test]
    fn runs_are_heard_and_forgotten() {
        let mut askers = Askers::default();
        askers.heard(1, at(10));
        askers.heard(1, at(20));
        assert!(askers.has_asked(1, at(20)) && !askers.has_asked(1, at(21)) && !askers.has_asked(2, at(0)));
        assert!(askers.has_any_but(2, at(20)) && !askers.has_any_but(1, at(0)));
        (0..1000).for_each(|run| askers.heard(run, at(30)));
        assert!(askers.0.len() <= MOST);
        askers.heard(5000, at(30) + REMEMBERED);
        assert_eq!(askers.0.len(), 1);
    }

    proptest! {
        #[test]
        fn none_is_new_twice(numbers in proptest::collection::vec(0_u64..150, 0..300)) {
            let (mut askers, mut known) = (Askers::default(), BTreeSet::new());
            for number in numbers {
                let is_new = askers.is_new(1, number, at(0));
                prop_assert!(!is_new || !known.contains(&number));
                let near = known.last().is_none_or(|last| number + 64 >= *last);
                prop_assert!(is_new || known.contains(&number) || !near);
                if is_new {
                    known.insert(number);
                }
            }
        }
    }
}
