//! Windows of streams that do not run, made from their past on the disk.

use super::LiveWindow;
use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

/// Time without a request after which a window is removed.
pub(super) const IDLE: Duration = Duration::from_secs(60);
/// Most bytes of memory of all; one may have more.
const MOST_BYTES: u64 = 64 << 20;

/// The windows that were asked for last.
#[derive(Debug, Default)]
pub(crate) struct EndedWindows {
    /// The one that was used last is the last.
    windows: VecDeque<Ended>,
}

#[derive(Debug)]
struct Ended {
    path: Box<str>,
    window: Arc<LiveWindow>,
    used: Instant,
    bytes: u64,
}

impl EndedWindows {
    /// Returns the window of a path.
    pub(super) fn get(&mut self, path: &str, now: Instant) -> Option<Arc<LiveWindow>> {
        let at = self.windows.iter().position(|ended| *ended.path == *path)?;
        let ended = self.windows.remove(at)?;
        let window = ended.window.clone();
        self.windows.push_back(Ended { used: now, ..ended });
        Some(window)
    }

    /// Adds the window of a path, which has `bytes` of memory. Those that were not used for longest leave, while all have too
    /// many.
    pub(super) fn add(&mut self, path: &str, window: Arc<LiveWindow>, (bytes, now): (u64, Instant)) {
        self.remove(path);
        self.windows.push_back(Ended { path: path.into(), window, used: now, bytes });
        let all = |windows: &VecDeque<Ended>| windows.iter().map(|ended| ended.bytes).sum::<u64>();
        while self.windows.len() > 1 && all(&self.windows) > MOST_BYTES {
            self.windows.pop_front();
        }
    }

    /// Forgets the window of a path.
    pub(super) fn remove(&mut self, path: &str) {
        self.windows.retain(|ended| *ended.path != *path);
    }

    /// Forgets those that were not used for long. Returns whether any is left.
    pub(super) fn forget_idle(&mut self, now: Instant) -> bool {
        self.windows.retain(|ended| now.saturating_duration_since(ended.used) < IDLE);
        !self.windows.is_empty()
    }
}
