//! The slices that this node removed for its last purges.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

/// Most counts that are kept.
const MOST: usize = 64;

/// Slices that were removed, with the epochs up to which purges were applied, in their order. A lock, held for a look.
#[derive(Debug, Default)]
pub(super) struct PurgeCounts(Mutex<VecDeque<(u64, u64)>>);

impl PurgeCounts {
    /// Notes the slices of purges that were applied together.
    pub(super) fn note(&self, epoch: u64, slices: u64) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // An etcd that was begun anew numbers its purges anew.
        counts.retain(|(before, _)| *before < epoch);
        if counts.len() == MOST {
            counts.pop_front();
        }
        counts.push_back((epoch, slices));
    }

    /// The slices of a purge, with those of purges that were applied together with it; `None` where it was not applied.
    pub(super) fn of(&self, epoch: u64) -> Option<u64> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().find(|(last, _)| *last >= epoch).map(|(_, slices)| *slices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purge_has_the_count_of_those_that_were_applied_with_it() {
        let counts = PurgeCounts::default();
        assert_eq!(counts.of(1), None);
        counts.note(3, 10);
        counts.note(7, 20);
        assert_eq!([3, 4, 7, 8].map(|epoch| counts.of(epoch)), [Some(10), Some(20), Some(20), None]);
        counts.note(5, 1);
        assert_eq!([3, 4, 6].map(|epoch| counts.of(epoch)), [Some(10), Some(1), None]);
        (10..1000).for_each(|epoch| counts.note(epoch, epoch));
        assert_eq!((counts.of(999), counts.0.lock().unwrap().len()), (Some(999), MOST));
    }
}
