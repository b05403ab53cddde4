//! The time at which bytes are needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

tokio::task_local! {
    /// The deadline of the read that the current task makes. Origins that wrap others need not know of it.
    static CURRENT: Due;
}

/// The time at which the first byte of a read is needed. Clones share it: a reader in a greater hurry changes it for all.
#[derive(Clone, Debug)]
pub(crate) struct Due {
    /// The moment at which it was made.
    made: Instant,
    /// Nanoseconds from that moment on.
    after: Arc<AtomicU64>,
}

#[cfg_attr(not(feature = "stripe"), allow(dead_code, reason = "stores of striped objects ask for the time"))]
impl Due {
    /// Creates a deadline. One that has passed is now.
    pub(crate) fn new(at: Instant) -> Self {
        let made = Instant::now();
        Self { made, after: Arc::new(AtomicU64::new(nanos(at, made))) }
    }

    /// Returns the deadline of the current read. A read without a deadline is due now, because a client waits for it.
    pub(crate) fn current() -> Self {
        CURRENT.try_with(Self::clone).unwrap_or_else(|_| Self::new(Instant::now()))
    }

    /// Makes it the deadline of the reads of `work`.
    pub(crate) async fn scope<T>(self, work: impl Future<Output = T>) -> T {
        CURRENT.scope(self, work).await
    }

    /// Moves it to an earlier time.
    pub(crate) fn sooner(&self, at: Instant) {
        self.after.fetch_min(nanos(at, self.made), Ordering::Relaxed);
    }

    /// Returns the time.
    pub(crate) fn at(&self) -> Instant {
        self.made + Duration::from_nanos(self.after.load(Ordering::Relaxed))
    }
}

/// Returns the time from `made` to `at`: an hour at most, and none where it has passed.
fn nanos(at: Instant, made: Instant) -> u64 {
    at.saturating_duration_since(made).min(Duration::from_secs(3600)).as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_deadline_moves_to_earlier_times_only_and_for_all() {
        let now = Instant::now();
        let due = Due::new(now + Duration::from_secs(9));
        let shared = due.clone();
        due.sooner(now + Duration::from_secs(20));
        assert_eq!(shared.at(), now + Duration::from_secs(9));
        shared.sooner(now + Duration::from_secs(3));
        assert_eq!(due.at(), now + Duration::from_secs(3));
        assert_eq!(Due::current().at(), now);
        let inside = due
            .scope(async {
                tokio::task::yield_now().await;
                Due::current().at()
            })
            .await;
        assert_eq!(inside, now + Duration::from_secs(3));
    }
}
