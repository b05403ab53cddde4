//! A limit on the steps of one job, and its cancellation.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// Remaining steps of a job. Clones share one count.
///
/// A step is the visit of one sample, edit, box, segment or cue, and takes about ten nanoseconds. Long loops spend
/// their steps in advance, one batch at a time, and end with the error. Any clone can cancel the job from another
/// thread.
#[derive(Clone, Debug)]
pub struct Work(Arc<Meter>);

#[derive(Debug)]
struct Meter {
    limit: u64,
    left: AtomicU64,
    cancelled: AtomicBool,
}

/// Why a job ended without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// The job needs more steps than its input justifies.
    #[error("found more than {limit} steps of work, expected at most as many")]
    Exhausted {
        /// Steps that the job was given.
        limit: u64,
    },
    /// No client waits for the result.
    #[error("cancelled: no client waits for the result")]
    Cancelled,
}

impl Work {
    /// Creates a job of at most `steps` steps.
    #[must_use]
    pub fn new(steps: u64) -> Self {
        Self(Arc::new(Meter { limit: steps, left: AtomicU64::new(steps), cancelled: AtomicBool::new(false) }))
    }

    /// Creates a job without a limit, for tools that their user can stop.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// Takes `steps` steps.
    ///
    /// # Errors
    /// The job is cancelled, or has fewer steps left.
    pub fn spend(&self, steps: u64) -> Result<(), WorkError> {
        if self.0.cancelled.load(Ordering::Relaxed) {
            return Err(WorkError::Cancelled);
        }
        let taken = self.0.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(steps));
        taken.map(|_| ()).map_err(|_| WorkError::Exhausted { limit: self.0.limit })
    }

    /// Makes the next step of the job fail.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Steps taken so far.
    #[must_use]
    pub fn spent(&self) -> u64 {
        self.0.limit - self.0.left.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_ends_when_its_steps_are_used_up_or_it_is_cancelled() {
        let work = Work::new(10);
        assert_eq!((work.spend(4), work.clone().spend(6), work.spent()), (Ok(()), Ok(()), 10));
        assert_eq!(work.spend(1), Err(WorkError::Exhausted { limit: 10 }));
        assert_eq!(work.spend(0), Ok(()));
        work.clone().cancel();
        assert_eq!(work.spend(0), Err(WorkError::Cancelled));
    }
}
