//! The past of a stream as one session plays it.

use crate::{Feed, Format, epoch::Epoch};
use millpond_package::live::SegmentNumber;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Epochs that are remembered. No more begin within the frames that wait for a session.
const MOST: usize = 64;

/// The past of a live stream as one session plays it. Its times begin with the session and have no holes; its epochs are the
/// stretches of the past between holes and discontinuities.
#[derive(Debug)]
pub(crate) struct PastFeed {
    /// The stream, whose formats the session was told.
    live: Arc<dyn Feed>,
    /// With the first segment of each. A lock: a reader adds to it, and a sending thread looks epochs up.
    epochs: Mutex<VecDeque<(Epoch, SegmentNumber)>>,
}

impl PastFeed {
    pub(crate) fn new(live: Arc<dyn Feed>) -> Self {
        Self { live, epochs: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Epoch, SegmentNumber)>> {
        self.epochs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an epoch that begins with a segment.
    pub(super) fn begin(&self, epoch: Epoch, first: SegmentNumber) {
        let mut epochs = self.lock();
        if epochs.len() >= MOST {
            epochs.pop_front();
        }
        epochs.push_back((epoch, first));
    }

    /// An epoch, and its first segment.
    pub(crate) fn stretch(&self, number: u32) -> Option<(Epoch, SegmentNumber)> {
        self.lock().iter().rfind(|(epoch, _)| epoch.number == number).cloned()
    }
}

impl Feed for PastFeed {
    fn path(&self) -> &str {
        self.live.path()
    }

    fn id(&self) -> u64 {
        self.live.id()
    }

    fn formats(&self) -> &[Option<Format>] {
        self.live.formats()
    }

    fn epoch(&self, number: u32) -> Option<Epoch> {
        self.stretch(number).map(|(epoch, _)| epoch)
    }
}
