//! A limit of what is open at the same time: connections, or recordings. It may change while some are open.

use rustix::process::{Resource, getrlimit};
use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::Notify;

/// Descriptors of the process that connections of clients may take, whatever their protocol. The others are for the admin
/// address, origins and files.
static DESCRIPTORS: LazyLock<Arc<Slots>> = LazyLock::new(|| {
    // It was raised at the start.
    Slots::new(connections_within(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)))
});

/// Descriptors that are kept for listeners, logs, the cache and the admin address.
const KEPT: u64 = 256;

/// Number of connections that fit in a limit of open files: a connection takes one, and what it is served from another
/// third.
pub(crate) fn connections_within(open_files: u64) -> usize {
    usize::try_from((open_files.saturating_sub(KEPT) / 4 * 3).max(64)).unwrap_or(usize::MAX)
}

/// A number of slots, some of which are taken.
#[derive(Debug)]
pub(crate) struct Slots {
    most: AtomicUsize,
    taken: AtomicUsize,
    /// Signalled when the last slot is given back.
    emptied: Notify,
    /// Slots of which each of these takes one too.
    within: Option<Arc<Slots>>,
}

/// A slot, taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    of: Arc<Slots>,
    _within: Option<Box<Slot>>,
}

impl Slots {
    /// Makes `most` slots.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Self::with(most, None)
    }

    /// Makes `most` slots for connections of clients, each of which takes one of the process's descriptors for connections.
    pub(crate) fn of_connections(most: usize) -> Arc<Self> {
        Self::with(most, Some(DESCRIPTORS.clone()))
    }

    /// Takes a descriptor for a connection that no other slot counts; `None` where none is left.
    #[cfg_attr(not(feature = "intercept"), allow(dead_code, reason = "interception uses it"))]
    pub(crate) fn take_descriptor() -> Option<Slot> {
        DESCRIPTORS.take()
    }

    fn with(most: usize, within: Option<Arc<Self>>) -> Arc<Self> {
        let (most, taken) = (AtomicUsize::new(most), AtomicUsize::new(0));
        Arc::new(Self { most, taken, emptied: Notify::new(), within })
    }

    /// Takes a slot; `None` where all are taken.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Slot> {
        let within = match &self.within {
            Some(within) => Some(Box::new(within.take()?)),
            None => None,
        };
        let most = self.most();
        let one_more = |taken: usize| (taken < most).then_some(taken + 1);
        let is_taken = self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).is_ok();
        is_taken.then(|| Slot { of: self.clone(), _within: within })
    }

    /// Says why no slot can be taken.
    pub(crate) fn why(&self) -> &'static str {
        if self.taken() >= self.most() {
            return "max-connections is reached";
        }
        "connections of all protocols have their share of the limit of open files: raise it (LimitNOFILE=, ulimit -n)"
    }

    /// Number of slots.
    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Changes the number. Slots that are taken above it stay taken until they are given back.
    pub(crate) fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Number of slots that are taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    /// Waits until no slot is taken.
    pub(crate) async fn empty(&self) {
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            if self.taken() == 0 {
                return;
            }
            emptied.await;
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.of.taken.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.of.emptied.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_limit_changes_while_slots_are_taken() {
        let slots = Slots::new(2);
        let (first, second) = (slots.take().unwrap(), slots.take().unwrap());
        assert!(slots.take().is_none());
        slots.set_most(1);
        drop(first);
        assert!(slots.take().is_none(), "one is taken, and one there is");
        slots.set_most(2);
        let third = slots.take().unwrap();
        assert_eq!(slots.taken(), 2);
        let waiter = tokio::spawn({
            let slots = slots.clone();
            async move { slots.empty().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiter.is_finished());
        drop((second, third));
        waiter.await.unwrap();
        slots.empty().await;
    }

    #[test]
    fn connections_of_all_protocols_share_descriptors() {
        let all = Slots::new(3);
        let protocols: Vec<_> = (0..3).map(|_| Slots::with(2, Some(all.clone()))).collect();
        let mut held: Vec<_> = (0..2).filter_map(|_| protocols[0].take()).collect();
        assert!(protocols[0].take().is_none(), "its own limit");
        assert_eq!((all.taken(), protocols[0].why()), (2, "max-connections is reached"));
        held.extend(protocols[1].take());
        assert!(protocols[2].take().is_none() && protocols[2].why().contains("open files"));
        held.pop();
        assert!(protocols[2].take().is_some());
        held.clear();
        assert_eq!(all.taken(), 0);
    }

    #[test]
    fn descriptors_are_kept_for_others() {
        for limit in [512, 1024, 4096, 20_000] {
            let connections = connections_within(limit) as u64;
            assert!(connections + 256 <= limit && connections >= 64, "{limit}: {connections}");
        }
    }
}
