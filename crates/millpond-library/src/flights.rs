//! One run of a job however many ask for its result at once.

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// A job that its callers drive together.
type Job<V> = Shared<BoxFuture<'static, V>>;

/// Jobs under way, by key.
///
/// A job goes on while one of its callers waits, whichever that is, and is dropped when the last has left.
pub(crate) struct Flights<K, V> {
    // A lock held only to look up or drop an entry, never across an await.
    under_way: Mutex<HashMap<K, Flight<V>>>,
}

struct Flight<V> {
    job: Job<V>,
    callers: usize,
}

impl<K: Eq + Hash + Clone, V: Clone + Send + 'static> Flights<K, V> {
    pub(crate) fn new() -> Self {
        Self { under_way: Mutex::new(HashMap::new()) }
    }

    /// The result of the run under way, else of `job`.
    pub(crate) async fn join<F>(&self, key: &K, job: impl FnOnce() -> F) -> V
    where
        F: Future<Output = V> + Send + 'static,
    {
        let job = {
            let mut under_way = self.lock();
            let fresh = || Flight { job: job().boxed().shared(), callers: 0 };
            let flight = under_way.entry(key.clone()).or_insert_with(fresh);
            flight.callers += 1;
            flight.job.clone()
        };
        let _landing = Landing { flights: self, key, job: job.clone() };
        job.await
    }
}

impl<K, V> Flights<K, V> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, Flight<V>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the entry out when the job is done or the last who waited has gone.
struct Landing<'a, K: Eq + Hash, V> {
    flights: &'a Flights<K, V>,
    key: &'a K,
    job: Job<V>,
}

impl<K: Eq + Hash, V> Drop for Landing<'_, K, V> {
    fn drop(&mut self) {
        let mut under_way = self.flights.lock();
        // A job of the same key may have begun since this one was done.
        let Some(flight) = under_way.get_mut(self.key).filter(|flight| flight.job.ptr_eq(&self.job)) else { return };
        flight.callers -= 1;
        let gone = (flight.callers == 0 || self.job.peek().is_some()).then(|| under_way.remove(self.key));
        drop(under_way);
        // A dropped job has work to do, such as to cancel what runs for it: not under the lock.
        drop(gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        },
        time::Duration,
    };

    /// A job that never ends, and holds `alive` until it is dropped.
    fn endless(alive: &Arc<()>) -> impl Future<Output = u8> + Send + use<> {
        let alive = alive.clone();
        async move {
            std::future::pending::<()>().await;
            drop(alive);
            0
        }
    }

    #[tokio::test]
    async fn one_run_for_many_and_a_fresh_one_later() {
        let flights = Flights::new();
        let runs = Arc::new(AtomicU32::new(0));
        let job = || {
            let runs = runs.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                runs.fetch_add(1, Ordering::Relaxed)
            }
        };
        let (a, b, c) = tokio::join!(flights.join(&1, job), flights.join(&1, job), flights.join(&2, job));
        assert_eq!(a, b, "one run for both");
        assert_ne!(a, c, "another for another key");
        assert_eq!(runs.load(Ordering::Relaxed), 2);
        assert_eq!(flights.join(&1, job).await, 2);
        assert!(flights.lock().is_empty());
    }

    #[tokio::test]
    async fn a_caller_that_leaves_hands_the_same_run_on() {
        let flights: Flights<u8, u8> = Flights::new();
        let runs = Arc::new(AtomicU32::new(0));
        let job = || {
            let runs = runs.clone();
            async move {
                runs.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(60)).await;
                7
            }
        };
        let first = tokio::time::timeout(Duration::from_millis(5), flights.join(&1, job));
        let (first, second) = tokio::join!(first, flights.join(&1, job));
        assert!(first.is_err());
        assert_eq!((second, runs.load(Ordering::Relaxed)), (7, 1), "it did not begin anew");
        assert!(flights.lock().is_empty());
    }

    #[tokio::test]
    async fn a_run_ends_with_the_last_who_waits() {
        let flights: Flights<u8, u8> = Flights::new();
        let alive = Arc::new(());
        let wait = |ms| tokio::time::timeout(Duration::from_millis(ms), flights.join(&1, || endless(&alive)));
        let (first, second) = tokio::join!(wait(5), async {
            let second = wait(20).await;
            assert_eq!(Arc::strong_count(&alive), 1, "dropped with the last");
            second
        });
        assert!(first.is_err() && second.is_err());
        assert!(flights.lock().is_empty());
    }
}
