//! The viewers of a place, and the plan of slices to fetch for them.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::schedule::{Mode, Planner, ViewerId};

/// An object whose slices are fetched ahead of its viewer.
pub(crate) trait Ahead: Send + Sync {
    /// Returns whether a slice is complete, will be soon, or lies behind the end.
    fn is_coming(&self, index: u64) -> bool;

    /// Fetches a slice that is needed at `due`; `None` where it is complete.
    fn fetch(&self, index: u64, due: Instant) -> Option<AbortHandle>;
}

/// The viewers of a place.
pub(crate) struct Scheduler {
    /// A lock: taken at each request of a viewer, and at each call of the planner.
    state: Mutex<Schedule>,
    pub(crate) changed: Notify,
}

/// The state of a scheduler.
pub(crate) struct Schedule {
    pub(crate) planner: Planner,
    pub(crate) watched: HashMap<ViewerId, Watched>,
    pub(crate) under_way: usize,
    pub(crate) is_running: bool,
}

/// An object with a viewer.
pub(crate) struct Watched {
    pub(crate) object: Arc<dyn Ahead>,
    /// Slices on their way for this viewer.
    pub(crate) fetches: Vec<AbortHandle>,
}

impl Watched {
    /// Ends the fetches that no other reader waits for.
    pub(crate) fn withdraw(&mut self) {
        self.fetches.drain(..).for_each(|fetch| fetch.abort());
    }
}

impl Scheduler {
    pub(crate) fn new(mode: Mode, slice: u64) -> Self {
        let planner = Planner::new(mode, slice);
        let state = Schedule { planner, watched: HashMap::new(), under_way: 0, is_running: false };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        self.lock().planner.set_mode(mode);
        self.changed.notify_one();
    }

    /// Returns the number of viewers.
    pub(crate) fn viewers(&self) -> u64 {
        self.lock().watched.len() as u64
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Schedule> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler").field("viewers", &self.viewers()).finish_non_exhaustive()
    }
}
