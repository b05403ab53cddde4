//! The items with the largest scores.

use crate::hash;

/// The items of the largest scores, at most a count of them, the largest first.
#[derive(Debug)]
pub(crate) struct Best<T> {
    count: usize,
    items: Vec<(f64, T)>,
}

impl<T> Best<T> {
    pub(crate) const fn new(count: usize) -> Self {
        Self { count, items: Vec::new() }
    }

    /// Offers an item of `weight` whose hash with the object is `hash`. Of equal scores the item that was offered first is better.
    pub(crate) fn offer(&mut self, hash: u64, weight: f64, item: T) {
        let is_full = self.items.len() >= self.count;
        let least = if is_full { self.items.last().map_or(f64::INFINITY, |(score, _)| *score) } else { 0.0 };
        if !hash::may_exceed(hash, weight, least) {
            return;
        }
        let score = hash::score(hash, weight);
        if is_full && score <= least {
            return;
        }
        let at = self.items.partition_point(|(other, _)| *other >= score);
        self.items.insert(at, (score, item));
        self.items.truncate(self.count);
    }

    pub(crate) fn into_iter(self) -> impl Iterator<Item = (f64, T)> {
        self.items.into_iter()
    }
}
