//! Priority of threads, where the system permits a better one (root, CAP_SYS_NICE or RLIMIT_NICE). Else they stay as they are.

use rustix::process::{getpriority_process, setpriority_process};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// The duty of a thread, which decides its priority on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// Sends RTP: less than a millisecond at a time, which can't wait. It sleeps in between.
    Sending,
    /// Serves requests and loads what is to be sent next.
    Serving,
}

/// The best nice value there is (sched(7)).
const BEST: i32 = -20;

impl Duty {
    /// Nice value relative to that of the process.
    fn nicer(self) -> i32 {
        match self {
            Self::Sending => -15,
            Self::Serving => -10,
        }
    }
}

/// The workers of a runtime that start.
#[derive(Debug)]
pub struct StartingWorkers {
    workers: usize,
    started: Arc<AtomicUsize>,
}

impl StartingWorkers {
    /// Waits until all workers have started. Only then may work that blocks begin: its threads would be taken for workers.
    pub fn wait(&self) {
        while self.started.load(Ordering::Relaxed) < self.workers {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Returns what each thread of a runtime does when it starts. The first `workers` of them serve. Those that follow do work that
/// blocks, and keep the priority of the process: they would have that of the worker that starts them.
pub fn of_runtime(workers: usize) -> (impl Fn() + Send + Sync + 'static, StartingWorkers) {
    let process = getpriority_process(None);
    let started = Arc::new(AtomicUsize::new(0));
    let starting = StartingWorkers { workers, started: started.clone() };
    let start = move || {
        if started.fetch_add(1, Ordering::Relaxed) < workers {
            raise(Duty::Serving);
        } else if let Ok(nice) = process {
            // Down is always permitted.
            let _ = setpriority_process(None, nice);
        }
    };
    (start, starting)
}

/// Raises the priority of the calling thread, which has that of the process.
pub(crate) fn raise(duty: Duty) {
    // Without a process Linux means the calling thread.
    let raised = getpriority_process(None).and_then(|nice| setpriority_process(None, (nice + duty.nicer()).max(BEST)));
    if let Err(error) = raised {
        tracing::debug!(?duty, %error, "the thread keeps the priority of the process: a better one is not permitted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_blocks_stays_behind_those_who_serve() {
        let workers = 2;
        let own = getpriority_process(None).unwrap();
        let (start, starting) = of_runtime(workers);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(workers).on_thread_start(start).build().unwrap();
        starting.wait();
        let nice = || getpriority_process(None).unwrap();
        runtime.block_on(async move {
            let serving = tokio::spawn(async move { nice() }).await.unwrap();
            let blocking = tokio::spawn(async move { tokio::task::spawn_blocking(nice).await.unwrap() }).await.unwrap();
            assert!(serving == own || serving == (own + Duty::Serving.nicer()).max(BEST), "{serving}");
            assert_eq!(blocking, own);
        });
    }

    #[test]
    fn a_thread_is_raised_or_stays_as_it_is() {
        for duty in [Duty::Sending, Duty::Serving] {
            let nice = || getpriority_process(None).unwrap();
            let own = nice();
            let (before, after) = std::thread::spawn(move || {
                let before = nice();
                raise(duty);
                (before, nice())
            })
            .join()
            .unwrap();
            assert!(after == before || after == (before + duty.nicer()).max(BEST), "{before} {after}");
            assert_eq!(nice(), own, "of that thread alone");
        }
    }
}
