//! The end of a fork's branch that takes frames: the one that never waits.

use super::{
    key_interval::KeyInterval,
    losses::Losses,
    pipe::{Closed, PipeReader, branch},
    queue::{QueueWriter, Weight},
    queue_limits::{Pressure, QueueLimits},
    session::BranchSplicer,
    shedding,
};
use crate::{
    Dropping, Run,
    registry::{NodeId, Registry},
    splice::Splicer,
    strain::Strain,
};
use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Longest time that one run counts: times of a source may jump.
const LONGEST: Duration = Duration::from_secs(1);

/// Gives runs to one branch, within limits.
///
/// A slow branch loses the frames that are needed least, among new and waiting frames. The others can always be decoded, unless
/// it drops frames [blindly](Dropping::Blind).
#[derive(Debug)]
pub(super) struct BranchWriter {
    /// Bounded by `limits`.
    queue: QueueWriter,
    limits: QueueLimits,
    /// Latest due time of a run. Runs of several tracks alternate, and some are due before the last one.
    last: Option<Duration>,
    losses: Losses,
    /// Number of frames lost.
    lost: Arc<AtomicU64>,
    /// Number of reports in which the receiver of the frames missed many packets.
    losses_reported: Arc<AtomicU64>,
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
        let losses_reported = Arc::<AtomicU64>::default();
        let (queue, reader) = branch(edge, losses_reported.clone());
        let splicer = BranchSplicer::default();
        let mut new = Self { queue, limits, last: None, losses: Losses::default(), lost, losses_reported, to, splicer };
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

    /// Whether its frames count in the memory of their stream.
    pub(super) fn is_counted(&self) -> bool {
        self.limits.is_counted
    }

    /// How hard it is for the reader to take the frames.
    pub(super) fn strain(&self) -> Strain {
        let now = Instant::now();
        let waits = self.queue.change(|waiting| waiting.load().span().min(waiting.held(now))).unwrap_or_default();
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Strain { waits, dropped: of(&self.lost), losses: of(&self.losses_reported) }
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
        (bytes, keys): (usize, &KeyInterval),
        stream: Option<&Splicer>,
        now: Instant,
    ) -> Result<usize, Closed> {
        match (self.splicer.get().cloned(), stream) {
            (Some(splicer), Some(stream)) if self.queue.has_reader() => {
                BranchSplicer::follow(&splicer, stream, run);
                let this = RefCell::new(self);
                Ok(splicer.pass(run, &|run| this.borrow_mut().give_again(run, keys, now)))
            }
            _ => self.give(run, (bytes, keys), now),
        }
    }

    /// Gives a run that a splicer lets pass. A reader that was dropped is found later.
    pub(super) fn give_again(&mut self, run: &Run, keys: &KeyInterval, now: Instant) -> usize {
        let bytes = run.iter().map(|frame| frame.data.len()).sum();
        self.give(run, (bytes, keys), now).unwrap_or(0)
    }

    /// Gives a run of `bytes`, or only the frames of it that the branch can keep. Returns the number of lost frames, of this run
    /// and of the waiting runs.
    ///
    /// # Errors
    /// The reader was dropped.
    pub(super) fn give(
        &mut self,
        run: &Run,
        (bytes, keys): (usize, &KeyInterval),
        now: Instant,
    ) -> Result<usize, Closed> {
        let Some(due) = run.last().map(|frame| frame.due) else { return Ok(0) };
        let span = self.last.map_or(Duration::ZERO, |last| due.saturating_sub(last).min(LONGEST));
        let weight = Weight::new(bytes, span);
        let (limits, losses) = (&self.limits, &mut self.losses);
        let (is_given, lost) = self.queue.change(|waiting| {
            let pressure = limits.pressure(waiting.load().and(weight), waiting.held(now), due, keys);
            if pressure == Pressure::None && losses.is_empty() {
                waiting.push((run.clone(), weight));
                return (true, 0);
            }
            match limits.dropping {
                Dropping::LeastNeeded => shedding::give(waiting, (run, weight), (pressure, keys), losses),
                Dropping::Blind if pressure >= Pressure::Late => (false, run.len()),
                Dropping::Blind => {
                    waiting.push((run.clone(), weight));
                    (true, 0)
                }
            }
        })?;
        if is_given {
            self.last = self.last.max(Some(due));
        }
        if lost > 0 {
            self.lost.fetch_add(lost as u64, Ordering::Relaxed);
        }
        Ok(lost)
    }

    /// Loses a run that there is no memory for. Returns the number of its frames.
    ///
    /// # Errors
    /// The reader was dropped.
    pub(super) fn lose(&mut self, run: &Run) -> Result<usize, Closed> {
        if !self.queue.has_reader() {
            return Err(Closed);
        }
        run.iter().for_each(|frame| self.losses.lose(frame));
        self.lost.fetch_add(run.len() as u64, Ordering::Relaxed);
        Ok(run.len())
    }
}

#[cfg(test)]
mod tests;
