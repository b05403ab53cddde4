//! Memory of the frames of live streams.

use crate::{
    Frame, Run,
    report::Reporter,
    source_health::{LiveTotals, SourceError, SourceErrorKind},
};
use bytes::Bytes;
use millpond_store::{Hold, Holds};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Seconds of media for which the memory of a stream is enough.
const SECONDS: u64 = 4;

/// Counts the frames of live streams until all references to them are dropped. They take at most half of the memory budget, and
/// each stream has its own bound.
#[derive(Clone, Debug)]
pub(crate) struct LiveMemory {
    holds: Holds,
    totals: Arc<LiveTotals>,
    /// Bytes of the frames of one stream that somebody has.
    held: Arc<AtomicU64>,
    /// Most of those, of each stream.
    most: Arc<AtomicU64>,
    /// The source of the stream and its reporter; `None` for all streams together.
    of: Option<(Arc<str>, Reporter)>,
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
    /// Makes the memory of all streams, each of which has at most `most` bytes.
    pub(crate) fn new(holds: Holds, totals: Arc<LiveTotals>, most: u64) -> Self {
        Self { holds, totals, held: Arc::default(), most: Arc::new(AtomicU64::new(most)), of: None }
    }

    /// The memory of one more stream, with the address of its source for errors.
    pub(crate) fn of_stream(&self, source: &str, reporter: Reporter) -> Self {
        Self { held: Arc::default(), of: Some((source.into(), reporter)), ..self.clone() }
    }

    /// The memory of one more channel.
    pub(crate) fn of_channel(&self) -> Self {
        Self { held: Arc::default(), ..self.clone() }
    }

    /// Most bytes of one stream.
    pub(crate) fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    /// Changes the bound of each stream.
    pub(crate) fn set_most(&self, most: u64) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Most bytes for the window of a stream: the rest is for viewers that begin, and for slow ones.
    pub(crate) fn window_bytes(&self) -> u64 {
        self.most() / 4 * 3
    }

    /// Most bytes for the frames since the last key frame.
    pub(super) fn kept_bytes(&self) -> u64 {
        self.most() / 4
    }

    /// Most bits per second of a stream.
    fn most_bits(&self) -> u64 {
        self.most().saturating_mul(8) / SECONDS
    }

    /// Tells that a stream of `rate` bits per second is closed, where that is too much. Returns whether it is.
    pub(super) fn refuses(&self, rate: Option<u64>) -> bool {
        if rate.is_none_or(|rate| rate <= self.most_bits()) {
            return false;
        }
        self.totals.refused();
        if let Some((source, reporter)) = &self.of {
            let words = format!("the stream has more than {} Mbit/s (stream-memory)", self.most_bits() / 1_000_000);
            let why = SourceError { kind: SourceErrorKind::TooMuch, address: source.to_string(), words };
            tracing::warn!(error = %why, "live stream closed");
            reporter.failed(Arc::new(why));
        }
        true
    }

    /// Totals of all streams.
    pub(crate) fn totals(&self) -> &Arc<LiveTotals> {
        &self.totals
    }

    /// Bytes of the stream's frames and segments that are referenced.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Whether nearly all of the memory is taken, so that dispensable frames should be released.
    pub(crate) fn is_short(&self) -> bool {
        self.holds.weight() > self.holds.budget() / 16 * 7
    }

    /// Counts bytes of frames that wait, within what frames may take. `None` if there is no memory for them.
    pub(crate) fn try_take(&self, bytes: u64) -> Option<Hold> {
        self.holds.try_take(bytes, self.holds.budget() / 2)
    }

    /// Counts bytes that belong to frames.
    pub(crate) fn take(&self, bytes: u64) -> Hold {
        self.holds.take(bytes)
    }

    /// Returns a run whose frames are counted. `None` if there is no memory for them.
    pub(super) fn hold(&self, run: &Run) -> Option<Run> {
        run.iter().map(|frame| self.hold_frame(frame)).collect()
    }

    fn hold_frame(&self, frame: &Frame) -> Option<Frame> {
        let data = self.hold_bytes(frame.data.clone())?;
        Some(Frame { data, ..frame.clone() })
    }

    /// Returns bytes that are counted until all references to them are dropped. `None` if there is no memory for them.
    pub(crate) fn hold_bytes(&self, bytes: Bytes) -> Option<Bytes> {
        if self.held().saturating_add(bytes.len() as u64) > self.most() {
            return None;
        }
        let hold = self.holds.try_take(bytes.len() as u64, self.holds.budget() / 2)?;
        self.held.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Some(Bytes::from_owner(Held { bytes, held: self.held.clone(), _hold: hold }))
    }

    /// Whether there is memory for `bytes` more that are no frames: some is left for frames then.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.held().saturating_add(bytes) <= self.most() / 16 * 15 && !self.is_short()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{graph::fork::Fork, registry::Registry, report::StreamState};
    use millpond_media::Importance;
    use millpond_store::{Memory, policy::PolicyName};
    use std::time::Duration;

    const MOST: u64 = 1 << 20;

    fn memory(reporter: &Reporter) -> LiveMemory {
        let holds = Holds::of(&Memory::new(64 << 20, PolicyName::Sieve), "live");
        LiveMemory::new(holds, Arc::default(), MOST).of_stream("rtsp://camera", reporter.clone())
    }

    #[tokio::test]
    async fn a_group_of_pictures_that_never_ends_stays_in_bounds() {
        let (registry, reporter) = (Registry::default(), Reporter::default());
        let node = registry.add("reception", "cams/door");
        reporter.splicer().lead().begin(0, Some((0, 90_000)));
        let fork = Fork::live(&registry, &node, reporter.splicer().clone(), memory(&reporter));
        let frame = |number: u32| Frame {
            track: 0,
            number,
            due: Duration::from_micros(100) * number,
            pts: 0,
            epoch: 0,
            is_sync: number == 0,
            importance: Importance::BASE,
            data: vec![0; 4 << 10].into(),
        };
        fork.put(&[frame(0)].into_iter().collect());
        let slow = fork.join(node.id(), None, crate::graph::QueueLimits::MODULE).await.unwrap();
        for number in 1..10_000 {
            fork.put(&[frame(number)].into_iter().collect());
            assert!(fork.figures().held <= MOST, "{:?} after {number}", fork.figures());
        }
        assert!(fork.figures().lost > 9000 && !fork.is_closed(), "{:?}", fork.figures());
        drop(slow);
        fork.put(&[frame(10_000)].into_iter().collect());
        assert_eq!(fork.figures().held, 0, "no viewer can begin with what was kept");
    }

    #[test]
    fn more_than_the_memory_in_four_seconds_is_refused() {
        let reporter = Reporter::default();
        let memory = memory(&reporter);
        assert!(!memory.refuses(None) && !memory.refuses(Some(MOST * 2)));
        assert!(matches!(&*reporter.state().borrow(), StreamState::Waiting));
        assert!(memory.refuses(Some(MOST * 2 + 1)));
        let state = reporter.state().borrow().clone();
        let StreamState::Failed { why, .. } = state else { panic!("{state:?}") };
        assert_eq!(why.to_string(), "rtsp://camera: the stream has more than 2 Mbit/s (stream-memory)");
        assert_eq!(memory.totals().refused.load(Ordering::Relaxed), 1);
    }
}
