//! How long a window stays without requests.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, sleep_until};

/// A lease that each request renews. Times are those of the runtime's clock.
#[derive(Debug)]
pub(super) struct Lease {
    /// Shortest time from a request to the end.
    least: Duration,
    /// A lock: taken for a look-up.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    until: Instant,
    is_over: bool,
}

impl Lease {
    /// Begins with a request.
    pub(super) fn new(least: Duration, term: Duration) -> Self {
        let until = Instant::now() + term.max(least);
        Self { least, state: Mutex::new(State { until, is_over: false }) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Renews it for `term` or longer. Returns whether it was not over.
    pub(super) fn renew(&self, term: Duration) -> bool {
        let mut state = self.lock();
        state.until = state.until.max(Instant::now() + term.max(self.least));
        !state.is_over
    }

    /// Whether the last request is not long ago, and it is not over.
    pub(super) fn is_fresh(&self) -> bool {
        let state = self.lock();
        !state.is_over && Instant::now() < state.until
    }

    /// Waits until it is over. Cancel safe.
    pub(super) async fn expired(&self) {
        loop {
            let until = {
                let mut state = self.lock();
                state.is_over |= Instant::now() >= state.until;
                if state.is_over {
                    return;
                }
                state.until
            };
            sleep_until(until).await;
        }
    }

    /// Ends it early.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
    }

    pub(super) fn is_over(&self) -> bool {
        self.lock().is_over
    }
}
