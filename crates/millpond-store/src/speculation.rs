//! Slices fetched ahead of their viewers, and whether a viewer read them.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of unread slices that are remembered; older ones count as never read.
const REMEMBERED: usize = 65_536;

/// Slices fetched ahead that no viewer has read yet.
#[derive(Debug, Default)]
pub(crate) struct Speculation {
    /// A lock: taken once a slice.
    waiting: Mutex<Waiting>,
    used: AtomicU64,
    unused: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    slices: HashMap<u64, UnreadSlice>,
    order: VecDeque<u64>,
}

#[derive(Debug)]
struct UnreadSlice {
    bytes: u64,
    is_here: bool,
}

impl Speculation {
    /// Counts a slice whose fetch begins.
    pub(crate) fn begins(&self, key: u64, bytes: u64) {
        let mut waiting = self.lock();
        if waiting.slices.insert(key, UnreadSlice { bytes, is_here: false }).is_none() {
            waiting.order.push_back(key);
        }
        if waiting.order.len() > REMEMBERED
            && let Some(oldest) = waiting.order.pop_front()
        {
            waiting.slices.remove(&oldest);
        }
    }

    /// Counts the bytes of a slice that arrived, for any reader. Its fetch has ended.
    pub(crate) fn comes(&self, key: u64, bytes: u64) {
        let mut waiting = self.lock();
        if let Some(slice) = waiting.slices.get_mut(&key) {
            if slice.is_here {
                // It arrives again: the first copy was never read.
                waiting.slices.remove(&key);
                return;
            }
            self.unused.fetch_add(bytes.min(slice.bytes), Ordering::Relaxed);
            slice.is_here = true;
            if bytes < slice.bytes {
                waiting.slices.remove(&key);
            }
        }
    }

    /// Counts a slice that a viewer begins to read.
    pub(crate) fn is_read(&self, key: u64) {
        if let Some(slice) = self.lock().slices.remove(&key) {
            self.used.fetch_add(slice.bytes, Ordering::Relaxed);
            if slice.is_here {
                self.unused.fetch_sub(slice.bytes, Ordering::Relaxed);
            }
        }
    }

    /// Returns the bytes of slices that viewers read, and the bytes that arrived and no viewer has read.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.used.load(Ordering::Relaxed), self.unused.load(Ordering::Relaxed))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_counts_once_it_is_here_or_read() {
        let all = Speculation::default();
        for key in 0..4 {
            all.begins(key, 10);
        }
        assert_eq!(all.bytes(), (0, 0), "nothing has arrived");
        all.comes(0, 10);
        all.comes(1, 10);
        all.comes(9, 10);
        assert_eq!(all.bytes(), (0, 20));
        all.is_read(1);
        all.is_read(1);
        all.is_read(2);
        all.comes(2, 10);
        assert_eq!(all.bytes(), (20, 10), "one was read as it arrived, one is unread, one never arrived");
        all.comes(3, 4);
        all.is_read(3);
        assert_eq!(all.bytes(), (20, 14), "cancelled on its way: its bytes were for no viewer");
        all.begins(4, 10);
        all.comes(4, 10);
        all.comes(4, 10);
        all.is_read(4);
        assert_eq!(all.bytes(), (20, 24), "evicted unread, and fetched again for a viewer");
        for key in 10..10 + REMEMBERED as u64 {
            all.begins(key, 1);
        }
        all.is_read(0);
        assert_eq!(all.bytes(), (20, 24), "too long ago");
    }
}
