//! Counts of a module that pushes a stream.

use crate::modules::attachable::{ModuleCounts, ModuleResults};
use futures_util::future::BoxFuture;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of one connection to a destination.
#[derive(Debug, Default)]
pub struct PushCounts {
    frames: AtomicU64,
    bytes: AtomicU64,
}

impl PushCounts {
    /// Counts frames and their bytes.
    pub(super) fn add(&self, frames: u64, bytes: u64) {
        self.frames.fetch_add(frames, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl ModuleResults for PushCounts {
    fn counts(&self) -> Option<ModuleCounts> {
        let [frames, bytes] = [&self.frames, &self.bytes].map(|count| count.load(Ordering::Relaxed));
        Some(ModuleCounts { frames, bytes })
    }

    fn complete(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
