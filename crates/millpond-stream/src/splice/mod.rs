//! Clips in live streams: stored titles that take the place of a stream's frames for a while (AMPS).
//!
//! Frames of the source pass a [`Splicer`] on their way into the fork. While no clip waits, it only notes their times. A clip's
//! turn begins with a key frame of the source. From then on the module `splice` sends the clip's frames, paced like the source's
//! frames, and the splicer assigns the stream's times and numbers to them. The source continues with its first key frame after
//! the clip's end.

mod insertion;
mod line;
mod passed;
mod plan;
#[cfg(test)]
mod tests;

pub(crate) use insertion::{Clip, Insertion, Turn};
pub use insertion::{InsertionEnd, InsertionReport};
pub(crate) use line::Cut;
pub(crate) use passed::Passed;
pub(crate) use plan::Plan;
pub use plan::Unfit;

use crate::{Format, Frame, Run, epoch::Epoch, lead::Lead, source_health::LiveTotals};
use line::{Line, Passage};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use tokio::sync::watch;

/// Most epochs that a run remembers, the last ones.
const EPOCHS: usize = 64;

/// Joins the frames of a source and of clips into one stream, and announces its epochs.
#[derive(Debug)]
pub(crate) struct Splicer {
    epochs: watch::Sender<Arc<[Epoch]>>,
    lead: Arc<Lead>,
    totals: Arc<LiveTotals>,
    /// Whether it is that of one branch. Epochs are counted where they are announced to all.
    is_branch: bool,
    /// A lock: taken for each run, and held while that passes.
    line: Mutex<Line>,
}

impl Splicer {
    pub(crate) fn new(totals: Arc<LiveTotals>) -> Self {
        let (epochs, lead, line) = (watch::Sender::new(Arc::default()), Arc::default(), Mutex::default());
        Self { epochs, lead, totals, is_branch: false, line }
    }

    /// Makes the splicer of one branch. Its source is what passes this one.
    pub(crate) fn of_branch(&self) -> Self {
        let new = Self { is_branch: true, ..Self::new(self.totals.clone()) };
        if let Some(epoch) = self.epochs.borrow().last() {
            new.adopt(epoch.clone());
        }
        new
    }

    /// Learns an epoch of the splicer before it, unless it is known.
    pub(crate) fn follow(&self, before: &Self, number: u32) {
        if self.lock().knows(number) {
            return;
        }
        let epoch = before.epoch(number);
        if let Some(epoch) = epoch {
            self.adopt(epoch);
        }
    }

    /// An epoch by its number, where it is one of the last 64.
    pub(crate) fn epoch(&self, number: u32) -> Option<Epoch> {
        self.epochs.borrow().iter().rfind(|epoch| epoch.number == number).cloned()
    }

    /// Ends all clips that wait or play, because the viewer has left.
    pub(crate) fn close(&self) {
        self.lock().close();
    }

    /// Begins an epoch that was counted before.
    fn adopt(&self, epoch: Epoch) {
        self.change(&|_| 0, |line, out| line.begin(epoch, out));
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The frames that viewers begin with.
    pub(crate) fn lead(&self) -> &Arc<Lead> {
        &self.lead
    }

    /// The last 64 epochs, the newest one last.
    pub(crate) fn epochs(&self) -> watch::Receiver<Arc<[Epoch]>> {
        self.epochs.subscribe()
    }

    /// Tells that frames of a new epoch of the source follow.
    pub(crate) fn begin(&self, epoch: Epoch) {
        self.change(&|_| 0, |line, out| line.begin(epoch, out));
    }

    /// Tells that the source was lost.
    pub(crate) fn lose(&self) {
        self.change(&|_| 0, Line::lose);
    }

    /// Takes a run of the source. What passes is given to `give`, which returns the number of frames that viewers lost.
    /// Returns their sum.
    pub(crate) fn pass(&self, run: &Run, give: &dyn Fn(&Run) -> usize) -> usize {
        let mut line = self.lock();
        if line.is_plain() {
            line.note(run);
            return give(run);
        }
        drop(line);
        self.change(give, |line, out| line.source(run, Instant::now(), out))
    }

    /// Begins the epoch of a clip.
    pub(crate) fn enter(&self, clip: &Arc<Insertion>, give: &dyn Fn(&Run) -> usize) {
        let mut has_entered = false;
        self.change(give, |line, out| {
            line.enter(clip, out);
            has_entered = !out.is_empty();
        });
        if has_entered {
            self.totals.inserted();
        }
    }

    /// Takes frames of a clip, with the clip's times.
    pub(crate) fn clip(&self, clip: &Arc<Insertion>, frames: &[Frame], give: &dyn Fn(&Run) -> usize) {
        self.change(give, |line, out| line.clip(clip, frames, out));
    }

    /// Ends a clip, or its wait.
    pub(crate) fn finish(&self, clip: &Arc<Insertion>, why: InsertionEnd, give: &dyn Fn(&Run) -> usize) {
        self.change(give, |line, out| line.finish(clip, why, out));
    }

    /// The formats of the source and its leading track; `None` before its first epoch.
    pub(crate) fn formats(&self) -> Option<(Arc<[Option<Format>]>, u16)> {
        self.lock().formats()
    }

    /// Adds a clip, unless `most` wait.
    pub(crate) fn add(&self, clip: Arc<Insertion>, most: usize) -> bool {
        self.lock().add(clip, most)
    }

    fn change(&self, give: &dyn Fn(&Run) -> usize, act: impl FnOnce(&mut Line, &mut Vec<Passage>)) -> usize {
        let mut out = Vec::new();
        let mut line = self.lock();
        act(&mut line, &mut out);
        let passed = out.into_iter().map(|passage| match passage {
            Passage::Epoch(epoch) => {
                self.announce(epoch);
                0
            }
            Passage::Run(run) => give(&run),
            Passage::Pause => {
                self.lead.lose();
                0
            }
        });
        passed.sum()
    }

    fn announce(&self, epoch: Epoch) {
        let lead = epoch.lead().and_then(|track| Some((track, epoch.formats.get(usize::from(track))?.as_ref()?)));
        if let Some((track, format)) = lead {
            self.lead.describe(track, format);
        }
        self.lead.begin(epoch.number, lead.map(|(track, format)| (track, format.timescale())));
        if !self.is_branch {
            self.totals.epoch();
        }
        self.epochs.send_modify(|epochs| {
            let kept = epochs.len().saturating_sub(EPOCHS - 1);
            *epochs = epochs.iter().skip(kept).cloned().chain([epoch]).collect();
        });
    }
}
