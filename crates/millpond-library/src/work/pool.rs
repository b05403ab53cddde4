//! Threads for heavy work, and the queue before them.

use super::{
    JobKind, PoolError, PoolStats,
    asker::Asker,
    charges::{Charge, Charges},
    counters::PoolCounters,
    queue::{Job, Queue},
};
use millpond_media::Work;
use millpond_store::Memory;
use std::{
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use tokio::sync::oneshot;

/// Niceness of the threads: serving threads run first, and a busy machine still runs the jobs.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

/// Sizes of a [`WorkPool`].
#[derive(Clone, Copy, Debug)]
pub struct PoolOptions {
    /// Number of threads. The pool starts at least two, so that one long job doesn't delay all others.
    pub threads: usize,
}

/// Runs heavy jobs on threads of its own.
///
/// A job is a closure and the [`Work`] that it spends. It waits in a bounded queue. Dropping the future of
/// [`run`](Self::run) takes it out of the queue, or cancels its work where it runs already.
pub struct WorkPool {
    shared: Arc<Shared>,
    charges: Charges,
}

struct Shared {
    // The lock is held for bookkeeping, never while a job runs.
    state: Mutex<State>,
    ready: Condvar,
    /// Most pictures that are made at the same time: other jobs always have a thread.
    most_pictures: usize,
    counters: PoolCounters,
}

#[derive(Default)]
struct State {
    waiting: Queue,
    running: Vec<(u64, Work)>,
    pictures: usize,
    next: u64,
    stopped: bool,
}

impl WorkPool {
    /// Starts the threads. Memory of jobs is charged to the budget of `memory`.
    ///
    /// # Errors
    /// The system's, where it starts no thread.
    pub fn new(options: PoolOptions, memory: &Arc<Memory>) -> io::Result<Self> {
        let threads = options.threads.max(2);
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            ready: Condvar::new(),
            most_pictures: threads - 1,
            counters: PoolCounters::default(),
        });
        let pool = Self { shared, charges: Charges::new(memory) };
        for _ in 0..threads {
            let shared = pool.shared.clone();
            std::thread::Builder::new().name("heavy-work".to_owned()).spawn(move || shared.serve())?;
        }
        Ok(pool)
    }

    /// Runs a job of kind [`JobKind::Text`] on a thread of the pool and returns its result.
    ///
    /// Dropping the future cancels the job. It is a job of the client whose [`Asker::asks`] runs this future.
    ///
    /// # Errors
    /// When the queue is full, the pool was stopped, or the job panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        work: &Work,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        self.run_kind(JobKind::Text, work, job).await
    }

    /// Runs a job of any kind, as [`run`](Self::run) does.
    ///
    /// # Errors
    /// As those of [`run`](Self::run).
    pub async fn run_kind<T: Send + 'static>(
        &self,
        kind: JobKind,
        work: &Work,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        let (sender, receiver) = oneshot::channel();
        let run = Box::new(move || {
            let _ = sender.send(job());
        });
        let id = self.shared.push(kind, work, run)?;
        let mut waiter = Waiter { shared: &self.shared, id, work, ended: false };
        let result = receiver.await;
        waiter.ended = true;
        result.map_err(|_| if self.shared.lock().stopped { PoolError::Stopping } else { PoolError::Failed })
    }

    /// Charges memory to the budget for as long as the charge lives.
    ///
    /// # Errors
    /// [`PoolError::TooLarge`] where jobs may not use that much, [`PoolError::NoRoom`] where other jobs held it for too long.
    pub async fn charge(&self, bytes: u64) -> Result<Charge, PoolError> {
        self.charges.charge(bytes).await.inspect_err(|_| self.shared.counters.refused())
    }

    /// Returns the bytes of memory that all jobs may have together. A job that needs more at a time would wait for itself.
    pub fn most(&self) -> u64 {
        self.charges.most()
    }

    /// Counts of the jobs up to now.
    pub fn stats(&self) -> PoolStats {
        self.shared.counters.snapshot()
    }

    /// Cancels every job and accepts no more.
    pub fn stop(&self) {
        let mut state = self.shared.lock();
        state.stopped = true;
        let waiting = std::mem::take(&mut state.waiting);
        state.running.iter().for_each(|(_, work)| work.cancel());
        drop(state);
        self.shared.ready.notify_all();
        for _ in 0..waiting.len() {
            self.shared.counters.left_queue();
            self.shared.counters.cancelled();
        }
    }
}

impl fmt::Debug for WorkPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (waiting, running) = {
            let state = self.shared.lock();
            (state.waiting.len(), state.running.len())
        };
        f.debug_struct("WorkPool").field("waiting", &waiting).field("running", &running).finish_non_exhaustive()
    }
}

impl Drop for WorkPool {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, kind: JobKind, work: &Work, run: Box<dyn FnOnce() + Send>) -> Result<u64, PoolError> {
        let mut state = self.lock();
        if state.stopped {
            return Err(PoolError::Stopping);
        }
        let id = state.next;
        state.next += 1;
        if let Err((waiting, most)) = state.waiting.push(Asker::current(), Job { id, kind, work: work.clone(), run }) {
            drop(state);
            self.counters.refused();
            return Err(PoolError::Full { waiting, most });
        }
        self.counters.joined_queue();
        drop(state);
        self.ready.notify_one();
        Ok(id)
    }

    /// Takes the next job, which counts as running from now on. Returns `None` when the pool is stopped.
    fn take(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            let has_room = state.pictures < self.most_pictures;
            if let Some(job) = state.waiting.pop(has_room) {
                state.pictures += usize::from(job.kind == JobKind::Picture);
                state.running.push((job.id, job.work.clone()));
                self.counters.left_queue();
                return Some(job);
            }
            state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Runs jobs until the pool is stopped: the life of one thread.
    fn serve(&self) {
        // On Linux a priority belongs to a thread, and every process may lower it (setpriority(2)).
        #[cfg(target_os = "linux")]
        if let Err(error) = rustix::process::setpriority_process(None, NICE) {
            tracing::debug!(%error, "heavy work runs at the usual priority");
        }
        while let Some(Job { id, kind, run, .. }) = self.take() {
            let started = Instant::now();
            let running = self.counters.running();
            if catch_unwind(AssertUnwindSafe(run)).is_err() {
                tracing::error!("a job of heavy work panicked");
            }
            drop(running);
            self.counters.ran(started.elapsed());
            let mut state = self.lock();
            state.running.retain(|(other, _)| *other != id);
            if kind == JobKind::Picture {
                state.pictures -= 1;
                drop(state);
                // Another thread may have left a picture waiting.
                self.ready.notify_one();
            }
        }
    }
}

/// A caller that waits for a job. Dropping it early cancels the job.
struct Waiter<'a> {
    shared: &'a Shared,
    id: u64,
    work: &'a Work,
    ended: bool,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.work.cancel();
        let mut state = self.shared.lock();
        let job = state.waiting.remove(self.id);
        drop(state);
        if job.is_some() {
            self.shared.counters.left_queue();
        }
        self.shared.counters.cancelled();
    }
}

#[cfg(test)]
mod tests {
    use super::super::queue::MOST_WAITING;
    use super::*;
    use millpond_media::WorkError;
    use millpond_store::{Store, StoreOptions};
    use std::{
        sync::atomic::{AtomicU32, Ordering},
        time::Duration,
    };

    fn pool() -> Arc<WorkPool> {
        let store = Store::new(&StoreOptions::default()).unwrap();
        Arc::new(WorkPool::new(PoolOptions { threads: 2 }, store.memory()).unwrap())
    }

    /// Waits until `done`, for what other threads do.
    fn until(done: impl Fn() -> bool) {
        let started = Instant::now();
        while !done() {
            assert!(started.elapsed() < Duration::from_secs(30), "it never came to that");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A job that ends only when it is cancelled.
    fn endless(work: &Work) -> impl FnOnce() -> WorkError + Send + 'static {
        let work = work.clone();
        move || {
            loop {
                if let Err(error) = work.spend(1) {
                    return error;
                }
                std::thread::yield_now();
            }
        }
    }

    fn running(pool: &WorkPool) -> usize {
        pool.shared.lock().running.len()
    }

    #[tokio::test]
    async fn results_come_back_and_a_panic_ends_one_job_only() {
        let pool = pool();
        let work = Work::unlimited();
        assert_eq!(pool.run(&work, || 6 * 7).await, Ok(42));
        for _ in 0..4 {
            assert_eq!(pool.run(&work, || -> u8 { panic!("of the test") }).await, Err(PoolError::Failed));
        }
        assert_eq!(pool.run(&work, || 1).await, Ok(1));
    }

    #[tokio::test]
    async fn leaving_cancels_the_job() {
        let pool = pool();
        for _ in 0..8 {
            let work = Work::unlimited();
            let left = tokio::time::timeout(Duration::from_millis(20), pool.run(&work, endless(&work))).await;
            assert!(left.is_err());
            assert_eq!(work.spend(0), Err(WorkError::Cancelled));
        }
        until(|| running(&pool) == 0);
        assert_eq!(pool.run(&Work::unlimited(), || 1).await, Ok(1), "its threads are free again");
    }

    #[tokio::test]
    async fn a_full_queue_refuses_and_those_who_leave_make_room() {
        let pool = pool();
        let start = |count| {
            let job = |_| {
                let pool = pool.clone();
                tokio::spawn(async move {
                    let work = Work::unlimited();
                    pool.run(&work, endless(&work)).await
                })
            };
            (0..count).map(job).collect::<Vec<_>>()
        };
        let mut held = start(2);
        while running(&pool) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        held.extend(start(MOST_WAITING));
        while pool.shared.lock().waiting.len() < MOST_WAITING {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let refused = pool.run(&Work::unlimited(), || ()).await;
        assert_eq!(refused, Err(PoolError::Full { waiting: MOST_WAITING, most: MOST_WAITING }));
        held.iter().for_each(tokio::task::JoinHandle::abort);
        for task in held {
            assert!(task.await.is_err());
        }
        assert_eq!(pool.shared.lock().waiting.len(), 0);
        assert_eq!(pool.run(&Work::unlimited(), || 5).await, Ok(5));
    }

    #[tokio::test]
    async fn stopping_cancels_what_runs_and_what_waits() {
        let pool = pool();
        let ran = Arc::new(AtomicU32::new(0));
        let works: Vec<Work> = (0..5).map(|_| Work::unlimited()).collect();
        let jobs = works.iter().map(|work| {
            let (job, ran) = (endless(work), ran.clone());
            pool.run(work, move || {
                ran.fetch_add(1, Ordering::Relaxed);
                job()
            })
        });
        let stop = async {
            while running(&pool) < 2 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            pool.stop();
        };
        let (results, ()) = tokio::join!(futures_util::future::join_all(jobs), stop);
        let cancelled = results.iter().filter(|result| **result == Ok(WorkError::Cancelled)).count();
        let stopped = results.iter().filter(|result| **result == Err(PoolError::Stopping)).count();
        assert_eq!((cancelled, stopped, ran.load(Ordering::Relaxed)), (2, 3, 2));
        assert_eq!(pool.run(&Work::unlimited(), || ()).await, Err(PoolError::Stopping));
    }

    #[tokio::test]
    async fn pictures_leave_a_thread_to_playlists_and_a_client_waits_for_its_own_jobs_only() {
        let pool = pool();
        let works: Vec<Work> = (0..20).map(|_| Work::unlimited()).collect();
        let sheet = works.iter().map(|work| pool.run_kind(JobKind::Picture, work, endless(work)));
        let busy = Asker::from(std::net::IpAddr::from([10, 0, 0, 1])).asks(futures_util::future::join_all(sheet));
        let stranger = Asker::from(std::net::IpAddr::from([10, 0, 0, 2]));
        let playlist = async {
            while running(&pool) < 1 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            stranger.asks(pool.run(&Work::unlimited(), || 7)).await
        };
        tokio::select! {
            _ = busy => panic!("endless pictures ended"),
            result = playlist => assert_eq!(result, Ok(7)),
            () = tokio::time::sleep(Duration::from_secs(20)) => panic!("a playlist waits for pictures"),
        }
    }
}
