//! Memory of the frames of live streams.

use crate::{Frame, Run, live::LiveTotals};
use bytes::Bytes;
use millpond_store::{Hold, Holds};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Counts the frames of live streams until nobody has them: at most half of the memory budget.
#[derive(Clone, Debug)]
pub(crate) struct LiveMemory {
    holds: Holds,
    totals: Arc<LiveTotals>,
    /// Bytes of the frames of one stream that somebody has.
    held: Arc<AtomicU64>,
}

/// A frame's bytes, and the memory that they take.
struct Held {
    bytes: Bytes,
    held: Arc<AtomicU64>,
    _hold: Hold,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes.len() as u64, Ordering::Relaxed);
    }
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl LiveMemory {
    pub(crate) fn new(holds: Holds, totals: Arc<LiveTotals>) -> Self {
        Self { holds, totals, held: Arc::default() }
    }

    /// The memory of one more stream.
    pub(crate) fn of_stream(&self) -> Self {
        Self { held: Arc::default(), ..self.clone() }
    }

    /// Totals of all streams.
    pub(crate) fn totals(&self) -> &Arc<LiveTotals> {
        &self.totals
    }

    /// Bytes of the stream's frames that somebody has.
    pub(super) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Whether nearly all of it is taken: what can be done without should be given back.
    pub(crate) fn is_short(&self) -> bool {
        self.holds.weight() > self.holds.budget() / 16 * 7
    }

    /// Counts bytes that belong to frames.
    pub(crate) fn take(&self, bytes: u64) -> Hold {
        self.holds.take(bytes)
    }

    /// Returns a run whose frames are counted; `None` where there is no memory for them.
    pub(super) fn hold(&self, run: &Run) -> Option<Run> {
        run.iter().map(|frame| self.hold_frame(frame)).collect()
    }

    fn hold_frame(&self, frame: &Frame) -> Option<Frame> {
        let bytes = frame.data.clone();
        let hold = self.holds.try_take(bytes.len() as u64, self.holds.budget() / 2)?;
        self.held.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let data = Bytes::from_owner(Held { bytes, held: self.held.clone(), _hold: hold });
        Some(Frame { data, ..frame.clone() })
    }
}
