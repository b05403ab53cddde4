//! One stream of frames for many pipes.

use super::{
    alarm::{Alarm, Listener},
    branch::BranchWriter,
    kept::{Kept, KeptLimits},
    key_interval::KeyInterval,
    live_memory::LiveMemory,
    pipe::{Closed, PipeReader},
    queue_limits::QueueLimits,
    rate::Rate,
    session::BranchSplicer,
};
use crate::{
    Frame, Run,
    lead::{Lead, Tempo, TempoMeter},
    registry::{NodeGuard, NodeId, Registry},
    splice::{Insertion, InsertionEnd, Splicer},
    strain::Strain,
};
use std::{
    cell::RefCell,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// Bounds of what the fork of a live source keeps: a run may be one frame.
const KEPT: KeptLimits = KeptLimits { runs: 4096, bytes: 16 << 20, span: Duration::from_secs(20) };

/// Sends runs to all branches, by reference. A branch that is full loses frames; the others never wait for it.
///
/// A branch loses the frames first that are needed least.
#[derive(Debug)]
pub struct Fork {
    registry: Registry,
    node: NodeId,
    lead: Arc<Lead>,
    /// Bounds of what branches begin with.
    limits: KeptLimits,
    /// Counts the frames; `None` where their source does.
    memory: Option<LiveMemory>,
    /// Puts clips in the place of frames; `None` where that can't be.
    splicer: Option<Arc<Splicer>>,
    /// A lock: taken for each run, and when a branch joins.
    inner: Mutex<Inner>,
    /// Counts key frames of the leading track. It also changes when the fork is closed.
    keys: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Inner {
    kept: Kept,
    tempo: TempoMeter,
    branches: Vec<BranchWriter>,
    /// Sending threads with branches: each is told of new frames once.
    alarms: Vec<Alarm>,
    keys: KeyInterval,
    figures: Figures,
    rate: Rate,
    is_closed: bool,
}

/// Counts of the frames that passed a fork.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// Frames and bytes given to the fork.
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    /// Frames that branches lost, in all.
    pub(crate) lost: u64,
    /// Branches now.
    pub(crate) branches: usize,
    /// Arrival of the last run.
    pub(crate) last: Option<Instant>,
    /// Bytes of a live source's frames that are referenced.
    pub(crate) held: u64,
    /// Bits per second; `None` in the first second.
    pub(crate) bit_rate: Option<u64>,
}

impl Inner {
    /// Keeps a run and gives it to all branches; they lose one that there is no memory for. `given` are its frames as they are not
    /// counted. `lead` is the leading track with its ticks a second. Returns whether branches can begin with it, and the number of
    /// frames that branches lost.
    fn put(
        &mut self,
        (run, given): (Option<&Run>, &Run),
        lead: Option<(u16, u32)>,
        (limits, splicer): (&KeptLimits, Option<&Splicer>),
    ) -> (bool, usize) {
        let (lead, timescale) = lead.unzip();
        let of_lead = || given.iter().filter(|frame| Some(frame.track) == lead);
        let keys = || of_lead().filter(|frame| frame.is_sync);
        let has_key = run.is_some() && keys().next().is_some();
        let bytes = given.iter().map(|frame| frame.data.len()).sum();
        keys().for_each(|frame| self.keys.take(frame));
        if let Some(run) = run {
            self.kept.push(run, bytes, has_key, limits);
            of_lead().for_each(|frame| self.tempo.take(frame, timescale.unwrap_or(1)));
        }
        let (keys, mut lost, now) = (self.keys, 0, Instant::now());
        self.branches.retain_mut(|branch| {
            let frames = match run {
                Some(run) => {
                    let run = if branch.is_counted() { run } else { given };
                    branch.pass(run, (bytes, &keys), splicer, now)
                }
                None => branch.lose(given),
            };
            lost += frames.unwrap_or(0);
            frames.is_ok()
        });
        self.figures.frames += given.len() as u64;
        self.figures.bytes += bytes as u64;
        self.figures.lost += lost as u64;
        self.figures.last = Some(now);
        self.rate.add(bytes, now);
        (has_key, lost)
    }
}

/// A new branch.
#[derive(Debug)]
pub struct Branch {
    /// All frames from the first run on.
    pub reader: PipeReader,
    /// The first run: it has a key frame of the leading track.
    pub first: Run,
    /// Number of runs in the pipe already, including the first.
    pub runs: usize,
    /// Due time from the first run in the pipe to the last one.
    pub span: Duration,
    /// Frame interval and reordering; `None` where neither frames nor formats tell them yet.
    pub tempo: Option<Tempo>,
    /// Clips for its viewer alone.
    pub(crate) splicer: BranchSplicer,
}

impl Fork {
    /// Makes the fork of a module.
    pub(crate) fn new(registry: &Registry, node: &NodeGuard, lead: Arc<Lead>, limits: KeptLimits) -> Self {
        let (inner, keys) = (Mutex::default(), watch::Sender::new(0));
        Self { registry: registry.clone(), node: node.id(), lead, limits, memory: None, splicer: None, inner, keys }
    }

    /// Makes the fork of a module whose frames their own sources count.
    pub(crate) fn uncounted(registry: &Registry, node: &NodeGuard, lead: Arc<Lead>) -> Self {
        Self::new(registry, node, lead, KEPT)
    }

    /// Makes the fork of a live source, whose frames are counted in `memory`. They pass a splicer first.
    pub(crate) fn live(registry: &Registry, node: &NodeGuard, splicer: Arc<Splicer>, memory: LiveMemory) -> Self {
        let most = usize::try_from(memory.kept_bytes()).unwrap_or(usize::MAX);
        let limits = KeptLimits { bytes: KEPT.bytes.min(most), ..KEPT };
        let new = Self::new(registry, node, splicer.lead().clone(), limits);
        Self { memory: Some(memory), splicer: Some(splicer), ..new }
    }

    /// The module whose output this is.
    pub(crate) fn id(&self) -> NodeId {
        self.node
    }

    /// What counts the frames of a live source; `None` for a channel.
    pub(crate) fn memory(&self) -> Option<&LiveMemory> {
        self.memory.as_ref()
    }

    /// The track whose key frames a branch can begin with; `None` while no format is known.
    pub fn lead(&self) -> Option<u16> {
        self.lead.track()
    }

    /// Returns the last key frame of the leading track; `None` if branches must wait for the next one.
    pub(crate) fn key_frame(&self) -> Option<Frame> {
        let lead = self.lead()?;
        let inner = self.lock();
        let mut frames = inner.kept.first()?.iter();
        frames.find(|frame| frame.is_sync && frame.track == lead).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts clips in the place of the source's frames; `None` where that can't be.
    pub(crate) fn splicer(&self) -> Option<&Arc<Splicer>> {
        self.splicer.as_ref()
    }

    /// Returns the splicer that replaces frames of the branch to `to` by clips. `None` if there is no such branch.
    pub(crate) fn splicer_of(&self, to: NodeId) -> Option<Arc<Splicer>> {
        let stream = self.splicer.as_ref()?;
        let inner = self.lock();
        let branch = inner.branches.iter().find(|branch| branch.to() == to)?;
        Some(branch.splicer().enable(stream).clone())
    }

    /// Begins the epoch of a clip, whose turn it is.
    pub(crate) fn enter_clip(&self, clip: &Arc<Insertion>) {
        self.splice(clip, |splicer, give| splicer.enter(clip, give));
    }

    /// Sends frames of a clip to its viewers, during the clip's turn. The frames have the clip's times.
    pub(crate) fn give_clip(&self, clip: &Arc<Insertion>, frames: &[Frame]) {
        self.splice(clip, |splicer, give| splicer.clip(clip, frames, give));
    }

    /// Ends a clip's turn, or its wait.
    pub(crate) fn end_clip(&self, clip: &Arc<Insertion>, why: InsertionEnd) {
        let ended = self.splice(clip, |splicer, give| splicer.finish(clip, why.clone(), give));
        if ended.is_none() {
            clip.end(why);
        }
    }

    /// Lets the splicer of a clip act: that of the stream, or that of a viewer. `None` where the viewer has left.
    fn splice(&self, clip: &Insertion, act: impl FnOnce(&Splicer, &dyn Fn(&Run) -> usize)) -> Option<()> {
        let Some(session) = clip.session() else {
            act(self.splicer.as_ref()?, &|run| self.give(run));
            return Some(());
        };
        let mut inner = self.lock();
        let keys = inner.keys;
        let branch = inner.branches.iter_mut().find(|branch| branch.to() == session)?;
        let splicer = branch.splicer().get().cloned()?;
        let branch = RefCell::new(branch);
        act(&splicer, &|run| {
            let held = self.memory.as_ref().map_or_else(|| Some(run.clone()), |memory| memory.hold(run));
            match held {
                Some(run) => branch.borrow_mut().give_again(&run, &keys, Instant::now()),
                None => branch.borrow_mut().lose(run).unwrap_or(0),
            }
        });
        inner.alarms.iter().for_each(Alarm::ring);
        Some(())
    }

    /// Sends a run of its source to all branches, unless a clip takes its place. Returns the number of frames that full branches
    /// lost. Without memory for the run, the frames that are kept are dropped first; then all branches lose it. A live source that
    /// sends too much closes the fork.
    pub fn put(&self, run: &Run) -> usize {
        match &self.splicer {
            Some(splicer) => splicer.pass(run, &|run| self.give(run)),
            None => self.give(run),
        }
    }

    fn give(&self, run: &Run) -> usize {
        let lead = self.lead().map(|track| (track, self.lead.timescale()));
        let mut inner = self.lock();
        if inner.is_closed {
            return 0;
        }
        let held = match &self.memory {
            None => Some(run.clone()),
            Some(memory) => {
                memory.totals().received(run.len(), run.iter().map(|frame| frame.data.len()).sum());
                memory.hold(run).or_else(|| {
                    inner.kept.clear();
                    memory.hold(run)
                })
            }
        };
        let (has_key, lost) = inner.put((held.as_ref(), run), lead, (&self.limits, self.splicer.as_deref()));
        inner.alarms.iter().for_each(Alarm::ring);
        let (rate, measured) = (inner.rate.measured(), inner.tempo.measured().filter(|_| has_key));
        drop(inner);
        if let Some(tempo) = measured {
            self.lead.learn(tempo);
        }
        if self.memory.as_ref().is_some_and(|memory| memory.refuses(rate)) {
            self.close();
            return lost;
        }
        if has_key {
            self.keys.send_modify(|keys| *keys += 1);
        }
        lost
    }

    /// Adds a branch to a module, for which frames wait within `limits`. It begins with the last key frame, or with the next key
    /// frame if the last one is too old. The thread of `listener` is told of each run. Cancel safe.
    ///
    /// # Errors
    /// The fork is closed.
    pub(crate) async fn join(
        &self,
        to: NodeId,
        listener: Option<&Arc<dyn Listener>>,
        limits: QueueLimits,
    ) -> Result<Branch, Closed> {
        let mut keys = self.keys.subscribe();
        loop {
            if let Some(branch) = self.try_join(to, listener, limits)? {
                return Ok(branch);
            }
            keys.changed().await.map_err(|_| Closed)?;
        }
    }

    fn try_join(
        &self,
        to: NodeId,
        listener: Option<&Arc<dyn Listener>>,
        limits: QueueLimits,
    ) -> Result<Option<Branch>, Closed> {
        let mut inner = self.lock();
        if inner.is_closed {
            return Err(Closed);
        }
        let begins = |run: &&Run| run.first().is_some_and(|frame| self.lead.admits(frame.epoch));
        let Some(first) = inner.kept.first().filter(begins).cloned() else { return Ok(None) };
        let kept = inner.kept.runs();
        let (runs, span, tempo) = (kept.len(), inner.kept.span(), inner.tempo.tempo(self.lead.expected()));
        let (writer, reader) = BranchWriter::new(&self.registry, (self.id(), to), limits, kept);
        let splicer = writer.splicer().clone();
        inner.branches.push(writer);
        if let Some(listener) = listener
            && !inner.alarms.iter().any(|alarm| alarm.is_of(&**listener))
        {
            inner.alarms.push(Alarm::new(self.id(), listener.clone()));
        }
        drop(inner);
        Ok(Some(Branch { reader, first, runs, span, tempo, splicer }))
    }

    /// Closes the fork: runs in the pipes can still be taken, and no branch can join.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        let figures = Figures { branches: 0, ..inner.figures };
        let closed = std::mem::replace(&mut *inner, Inner { is_closed: true, figures, ..Inner::default() });
        drop(inner);
        drop(closed.branches);
        closed.alarms.iter().for_each(Alarm::ring);
        self.keys.send_modify(|keys| *keys += 1);
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Waits until it is closed. Cancel safe.
    pub(crate) async fn closed(&self) {
        let mut keys = self.keys.subscribe();
        while !self.is_closed() && keys.changed().await.is_ok() {}
    }

    /// Strain of the branches: the sum of the frames that they dropped, and the longest wait.
    pub(crate) fn strain(&self) -> Strain {
        let inner = self.lock();
        inner.branches.iter().map(BranchWriter::strain).fold(Strain::default(), |sum, of| Strain {
            waits: sum.waits.max(of.waits),
            dropped: sum.dropped + of.dropped,
            losses: sum.losses + of.losses,
        })
    }

    /// What has passed.
    pub(crate) fn figures(&self) -> Figures {
        let inner = self.lock();
        let held = self.memory.as_ref().map_or(0, LiveMemory::held);
        let bit_rate = inner.rate.bits_per_second(Instant::now());
        Figures { branches: inner.branches.len(), held, bit_rate, ..inner.figures }
    }
}

#[cfg(test)]
mod tests;
