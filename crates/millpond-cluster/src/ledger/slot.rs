//! Bookings of a node: streams of one storage that end within the same period.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

/// The booking that a stream is part of. [`super::Ledger::give_back`] takes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    pub(super) storage: Option<Arc<str>>,
    pub(super) stores: BTreeSet<Arc<str>>,
    /// Whether it has nothing of the node.
    pub(super) is_read_only: bool,
    /// End in seconds since the Unix epoch.
    pub(super) until: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    /// Bandwidth of its streams.
    pub(super) needed: u64,
    /// Bandwidth that etcd has.
    pub(super) written: u64,
    /// When it begins, in seconds since the Unix epoch.
    pub(super) from: u64,
}

impl Slot {
    /// Whether the booking has ended.
    pub fn is_over(&self, now: Duration) -> bool {
        self.until.is_some_and(|until| until <= now.as_secs())
    }

    /// About the length of its booking as JSON.
    pub(super) fn length(&self) -> usize {
        let share = |name: &str| name.len() + 64;
        share("") + self.storage.iter().chain(&self.stores).map(|name| share(name)).sum::<usize>()
    }
}
