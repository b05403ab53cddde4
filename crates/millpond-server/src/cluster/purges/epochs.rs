//! The epochs of this node: the last purge that it knows of, and the last one that it has applied.

use super::record::PurgeRecord;
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// The epochs of this node.
#[derive(Debug, Default)]
pub(super) struct PurgeEpochs {
    /// Homes that are asked must have applied it. It is raised before the purge begins, and `applied` after it has ended.
    known: AtomicU64,
    applied: AtomicU64,
    /// Whether all purges that were there at the start have been applied.
    is_current: AtomicBool,
    /// Id of etcd, once it has been read. A lock, held for a look.
    etcd: Mutex<Option<String>>,
    /// Whether etcd has lost purges that this run of the node has applied, so that a floor says nothing about it.
    has_restarted: AtomicBool,
    /// Epoch of the record of an earlier run, where epochs are stamps.
    reached: AtomicU64,
}

impl PurgeEpochs {
    pub(super) fn known(&self) -> u64 {
        self.known.load(Ordering::Acquire)
    }

    pub(super) fn applied(&self) -> u64 {
        self.applied.load(Ordering::Acquire)
    }

    pub(super) fn is_current(&self) -> bool {
        self.is_current.load(Ordering::Acquire)
    }

    /// Id of etcd; `None` where it has not been read.
    pub(super) fn etcd(&self) -> Option<String> {
        self.etcd.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes a reading of etcd at a revision. At the first one, the node goes on from its `record` if that is of this etcd. Later, an etcd
    /// that was restored or begun anew numbers its purges anew.
    pub(super) fn reads(&self, etcd: &str, revision: u64, has_lost: bool, record: Option<&PurgeRecord>) {
        let mut known = self.etcd.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            None => {
                let is_of_this = |record: &&PurgeRecord| record.etcd == etcd && record.epoch <= revision;
                self.set(record.filter(is_of_this).map_or(0, |record| record.epoch));
            }
            Some(before) if before != etcd || has_lost => {
                self.has_restarted.store(true, Ordering::Release);
                self.set(0);
            }
            Some(_) => return,
        }
        *known = Some(etcd.to_owned());
    }

    /// The same for a registry whose epochs are stamps of several nodes. The node may have missed one below its record, so it applies all purges
    /// that are listed. Its record tells only whether it knew those that are not.
    pub(super) fn reads_stamps(&self, registry: &str, record: Option<&PurgeRecord>) {
        let mut known = self.etcd.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            let epoch = record.filter(|record| record.etcd == registry).map_or(0, |record| record.epoch);
            self.reached.store(epoch, Ordering::Release);
            *known = Some(registry.to_owned());
        }
    }

    /// The epoch from which purges are applied, where the list of purges has a floor.
    pub(super) fn begin(&self, floor: u64) -> u64 {
        if floor <= self.reached.load(Ordering::Acquire) {
            self.ends(floor);
        }
        let applied = self.applied();
        if self.has_restarted.swap(false, Ordering::AcqRel) { applied.max(floor) } else { applied }
    }

    /// Notes that purges up to an epoch are about to be applied.
    pub(super) fn begins(&self, epoch: u64) {
        self.known.fetch_max(epoch, Ordering::AcqRel);
    }

    /// Notes that all purges up to an epoch have been applied.
    pub(super) fn ends(&self, epoch: u64) {
        self.known.fetch_max(epoch, Ordering::AcqRel);
        self.applied.fetch_max(epoch, Ordering::AcqRel);
    }

    /// Notes that nothing is left to apply.
    pub(super) fn is_done(&self) {
        self.is_current.store(true, Ordering::Release);
    }

    fn set(&self, epoch: u64) {
        self.known.store(epoch, Ordering::Release);
        self.applied.store(epoch, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(etcd: &str, epoch: u64) -> PurgeRecord {
        PurgeRecord { etcd: etcd.into(), prefix: "/m/".into(), node: "a".into(), epoch }
    }

    #[test]
    fn a_run_goes_on_from_the_record_of_its_etcd() {
        for (record, revision, applied) in [
            (None, 50, 0),
            (Some(record("7", 40)), 50, 40),
            (Some(record("8", 40)), 50, 0),
            // etcd was begun anew.
            (Some(record("7", 40)), 39, 0),
        ] {
            let epochs = PurgeEpochs::default();
            epochs.reads("7", revision, false, record.as_ref());
            assert_eq!((epochs.applied(), epochs.known(), epochs.begin(60)), (applied, applied, applied));
            assert_eq!(epochs.etcd().as_deref(), Some("7"));
        }
    }

    #[test]
    fn by_stamps_a_run_applies_all_that_is_listed_and_its_record_counts_for_the_floor() {
        for (record, floor, begin) in [
            (None, 0, 0),
            (None, 30, 0),
            (Some(record("nodes", 40)), 0, 0),
            (Some(record("nodes", 40)), 30, 30),
            (Some(record("nodes", 40)), 40, 40),
            (Some(record("nodes", 40)), 41, 0),
            (Some(record("7", 40)), 30, 0),
        ] {
            let epochs = PurgeEpochs::default();
            epochs.reads_stamps("nodes", record.as_ref());
            assert_eq!((epochs.applied(), epochs.begin(floor)), (0, begin), "{record:?} {floor}");
            assert_eq!((epochs.applied(), epochs.known()), (begin, begin));
        }
    }

    #[test]
    fn a_purge_is_known_before_it_is_applied() {
        let epochs = PurgeEpochs::default();
        epochs.reads("7", 50, false, None);
        epochs.begins(60);
        assert_eq!((epochs.known(), epochs.applied()), (60, 0));
        epochs.ends(60);
        // Another task has read less.
        epochs.ends(55);
        assert_eq!((epochs.known(), epochs.applied()), (60, 60));
        assert!(!epochs.is_current());
        epochs.is_done();
        assert!(epochs.is_current());
    }

    #[test]
    fn an_etcd_that_is_begun_anew_numbers_purges_anew_and_empties_no_cache_that_runs() {
        let epochs = PurgeEpochs::default();
        epochs.reads("7", 50, false, None);
        epochs.ends(60);
        epochs.reads("7", 70, false, Some(&record("7", 1)));
        assert_eq!(epochs.applied(), 60);
        epochs.reads("7", 3, true, None);
        assert_eq!((epochs.applied(), epochs.begin(2), epochs.begin(2)), (0, 2, 0));
        epochs.ends(2);
        epochs.reads("8", 90, false, None);
        assert_eq!((epochs.known(), epochs.begin(30)), (0, 30));
    }
}
