//! Processor time of the sending threads, as the kernel counts it.

use crate::admission::Spent;
use rustix::thread::{Pid, gettid};
use std::{path::PathBuf, time::Duration};

/// Measures one thread.
#[derive(Debug)]
pub(crate) struct ThreadTime {
    path: PathBuf,
    before: Option<Spent>,
}

/// Returns the calling thread.
pub(crate) fn current() -> Pid {
    gettid()
}

impl ThreadTime {
    /// Measures a thread of this process.
    pub(crate) fn of(thread: Pid) -> Self {
        let path = PathBuf::from(format!("/proc/self/task/{}/schedstat", thread.as_raw_nonzero()));
        Self { path, before: None }
    }

    /// Returns the time since the last call; `None` at the first one, and where the kernel does not tell.
    pub(crate) fn spent(&mut self) -> Option<Spent> {
        let now = std::fs::read_to_string(&self.path).ok().as_deref().and_then(parse);
        let before = std::mem::replace(&mut self.before, now)?;
        let now = now?;
        Some(Spent { run: now.run.saturating_sub(before.run), wait: now.wait.saturating_sub(before.wait) })
    }
}

/// Reads a `schedstat` file: nanoseconds on a processor and waiting for one, and the number of time slices
/// (Documentation/scheduler/sched-stats.rst).
fn parse(text: &str) -> Option<Spent> {
    let mut fields = text.split_ascii_whitespace().map(|field| field.parse().ok().map(Duration::from_nanos));
    Some(Spent { run: fields.next()??, wait: fields.next()?? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_tells_is_read() {
        let spent = |run, wait| Some(Spent { run: Duration::from_nanos(run), wait: Duration::from_nanos(wait) });
        assert_eq!(parse("1530000000 42 17\n"), spent(1_530_000_000, 42));
        for text in ["", "5", "5 x 1", "-1 2 3"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_thread_that_works_is_seen_to_run() {
        let mut time = ThreadTime::of(current());
        assert_eq!(time.spent(), None, "nothing to compare with");
        if time.before.is_none() {
            eprintln!("SKIPPED: this kernel has no schedstat");
            return;
        }
        let mut run = Duration::ZERO;
        let mut sum = 0_u64;
        // The kernel counts at its ticks.
        while run < Duration::from_millis(20) {
            sum = (0..100_000).fold(sum, |sum, number| std::hint::black_box(sum ^ number));
            run += time.spent().unwrap().run;
        }
        let mut none = ThreadTime { path: "/nonexistent".into(), before: None };
        assert_eq!((none.spent(), none.spent()), (None, None));
    }
}
