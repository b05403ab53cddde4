//! The end of a fork's branch that takes frames: the one that never waits.

use super::{
    pipe::{Closed, PipeReader, branch},
    queue::{QueueWriter, Weight},
    registry::{NodeId, Registry},
    session::BranchSplicer,
};
use crate::{Frame, Run, live::Splicer};
use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Longest time that one run counts: times of a source may jump.
const LONGEST: Duration = Duration::from_secs(1);

/// Bounds of the frames that wait for one branch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueLimits {
    pub(crate) runs: usize,
    pub(crate) bytes: usize,
    pub(crate) span: Duration,
}

/// Gives runs to one branch, within limits.
///
/// From half of a limit on, the branch loses disposable frames. At the limit it loses all frames, and then those of each track up
/// to the next one that can be decoded by itself. What is left can always be decoded.
#[derive(Debug)]
pub(super) struct BranchWriter {
    /// Bounded by `limits`.
    queue: QueueWriter,
    limits: QueueLimits,
    /// Latest due time of a run. Runs of several tracks alternate, and some are due before the last one.
    last: Option<Duration>,
    /// Tracks that lost a frame to which others may refer.
    broken: Vec<u16>,
    /// Number of frames lost.
    lost: Arc<AtomicU64>,
    /// The module that takes the frames.
    to: NodeId,
    splicer: BranchSplicer,
}

/// Ends the clips of its viewer.
impl Drop for BranchWriter {
    fn drop(&mut self) {
        if let Some(splicer) = self.splicer.get() {
            splicer.close();
        }
    }
}

/// How far a queue is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    Low,
    /// Disposable frames are dropped.
    Half,
    Full,
}

impl BranchWriter {
    /// Makes a branch between two modules. It begins with `kept`, which does not count in its limits.
    pub(super) fn new<'a>(
        registry: &Registry,
        (from, to): (NodeId, NodeId),
        limits: QueueLimits,
        kept: impl Iterator<Item = &'a Run>,
    ) -> (Self, PipeReader) {
        let lost = Arc::new(AtomicU64::new(0));
        let edge = registry.connect(from, to, limits.runs, lost.clone());
        let (queue, reader) = branch(edge);
        let splicer = BranchSplicer::default();
        let mut new = Self { queue, limits, last: None, broken: Vec::new(), lost, to, splicer };
        for run in kept {
            new.last = run.last().map(|frame| frame.due).max(new.last);
            new.queue.send((run.clone(), Weight::default()));
        }
        (new, reader)
    }

    /// The module that takes the frames.
    pub(super) fn to(&self) -> NodeId {
        self.to
    }

    /// Puts clips in the place of frames, where some were inserted for this viewer alone.
    pub(super) fn splicer(&self) -> &BranchSplicer {
        &self.splicer
    }

    /// Gives a run of the stream, whose epochs `stream` knows, unless a clip takes its place. It is [given](Self::give) else.
    ///
    /// # Errors
    /// The reader was dropped.
    pub(super) fn pass(
        &mut self,
        run: &Run,
        (bytes, largest): (usize, usize),
        stream: Option<&Splicer>,
    ) -> Result<usize, Closed> {
        match (self.splicer.get().cloned(), stream) {
            (Some(splicer), Some(stream)) if self.queue.load().is_ok() => {
                BranchSplicer::follow(&splicer, stream, run);
                let this = RefCell::new(self);
                Ok(splicer.pass(run, &|run| this.borrow_mut().give_again(run, largest)))
            }
            _ => self.give(run, bytes, largest),
        }
    }

    /// Gives a run that a splicer lets pass. A reader that was dropped is found later.
    pub(super) fn give_again(&mut self, run: &Run, largest: usize) -> usize {
        let bytes = run.iter().map(|frame| frame.data.len()).sum();
        self.give(run, bytes, largest).unwrap_or(0)
    }

    /// Gives a run of `bytes`, or those of its frames that fit. `largest` is the size of the largest key frame: two of them fit
    /// always. Returns the number of frames that were lost.
    ///
    /// # Errors
    /// The reader was dropped.
    pub(super) fn give(&mut self, run: &Run, bytes: usize, largest: usize) -> Result<usize, Closed> {
        let load = self.queue.load()?;
        let Some(due) = run.last().map(|frame| frame.due) else { return Ok(0) };
        let span = self.last.map_or(Duration::ZERO, |last| due.saturating_sub(last).min(LONGEST));
        self.last = self.last.max(Some(due));
        let fill = self.fill(load, Weight::new(bytes, span), largest);
        if fill == Fill::Low && self.broken.is_empty() {
            self.send(run.clone(), bytes, span);
            return Ok(0);
        }
        let rest: Vec<Frame> = run.iter().filter(|frame| self.takes(frame, fill)).cloned().collect();
        let lost = run.len() - rest.len();
        self.lost.fetch_add(lost as u64, Ordering::Relaxed);
        if !rest.is_empty() {
            let bytes = rest.iter().map(|frame| frame.data.len()).sum();
            self.send(rest.into(), bytes, span);
        }
        Ok(lost)
    }

    /// Loses a run that there is no memory for. Returns the number of its frames.
    ///
    /// # Errors
    /// The reader was dropped.
    pub(super) fn lose(&mut self, run: &Run) -> Result<usize, Closed> {
        self.queue.load()?;
        run.iter().for_each(|frame| _ = self.takes(frame, Fill::Full));
        self.lost.fetch_add(run.len() as u64, Ordering::Relaxed);
        Ok(run.len())
    }

    fn send(&self, run: Run, bytes: usize, span: Duration) {
        self.queue.send((run, Weight::new(bytes, span)));
    }

    /// How far the queue would be filled by one more run. An empty one has room for any.
    fn fill(&self, held: Weight, more: Weight, largest: usize) -> Fill {
        if held.runs == 0 {
            return Fill::Low;
        }
        let QueueLimits { runs, bytes, span } = self.limits;
        let bytes = bytes.max(largest.saturating_mul(2));
        let sum = held.and(more);
        if sum.runs > runs || sum.bytes > bytes || sum.span() > span {
            Fill::Full
        } else if sum.runs > runs / 2 || sum.bytes > bytes / 2 || sum.span() > span / 2 {
            Fill::Half
        } else {
            Fill::Low
        }
    }

    /// Whether a frame is given to the branch.
    fn takes(&mut self, frame: &Frame, fill: Fill) -> bool {
        let is_broken = self.broken.contains(&frame.track);
        let fits = match fill {
            Fill::Low => true,
            Fill::Half => !frame.is_disposable,
            Fill::Full => false,
        };
        let takes = fits && (frame.is_sync || !is_broken);
        if takes {
            self.broken.retain(|track| *track != frame.track);
        } else if !frame.is_disposable && !is_broken {
            self.broken.push(frame.track);
        }
        takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    const LIMITS: QueueLimits = QueueLimits { runs: 1000, bytes: 1000, span: Duration::from_secs(5) };

    /// A frame of 100 bytes and 40 ms: pictures are track 0, sound is track 1.
    fn frame(track: u16, number: u32) -> Frame {
        Frame {
            track,
            number,
            due: Duration::from_millis(40) * number,
            pts: 0,
            epoch: 0,
            is_sync: track == 1,
            is_disposable: false,
            data: Bytes::from_static(&[0; 100]),
        }
    }

    fn key(number: u32) -> Frame {
        Frame { is_sync: true, ..frame(0, number) }
    }

    fn disposable(number: u32) -> Frame {
        Frame { is_disposable: true, ..frame(0, number) }
    }

    fn pair(limits: QueueLimits, kept: &[Run]) -> (Registry, BranchWriter, PipeReader) {
        let registry = Registry::default();
        let (a, b) = (registry.add("channel", ""), registry.add("viewing", ""));
        let (writer, reader) = BranchWriter::new(&registry, (a.id(), b.id()), limits, kept.iter());
        (registry, writer, reader)
    }

    fn give(writer: &mut BranchWriter, frame: Frame) -> usize {
        let bytes = frame.data.len();
        writer.give(&[frame].into(), bytes, 0).unwrap()
    }

    fn taken(reader: &mut PipeReader, most: usize) -> Vec<(u16, u32)> {
        let mut all = Vec::new();
        while all.len() < most
            && let Ok(Some(frame)) = reader.peek()
        {
            all.push((frame.track, frame.number));
            reader.advance();
        }
        all
    }

    #[test]
    fn tracks_that_alternate_count_their_time_once() {
        let (_registry, mut writer, _reader) = pair(QueueLimits { bytes: 1 << 20, ..LIMITS }, &[]);
        // Sound is due 800 ms after the pictures that arrive with it.
        let lost: usize = (0..40).map(|n| give(&mut writer, disposable(n)) + give(&mut writer, frame(1, n + 20))).sum();
        assert_eq!((lost, writer.queue.load().unwrap().span()), (0, Duration::from_millis(40 * 59)));
    }

    #[test]
    fn disposable_frames_are_lost_first_and_then_all_up_to_a_key_frame() {
        let (_registry, mut writer, mut reader) = pair(LIMITS, &[]);
        assert_eq!((0..5).map(|number| give(&mut writer, frame(0, number))).sum::<usize>(), 0);
        assert_eq!(give(&mut writer, disposable(5)), 1, "over half of the bytes");
        assert_eq!((6..11).map(|number| give(&mut writer, frame(0, number))).sum::<usize>(), 0);
        assert_eq!([give(&mut writer, frame(0, 11)), give(&mut writer, frame(1, 11))], [1, 1], "full");
        assert_eq!(taken(&mut reader, 8).len(), 8);
        assert_eq!([give(&mut writer, frame(0, 12)), give(&mut writer, frame(1, 12))], [1, 0], "sound goes on");
        assert_eq!([give(&mut writer, disposable(13)), give(&mut writer, key(14))], [1, 0]);
        assert_eq!(give(&mut writer, frame(0, 15)), 0);
        assert_eq!(taken(&mut reader, 100), [(0, 9), (0, 10), (1, 12), (0, 14), (0, 15)]);
    }

    #[test]
    fn runs_lose_some_of_their_frames() {
        let (_registry, mut writer, mut reader) = pair(LIMITS, &[]);
        (0..6).for_each(|number| _ = give(&mut writer, frame(0, number)));
        let run: Run = [frame(0, 6), disposable(7), frame(1, 8)].into();
        assert_eq!(writer.give(&run, 300, 0), Ok(1));
        assert_eq!(taken(&mut reader, 100)[6..], [(0, 6), (1, 8)]);
        drop(reader);
        assert_eq!(writer.give(&run, 300, 0), Err(Closed));
    }

    #[test]
    fn large_key_frames_and_what_a_branch_begins_with_always_fit() {
        let large = |number| Frame { data: vec![0; 5000].into(), ..key(number) };
        let kept: Vec<Run> = (0..100).map(|number| [frame(0, number)].into()).collect();
        let (_registry, mut writer, mut reader) = pair(LIMITS, &kept);
        assert_eq!(give(&mut writer, large(100)), 0, "an empty queue takes any run");
        assert_eq!(writer.give(&[frame(0, 101)].into(), 100, 5000), Ok(0), "two of the largest fit");
        assert_eq!(taken(&mut reader, 1000).len(), 102);
    }

    #[test]
    fn the_time_in_a_queue_is_bounded_and_may_jump() {
        let limits = QueueLimits { bytes: usize::MAX, ..LIMITS };
        let (_registry, mut writer, mut reader) = pair(limits, &[]);
        let lost: Vec<u32> = (0..200).filter(|number| give(&mut writer, frame(1, *number)) > 0).collect();
        // The first run has no time yet.
        assert_eq!(lost, (126..200).collect::<Vec<_>>());
        taken(&mut reader, 1000);
        let far = |number| Frame { due: Duration::from_secs(3600), ..frame(1, number) };
        assert_eq!([give(&mut writer, frame(1, 200)), give(&mut writer, far(201))], [0, 0]);
    }
}
