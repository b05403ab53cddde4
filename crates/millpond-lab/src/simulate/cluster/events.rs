//! The virtual clock.

use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};

/// Events by their time. Those of one time come in the order in which they were added.
#[derive(Debug)]
pub(super) struct Events<E> {
    queue: BinaryHeap<Reverse<(Duration, u64, Order<E>)>>,
    added: u64,
}

/// An event, which has no order of its own.
#[derive(Debug)]
struct Order<E>(E);

impl<E> PartialEq for Order<E> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<E> Eq for Order<E> {}

impl<E> PartialOrd for Order<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Order<E> {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl<E> Events<E> {
    pub(super) fn new() -> Self {
        Self { queue: BinaryHeap::new(), added: 0 }
    }

    pub(super) fn add(&mut self, at: Duration, event: E) {
        self.added += 1;
        self.queue.push(Reverse((at, self.added, Order(event))));
    }

    /// The next event and its time.
    pub(super) fn next(&mut self) -> Option<(Duration, E)> {
        self.queue.pop().map(|Reverse((at, _, Order(event)))| (at, event))
    }
}
