//! Single flight: concurrent callers with the same key share one run of a job.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};

/// Jobs under way, by key: the first caller of a key starts its job, later callers share the result.
///
/// The callers drive the job themselves; nothing is spawned. Any caller may leave at any time, including the first. The job
/// continues while at least one caller waits, and is dropped when the last caller leaves. A finished job is forgotten at once,
/// with its result and its errors, so the next caller starts a new one.
///
/// ```
/// # use millpond_store::SingleFlight;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let sizes = SingleFlight::new();
/// let job = |size| async move {
///     tokio::task::yield_now().await;
///     size
/// };
/// let (a, b) = tokio::join!(sizes.run(&"film", || job(42)), sizes.run(&"film", || job(43)));
/// assert_eq!((a, b), ((42, false), (42, true)), "the second caller shared the first one's job");
/// # }
/// ```
pub struct SingleFlight<K, V> {
    /// A lock: held to look up, add or remove a job, never across an await.
    jobs: Mutex<HashMap<K, Job<V>>>,
}

struct Job<V> {
    run: Shared<BoxFuture<'static, V>>,
    callers: usize,
}

impl<K, V> SingleFlight<K, V>
where
    K: Clone + Eq + Hash,
    V: Clone + Send + Sync + 'static,
{
    /// Creates a table without jobs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the result of the job under way for `key`, or of the one that `start` makes. The flag is `true` for a
    /// caller that shared another caller's job.
    ///
    /// Cancel safe: dropping the future withdraws this caller only. `start` is called under the table's lock, and must
    /// do no more than build its future.
    pub async fn run<F>(&self, key: &K, start: impl FnOnce() -> F) -> (V, bool)
    where
        F: Future<Output = V> + Send + 'static,
    {
        let mut joined = true;
        let run = {
            let mut jobs = self.lock();
            let job = jobs.entry(key.clone()).or_insert_with(|| {
                joined = false;
                Job { run: start().boxed().shared(), callers: 0 }
            });
            job.callers += 1;
            job.run.clone()
        };
        let _caller = Caller { jobs: self, key, run: run.clone() };
        (run.await, joined)
    }
}

impl<K, V> SingleFlight<K, V> {
    /// Returns whether no job is under way.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Job<V>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> Default for SingleFlight<K, V> {
    fn default() -> Self {
        Self { jobs: Mutex::new(HashMap::new()) }
    }
}

impl<K, V> fmt::Debug for SingleFlight<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleFlight").field("jobs", &self.lock().len()).finish()
    }
}

/// One caller's share in a job: removes the job when it is done, or when its last caller leaves.
struct Caller<'a, K: Eq + Hash, V> {
    jobs: &'a SingleFlight<K, V>,
    key: &'a K,
    run: Shared<BoxFuture<'static, V>>,
}

impl<K: Eq + Hash, V> Drop for Caller<'_, K, V> {
    fn drop(&mut self) {
        let mut jobs = self.jobs.lock();
        // A later job of the same key isn't this caller's.
        let Some(job) = jobs.get_mut(self.key).filter(|job| job.run.ptr_eq(&self.run)) else { return };
        job.callers -= 1;
        let removed = (job.callers == 0 || self.run.peek().is_some()).then(|| jobs.remove(self.key));
        drop(jobs);
        // Dropping an unfinished job runs its destructors, such as a cancellation: not under the lock.
        drop(removed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::*;

    /// A job that never ends, and holds `alive` until it is dropped.
    fn endless(alive: &Arc<()>) -> impl Future<Output = u32> + Send + use<> {
        let alive = alive.clone();
        async move {
            std::future::pending::<()>().await;
            drop(alive);
            0
        }
    }

    #[tokio::test]
    async fn callers_of_one_key_share_one_run() {
        let jobs = Arc::new(SingleFlight::<u32, u32>::new());
        let started = Arc::new(AtomicU32::new(0));
        let call = |key: u32| {
            let (jobs, started) = (jobs.clone(), started.clone());
            tokio::spawn(async move {
                let start = move || {
                    let number = started.fetch_add(1, Ordering::Relaxed);
                    async move {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                        number
                    }
                };
                jobs.run(&key, start).await
            })
        };
        let tasks: Vec<_> = (0..50).map(|_| call(1)).collect();
        let other = call(2);
        let mut joined = 0;
        for task in tasks {
            let (result, shared) = task.await.unwrap();
            assert_eq!(result, 0);
            joined += u32::from(shared);
        }
        assert_eq!(joined, 49);
        assert_eq!(other.await.unwrap(), (1, false), "another key has a job of its own");
        assert!(jobs.is_empty());
        assert_eq!(call(1).await.unwrap(), (2, false), "a finished job is not used again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_survives_its_first_caller() {
        let jobs = SingleFlight::<u32, u32>::new();
        let slow = || async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            7
        };
        let first = tokio::time::timeout(Duration::from_millis(10), jobs.run(&1, slow));
        let (first, second) = tokio::join!(first, jobs.run(&1, || async { unreachable!() }));
        assert!(first.is_err());
        assert_eq!(second, (7, true));
        assert!(jobs.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_ends_with_its_last_caller() {
        let jobs = SingleFlight::<u32, u32>::new();
        let alive = Arc::new(());
        let wait = |ms| tokio::time::timeout(Duration::from_millis(ms), jobs.run(&1, || endless(&alive)));
        let (first, second) = tokio::join!(wait(5), async {
            let second = wait(20).await;
            assert_eq!(Arc::strong_count(&alive), 1, "dropped with its last caller");
            second
        });
        assert!(first.is_err() && second.is_err());
        assert!(jobs.is_empty());
    }
}
