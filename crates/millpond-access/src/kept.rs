//! Content of a file or URL, and the task that reads it again.

use std::{
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::watch;

/// Content of a file or URL. One task keeps it new while it is used: by rules, also those of a later reload, and by what is
/// being sent.
#[derive(Debug)]
pub(super) struct Kept<T> {
    part: Arc<T>,
    has_task: AtomicBool,
    /// Its end tells the task that nobody uses the part any more.
    alive: watch::Sender<()>,
}

impl<T> Kept<T> {
    pub(super) fn new(part: T) -> Arc<Self> {
        Arc::new(Self { part: Arc::new(part), has_task: AtomicBool::new(false), alive: watch::Sender::new(()) })
    }

    /// Starts the task, unless it runs already.
    pub(super) fn keep<F>(&self, task: impl FnOnce(Arc<T>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if self.has_task.swap(true, Ordering::Relaxed) {
            return;
        }
        let (task, mut gone) = (task(self.part.clone()), self.alive.subscribe());
        tokio::spawn(async move {
            tokio::select! {
                () = task => {}
                _ = gone.changed() => {}
            }
        });
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn one_task_runs_while_the_part_is_used() {
        let kept = Kept::new(7);
        let other = kept.clone();
        let (alive, mut ended) = oneshot::channel::<()>();
        kept.keep(|part| async move {
            let _alive = alive;
            std::future::pending::<()>().await;
            drop(part);
        });
        kept.keep(|_| async { panic!("a second task") });
        drop(kept);
        tokio::task::yield_now().await;
        assert!(ended.try_recv() == Err(oneshot::error::TryRecvError::Empty) && **other == 7);
        drop(other);
        assert!(ended.await.is_err(), "the task has ended");
    }
}
