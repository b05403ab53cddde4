//! One run of a job however many ask for its result at once.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::OnceCell;

/// Jobs under way, by key.
pub(crate) struct Flights<K, V> {
    // A lock held only to look up or drop an entry, never across an await.
    under_way: Mutex<HashMap<K, Arc<OnceCell<V>>>>,
}

impl<K: Eq + Hash + Clone, V: Clone> Flights<K, V> {
    pub(crate) fn new() -> Self {
        Self { under_way: Mutex::new(HashMap::new()) }
    }

    /// The job's result: its own where nobody runs it, otherwise that of the run under way. A caller that leaves
    /// in the middle hands the job to the next who waits.
    pub(crate) async fn join<F: Future<Output = V>>(&self, key: &K, job: impl FnOnce() -> F) -> V {
        let cell = {
            let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
            under_way.entry(key.clone()).or_default().clone()
        };
        let landing = Landing { flights: self, key, cell: &cell };
        let value = cell.get_or_init(job).await.clone();
        drop(landing);
        value
    }
}

/// Takes the entry out when the job is done or the last who waited has gone.
struct Landing<'a, K: Eq + Hash, V> {
    flights: &'a Flights<K, V>,
    key: &'a K,
    cell: &'a Arc<OnceCell<V>>,
}

impl<K: Eq + Hash, V> Drop for Landing<'_, K, V> {
    fn drop(&mut self) {
        let mut under_way = self.flights.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let same = under_way.get(self.key).is_some_and(|cell| Arc::ptr_eq(cell, self.cell));
        // Two references: the map's and ours.
        if same && (self.cell.initialized() || Arc::strong_count(self.cell) <= 2) {
            under_way.remove(self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test]
    async fn one_run_for_many_and_a_fresh_one_later() {
        let flights = Flights::new();
        let runs = AtomicU32::new(0);
        let job = || async {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            runs.fetch_add(1, Ordering::Relaxed)
        };
        let (a, b, c) = tokio::join!(flights.join(&1, job), flights.join(&1, job), flights.join(&2, job));
        assert_eq!(a, b, "one run for both");
        assert_ne!(a, c, "another for another key");
        assert_eq!(runs.load(Ordering::Relaxed), 2);
        assert_eq!(flights.join(&1, job).await, 2);
        assert!(flights.under_way.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_caller_that_leaves_hands_the_job_on() {
        let flights: Flights<u8, u8> = Flights::new();
        let first = tokio::time::timeout(std::time::Duration::from_millis(5), flights.join(&1, std::future::pending));
        let second = flights.join(&1, || async { 7 });
        let (first, second) = tokio::join!(first, second);
        assert!(first.is_err());
        assert_eq!(second, 7);
        assert!(flights.under_way.lock().unwrap().is_empty());
    }
}
