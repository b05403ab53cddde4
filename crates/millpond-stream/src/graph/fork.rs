//! One stream of frames for many pipes.

use super::{
    pipe::{Closed, PipeReader, PipeWriter, pipe},
    registry::{NodeGuard, NodeId, Registry},
};
use crate::Run;
use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::watch;

/// Most runs that are kept for branches that join: those since the last key frame of the leading track.
const KEPT: usize = 64;
/// Depth of a branch's pipe in runs.
const DEPTH: usize = 2 * KEPT;

/// Sends runs to all branches, by reference. A branch that is full loses whole runs; the others never wait for it.
#[derive(Debug)]
pub struct Fork {
    registry: Registry,
    node: NodeId,
    /// The track whose key frames a branch can begin with.
    lead: u16,
    /// A lock: taken for each run, and when a branch joins.
    inner: Mutex<Inner>,
    /// Counts key frames of the leading track. It also changes when the fork is closed.
    keys: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Inner {
    kept: VecDeque<Run>,
    branches: Vec<PipeWriter>,
    is_closed: bool,
}

/// A new branch.
#[derive(Debug)]
pub struct Branch {
    /// All frames from the first run on.
    pub reader: PipeReader,
    /// The first run: it has a key frame of the leading track.
    pub first: Run,
    /// Number of runs in the pipe already, the first one included.
    pub runs: usize,
}

impl Fork {
    /// Makes the fork of a module.
    pub(crate) fn new(registry: &Registry, node: &NodeGuard, lead: u16) -> Self {
        Self { registry: registry.clone(), node: node.id(), lead, inner: Mutex::default(), keys: watch::Sender::new(0) }
    }

    /// The module whose output this is.
    pub(crate) fn id(&self) -> NodeId {
        self.node
    }

    /// The track whose key frames a branch can begin with.
    pub fn lead(&self) -> u16 {
        self.lead
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a run to all branches. Returns the number of branches that were full and lost it.
    pub fn put(&self, run: &Run) -> usize {
        let has_key = run.iter().any(|frame| frame.track == self.lead && frame.is_sync);
        let mut full = 0;
        let mut inner = self.lock();
        if has_key || inner.kept.len() == KEPT {
            inner.kept.clear();
        }
        if has_key || !inner.kept.is_empty() {
            inner.kept.push_back(run.clone());
        }
        inner.branches.retain(|branch| {
            match branch.try_reserve() {
                Ok(Some(permit)) => permit.send(run.clone()),
                Ok(None) => full += 1,
                Err(Closed) => return false,
            }
            true
        });
        drop(inner);
        if has_key {
            self.keys.send_modify(|keys| *keys += 1);
        }
        full
    }

    /// Adds a branch to a module. It begins with the last key frame, or with the next one where that was too long ago. Cancel
    /// safe.
    ///
    /// # Errors
    /// The fork is closed.
    pub(crate) async fn join(&self, to: NodeId) -> Result<Branch, Closed> {
        let mut keys = self.keys.subscribe();
        loop {
            if let Some(branch) = self.try_join(to)? {
                return Ok(branch);
            }
            keys.changed().await.map_err(|_| Closed)?;
        }
    }

    fn try_join(&self, to: NodeId) -> Result<Option<Branch>, Closed> {
        let mut inner = self.lock();
        if inner.is_closed {
            return Err(Closed);
        }
        let Some(first) = inner.kept.front().cloned() else { return Ok(None) };
        let (writer, reader) = pipe(&self.registry, self.id(), to, DEPTH);
        for run in &inner.kept {
            // The pipe is deeper than what is kept.
            if let Some(permit) = writer.try_reserve()? {
                permit.send(run.clone());
            }
        }
        inner.branches.push(writer);
        let runs = inner.kept.len();
        drop(inner);
        Ok(Some(Branch { reader, first, runs }))
    }

    /// Closes the fork: runs in the pipes can still be taken, and no branch can join.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        *inner = Inner { is_closed: true, ..Inner::default() };
        drop(inner);
        self.keys.send_modify(|keys| *keys += 1);
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.lock().is_closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Frame;
    use bytes::Bytes;
    use std::time::Duration;

    /// Frames of track 0 by number: key frames where they are divisible by 10.
    fn run(numbers: std::ops::Range<u32>) -> Run {
        let frame = |number: u32| Frame {
            track: 0,
            number,
            due: Duration::ZERO,
            pts: 0,
            is_sync: number.is_multiple_of(10),
            data: Bytes::new(),
        };
        numbers.map(frame).collect()
    }

    fn taken(reader: &mut PipeReader) -> Vec<u32> {
        let mut all = Vec::new();
        while let Ok(Some(frame)) = reader.peek() {
            all.push(frame.number);
            reader.advance();
        }
        reader.return_permits();
        all
    }

    #[tokio::test]
    async fn who_joins_begins_with_the_last_key_frame_and_disturbs_nobody() {
        let registry = Registry::default();
        let fork = Fork::new(&registry, &registry.add("channel", "news"), 0);
        let (a, b) = (registry.add("transmission", "a"), registry.add("transmission", "b"));
        let mut early = Box::pin(fork.join(a.id()));
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut early).await.is_err(), "nothing to begin with");
        fork.put(&run(1..5));
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut early).await.is_err(), "no key frame");
        fork.put(&run(5..12));
        let Branch { reader: mut first, first: run_of_first, runs } = early.await.unwrap();
        assert_eq!((run_of_first.len(), runs), (7, 1));
        fork.put(&run(12..15));
        let mut second = fork.join(b.id()).await.unwrap().reader;
        fork.put(&run(15..18));
        assert_eq!(registry.snapshot().pipes.len(), 2);
        assert_eq!(taken(&mut first), (5..18).collect::<Vec<_>>());
        assert_eq!(taken(&mut second), (5..18).collect::<Vec<_>>());
        fork.put(&run(18..22));
        drop(first);
        assert_eq!(registry.snapshot().pipes.len(), 1);
        let third = fork.join(a.id()).await.unwrap();
        assert_eq!(third.first.len(), 4, "from the newer key frame on");
        fork.put(&run(22..23));
        fork.close();
        assert_eq!(taken(&mut second), (18..23).collect::<Vec<_>>());
        assert_eq!(second.peek(), Err(Closed));
        assert!(fork.join(a.id()).await.is_err() && fork.is_closed());
    }

    #[tokio::test]
    async fn who_takes_nothing_loses_runs_alone() {
        let registry = Registry::default();
        let fork = Fork::new(&registry, &registry.add("channel", "news"), 0);
        let a = registry.add("transmission", "a");
        fork.put(&run(0..1));
        let slow = fork.join(a.id()).await.unwrap();
        let mut quick = fork.join(a.id()).await.unwrap().reader;
        let mut lost = 0;
        for number in 1..200 {
            lost += fork.put(&run(number..number + 1));
            assert_eq!(taken(&mut quick).last(), Some(&number));
        }
        assert_eq!(lost, 200 - DEPTH);
        let mut reader = slow.reader;
        assert_eq!(taken(&mut reader), (0..DEPTH as u32).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn far_key_frames_are_waited_for() {
        let registry = Registry::default();
        let fork = Fork::new(&registry, &registry.add("channel", "news"), 0);
        let a = registry.add("transmission", "a");
        fork.put(&run(0..1));
        for number in 0..KEPT as u32 {
            fork.put(&run(10 * number + 1..10 * number + 2));
        }
        let mut late = Box::pin(fork.join(a.id()));
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut late).await.is_err());
        fork.put(&run(1000..1001));
        assert_eq!(late.await.unwrap().first[0].number, 1000);
    }
}
