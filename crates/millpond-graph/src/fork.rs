//! One stream of frames for many who join it.

use crate::{
    Gone, Inlet, Run,
    graph::{Graph, Member, NodeId},
    pipe::{Outlet, pipe},
};
use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::watch;

/// Runs that are kept for who joins: since the last one in which pictures can begin, where that isn't longer ago.
const KEPT: usize = 64;
/// Runs in the pipe of one who joined.
const DEPTH: usize = 2 * KEPT;

/// Gives frames to all who have joined, by reference. Who doesn't take them loses whole runs; nobody waits for it.
#[derive(Debug)]
pub struct Fork {
    graph: Graph,
    member: Member,
    /// The track whose key frames a stream can begin with.
    lead: u16,
    /// A lock: taken for each run, and when somebody joins.
    inner: Mutex<Inner>,
    /// Counts key frames; closed with the stream.
    keys: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Inner {
    kept: VecDeque<Run>,
    branches: Vec<Inlet>,
    is_closed: bool,
}

/// Where one who joined takes frames out.
#[derive(Debug)]
pub struct Branch {
    /// All frames from the first run on.
    pub outlet: Outlet,
    /// The first run: there is a key frame of the leading track in it.
    pub first: Run,
    /// How many runs are there already, that one included.
    pub runs: usize,
}

impl Fork {
    /// Of a module of a graph.
    pub fn new(graph: &Graph, member: Member, lead: u16) -> Self {
        Self { graph: graph.clone(), member, lead, inner: Mutex::default(), keys: watch::Sender::new(0) }
    }

    /// The module whose output this is.
    pub fn id(&self) -> NodeId {
        self.member.id()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives frames to everybody; says how many branches had no room for them.
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
            match branch.try_room() {
                Ok(Some(room)) => room.put(run.clone()),
                Ok(None) => full += 1,
                Err(Gone) => return false,
            }
            true
        });
        drop(inner);
        if has_key {
            self.keys.send_modify(|keys| *keys += 1);
        }
        full
    }

    /// Joins: frames come from the last key frame on, or from the next one where that is too long ago. Cancel safe.
    ///
    /// # Errors
    /// The stream ends, or has ended.
    pub async fn join(&self, to: NodeId) -> Result<Branch, Gone> {
        let mut keys = self.keys.subscribe();
        loop {
            if let Some(joined) = self.try_join(to)? {
                return Ok(joined);
            }
            keys.changed().await.map_err(|_| Gone)?;
        }
    }

    fn try_join(&self, to: NodeId) -> Result<Option<Branch>, Gone> {
        let mut inner = self.lock();
        if inner.is_closed {
            return Err(Gone);
        }
        let Some(first) = inner.kept.front().cloned() else { return Ok(None) };
        let (inlet, outlet) = pipe(&self.graph, self.id(), to, DEPTH);
        for run in &inner.kept {
            // There is room for more than are kept.
            if let Some(room) = inlet.try_room()? {
                room.put(run.clone());
            }
        }
        inner.branches.push(inlet);
        let runs = inner.kept.len();
        drop(inner);
        Ok(Some(Branch { outlet, first, runs }))
    }

    /// No more will come: what is in the pipes still comes out, and nobody can join.
    pub fn close(&self) {
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

    fn taken(outlet: &mut Outlet) -> Vec<u32> {
        let mut all = Vec::new();
        while let Ok(Some(frame)) = outlet.peek() {
            all.push(frame.number);
            outlet.pass();
        }
        outlet.give_back();
        all
    }

    #[tokio::test]
    async fn who_joins_begins_with_the_last_key_frame_and_disturbs_nobody() {
        let graph = Graph::default();
        let fork = Fork::new(&graph, graph.add("channel", "news"), 0);
        let (a, b) = (graph.add("transmission", "a"), graph.add("transmission", "b"));
        let mut early = Box::pin(fork.join(a.id()));
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut early).await.is_err(), "nothing to begin with");
        fork.put(&run(1..5));
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut early).await.is_err(), "no key frame");
        fork.put(&run(5..12));
        let Branch { outlet: mut first, first: run_of_first, runs } = early.await.unwrap();
        assert_eq!((run_of_first.len(), runs), (7, 1));
        fork.put(&run(12..15));
        let mut second = fork.join(b.id()).await.unwrap().outlet;
        fork.put(&run(15..18));
        assert_eq!(graph.picture().pipes.len(), 2);
        assert_eq!(taken(&mut first), (5..18).collect::<Vec<_>>());
        assert_eq!(taken(&mut second), (5..18).collect::<Vec<_>>());
        fork.put(&run(18..22));
        drop(first);
        assert_eq!(graph.picture().pipes.len(), 1);
        let third = fork.join(a.id()).await.unwrap();
        assert_eq!(third.first.len(), 4, "from the newer key frame on");
        fork.put(&run(22..23));
        fork.close();
        assert_eq!(taken(&mut second), (18..23).collect::<Vec<_>>());
        assert_eq!(second.peek(), Err(Gone));
        assert!(fork.join(a.id()).await.is_err() && fork.is_closed());
    }

    #[tokio::test]
    async fn who_takes_nothing_loses_runs_alone() {
        let graph = Graph::default();
        let fork = Fork::new(&graph, graph.add("channel", "news"), 0);
        let a = graph.add("transmission", "a");
        fork.put(&run(0..1));
        let slow = fork.join(a.id()).await.unwrap();
        let mut quick = fork.join(a.id()).await.unwrap().outlet;
        let mut lost = 0;
        for number in 1..200 {
            lost += fork.put(&run(number..number + 1));
            assert_eq!(taken(&mut quick).last(), Some(&number));
        }
        assert_eq!(lost, 200 - DEPTH);
        let mut outlet = slow.outlet;
        assert_eq!(taken(&mut outlet), (0..DEPTH as u32).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn far_key_frames_are_waited_for() {
        let graph = Graph::default();
        let fork = Fork::new(&graph, graph.add("channel", "news"), 0);
        let a = graph.add("transmission", "a");
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
