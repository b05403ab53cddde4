//! When entries are needed next, where that is known.

use super::Slot;
use std::{collections::BTreeSet, time::Duration};

/// When an entry is needed next. The greatest is evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// At about this time, since a moment that is the same for all needs of a ledger.
    At(Duration),
    /// By readers to come, if there are any. Each of them needs it this long after it begins.
    Perhaps(Duration),
}

/// Entries in the order of their needs.
#[derive(Debug, Default)]
pub(super) struct Needs {
    order: BTreeSet<(Need, Slot)>,
    by_slot: Vec<Option<Need>>,
}

impl Needs {
    /// The need of an entry.
    pub(super) fn of(&self, slot: Slot) -> Option<Need> {
        self.by_slot.get(slot as usize).copied().flatten()
    }

    pub(super) fn set(&mut self, slot: Slot, need: Option<Need>) {
        let index = slot as usize;
        if index >= self.by_slot.len() {
            if need.is_none() {
                return;
            }
            self.by_slot.resize(index + 1, None);
        }
        if let Some(old) = std::mem::replace(&mut self.by_slot[index], need) {
            self.order.remove(&(old, slot));
        }
        self.order.extend(need.map(|need| (need, slot)));
    }

    /// The entry that is needed last.
    pub(super) fn last(&self) -> Option<(Need, Slot)> {
        self.order.last().copied()
    }

    /// Entries that were needed before a time come last: their readers stand still.
    pub(super) fn give_up(&mut self, before: Duration) {
        while let Some((Need::At(at), slot)) = self.order.first().copied()
            && at < before
        {
            self.set(slot, Some(Need::Perhaps(Duration::MAX)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_needed_is_found_and_late_ones_come_last() {
        let at = |seconds| Need::At(Duration::from_secs(seconds));
        let mut needs = Needs::default();
        needs.set(7, None);
        for (slot, need) in [(3, at(30)), (1, at(10)), (2, Need::Perhaps(Duration::ZERO)), (4, at(40)), (2, at(20))] {
            needs.set(slot, Some(need));
        }
        assert_eq!((needs.last(), needs.of(2), needs.of(9)), (Some((at(40), 4)), Some(at(20)), None));
        needs.set(4, None);
        assert_eq!(needs.last(), Some((at(30), 3)));
        needs.give_up(Duration::from_secs(20));
        assert_eq!(needs.last(), Some((Need::Perhaps(Duration::MAX), 1)));
        needs.set(1, None);
        assert_eq!((needs.last(), needs.order.len()), (Some((at(30), 3)), 2));
    }
}
