//! The purges of a cluster, by epoch: what a node has to do, and which entries are removed. Pure.
//!
//! The epoch of a purge is the revision of etcd at which its key was made. A node that has applied an epoch has applied all purges up to it.
//! Entries are removed after a day. The floor is the last epoch that was removed: a node below it can't know what it missed.

use crate::PurgeEntry;
use std::time::Duration;

/// Time for which an entry is kept.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// Number of entries that are kept: of more, the oldest ones are removed sooner.
const MOST_KEPT: usize = 4096;
/// Number of entries that are removed at once: a transaction of etcd has 128 operations at most.
const MOST_REMOVED: usize = 100;
/// Number of purges that a node applies one by one. A node that missed more empties its cache.
const MOST_APPLIED: usize = 1024;

/// The purges of a cluster, as they were read last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PurgeList {
    floor: u64,
    /// Purges by epoch; `None` where this version can't read the entry.
    purges: Vec<(u64, Option<PurgeEntry>)>,
}

/// The purges that a node has to apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuePurges {
    /// The epoch that it has applied then.
    pub epoch: u64,
    /// The purges in order; `None` where it has to empty its cache.
    pub purges: Option<Vec<PurgeEntry>>,
}

impl PurgeList {
    /// A list of purges with their epochs.
    pub fn new(floor: u64, mut purges: Vec<(u64, Option<PurgeEntry>)>) -> Self {
        purges.sort_by_key(|(epoch, _)| *epoch);
        Self { floor, purges }
    }

    /// The last epoch that was removed.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// Returns whether the list has its most purges: no further one is accepted until old ones are removed.
    pub fn is_full(&self) -> bool {
        self.purges.len() >= 2 * MOST_KEPT
    }

    /// The purges that a node has to apply which has applied those up to an epoch; `None` where there are none.
    pub fn due(&self, applied: u64) -> Option<DuePurges> {
        let begin = self.purges.partition_point(|(epoch, _)| *epoch <= applied);
        let missed = &self.purges[begin..];
        let epoch = missed.last().map_or(self.floor, |(epoch, _)| self.floor.max(*epoch));
        if epoch <= applied {
            return None;
        }
        let is_listed = applied >= self.floor && missed.len() <= MOST_APPLIED;
        let purges = is_listed.then(|| missed.iter().map(|(_, purge)| purge.clone()).collect()).flatten();
        Some(DuePurges { epoch, purges })
    }

    /// Number of entries that are removed at a time, the oldest ones. An entry that can't be read is removed after those before it.
    pub fn removable(&self, now: Duration) -> usize {
        let excess = self.purges.len().saturating_sub(MOST_KEPT);
        let is_old = |(_, purge): &&(u64, Option<PurgeEntry>)| {
            purge.as_ref().is_none_or(|purge| now.saturating_sub(purge.at) > KEPT)
        };
        self.purges.iter().take_while(is_old).count().max(excess).min(MOST_REMOVED)
    }

    /// The floor once some entries, the oldest ones, are removed.
    pub fn floor_after(&self, removed: usize) -> u64 {
        let last = removed.checked_sub(1).and_then(|last| self.purges.get(last));
        last.map_or(self.floor, |(epoch, _)| self.floor.max(*epoch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PurgedObjects;

    fn purge(path: &str, hours: u64) -> PurgeEntry {
        let objects = PurgedObjects::Path(path.to_owned());
        PurgeEntry { place: Some("p".into()), objects, is_soft: false, at: Duration::from_secs(hours * 3600) }
    }

    fn list(floor: u64, epochs: impl IntoIterator<Item = u64>) -> PurgeList {
        PurgeList::new(floor, epochs.into_iter().map(|epoch| (epoch, Some(purge(&epoch.to_string(), epoch)))).collect())
    }

    #[test]
    fn a_node_applies_what_it_has_missed_in_order() {
        let list = list(5, [30, 10, 20]);
        let due = list.due(10).unwrap();
        assert_eq!((due.epoch, due.purges), (30, Some(vec![purge("20", 20), purge("30", 30)])));
        assert_eq!(list.due(5).unwrap().purges.unwrap().len(), 3, "the floor itself was applied");
        assert_eq!((list.due(30), list.due(31)), (None, None));
        assert_eq!(PurgeList::default().due(0), None);
    }

    #[test]
    fn a_node_below_the_floor_empties_its_cache() {
        assert_eq!(list(5, [10]).due(4), Some(DuePurges { epoch: 10, purges: None }));
        assert_eq!(list(5, []).due(0), Some(DuePurges { epoch: 5, purges: None }));
        assert_eq!(list(5, []).due(5), None);
    }

    #[test]
    fn a_purge_that_cannot_be_read_and_too_many_purges_empty_the_cache() {
        let unread = PurgeList::new(0, vec![(3, Some(purge("a", 0))), (4, None)]);
        assert_eq!(unread.due(2), Some(DuePurges { epoch: 4, purges: None }));
        let many = list(0, 1..=2000);
        assert_eq!(many.due(1).unwrap().purges, None);
        assert_eq!(many.due(1000).unwrap().purges.unwrap().len(), 1000);
    }

    #[test]
    fn entries_are_removed_after_a_day_or_when_there_are_too_many() {
        let list = list(1, [10, 20, 30]);
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        assert_eq!(list.removable(hours(20)), 0);
        assert_eq!(list.removable(hours(35)), 1);
        assert_eq!(list.removable(hours(45)), 2);
        assert_eq!((list.floor_after(0), list.floor_after(2)), (1, 20));
        let many = PurgeList::new(0, (1..=4100).map(|epoch| (epoch, Some(purge("a", 0)))).collect());
        assert_eq!((many.removable(Duration::ZERO), many.floor_after(4)), (4, 4));
        assert!(!many.is_full());
        let full = PurgeList::new(0, (1..=8192).map(|epoch| (epoch, None)).collect());
        assert!(full.is_full() && full.removable(Duration::ZERO) == 100);
    }
}
