//! A limit of what is open at the same time: connections, or recordings. It may change while some are open.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::Notify;

/// A number of slots, some of which are taken.
#[derive(Debug)]
pub(crate) struct Slots {
    most: AtomicUsize,
    taken: AtomicUsize,
    /// Signalled when the last slot is given back.
    emptied: Notify,
}

/// A slot, taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Slot(Arc<Slots>);

impl Slots {
    /// Makes `most` slots.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: AtomicUsize::new(most), taken: AtomicUsize::new(0), emptied: Notify::new() })
    }

    /// Takes a slot; `None` where all are taken.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Slot> {
        let most = self.most();
        let one_more = |taken: usize| (taken < most).then_some(taken + 1);
        let is_taken = self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).is_ok();
        is_taken.then(|| Slot(self.clone()))
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
        if self.0.taken.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.emptied.notify_waiters();
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
}
