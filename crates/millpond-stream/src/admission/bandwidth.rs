//! Bits a second, as they are granted.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number of bits a second, and the part of it that is taken.
#[derive(Debug)]
pub(super) struct Bandwidth {
    most: AtomicU64,
    taken: AtomicU64,
}

impl Bandwidth {
    /// All of it is free. `None` is unbounded.
    pub(super) fn new(most: Option<u64>) -> Self {
        Self { most: AtomicU64::new(most.unwrap_or(u64::MAX)), taken: AtomicU64::new(0) }
    }

    /// Changes the limit. Sessions that hold bandwidth above a lower limit keep it until they end.
    pub(super) fn set_most(&self, most: Option<u64>) {
        self.most.store(most.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn is_bounded(&self) -> bool {
        self.most.load(Ordering::Relaxed) < u64::MAX
    }

    /// Whether `rate` is free.
    pub(super) fn has_room(&self, rate: u64) -> bool {
        self.sum(self.taken.load(Ordering::Relaxed), rate).is_some()
    }

    /// Takes `rate` where it is free. [`give_back`](Self::give_back) must follow.
    pub(super) fn take(&self, rate: u64) -> bool {
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| self.sum(taken, rate)).is_ok()
    }

    pub(super) fn give_back(&self, rate: u64) {
        self.taken.fetch_sub(rate, Ordering::Relaxed);
    }

    fn sum(&self, taken: u64, rate: u64) -> Option<u64> {
        taken.checked_add(rate).filter(|sum| *sum <= self.most.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_taken_once() {
        let bandwidth = Bandwidth::new(Some(1000));
        assert!(bandwidth.take(600) && !bandwidth.take(600));
        assert!(!bandwidth.has_room(600) && bandwidth.has_room(400) && bandwidth.take(400));
        bandwidth.give_back(600);
        assert!(bandwidth.take(600) && !bandwidth.take(u64::MAX), "no overflow");
        let unbounded = Bandwidth::new(None);
        assert!(bandwidth.is_bounded() && !unbounded.is_bounded());
        assert!(unbounded.take(u64::MAX - 1) && !unbounded.take(2));
        bandwidth.set_most(Some(500));
        assert!(!bandwidth.has_room(1), "1000 are taken");
        bandwidth.give_back(600);
        assert!(bandwidth.take(100) && !bandwidth.take(1));
        bandwidth.set_most(None);
        assert!(!bandwidth.is_bounded() && bandwidth.take(1_000_000));
    }
}
