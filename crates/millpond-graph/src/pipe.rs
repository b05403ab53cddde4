//! Frames on their way from one module to the next.

use crate::{
    Frame,
    graph::{Graph, Joined, NodeId},
};
use std::sync::Arc;
use tokio::sync::mpsc::{self, error::TryRecvError};

/// Frames in the order in which they are due, shared by all who have them.
pub type Run = Arc<[Frame]>;

/// The module at the other end is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// Where frames go in.
#[derive(Debug)]
pub struct Inlet {
    runs: mpsc::Sender<Run>,
}

/// Room in a pipe for one run of frames.
#[derive(Debug)]
pub struct Room<'a>(mpsc::Permit<'a, Run>);

/// Where they come out.
#[derive(Debug)]
pub struct Outlet {
    runs: mpsc::Receiver<Run>,
    /// The run that comes out now, and how many of its frames have.
    run: Option<(Run, usize)>,
    _joined: Joined,
}

/// A pipe of at most `depth` runs of frames between two modules of a graph, beside the run that is coming out. Who sends
/// waits while it is full; what is in it when the inlet goes still comes out.
pub fn pipe(graph: &Graph, from: NodeId, to: NodeId, depth: usize) -> (Inlet, Outlet) {
    let (inlet, outlet) = branch(graph, from, to, depth);
    (Inlet { runs: inlet }, outlet)
}

/// As [`pipe`], for one who puts runs into many and waits for none.
pub(crate) fn branch(graph: &Graph, from: NodeId, to: NodeId, depth: usize) -> (mpsc::Sender<Run>, Outlet) {
    let (inlet, outlet) = mpsc::channel(depth.max(1));
    (inlet, Outlet { runs: outlet, run: None, _joined: graph.join(from, to, depth.max(1)) })
}

impl Inlet {
    /// Waits for room: who has it before it makes frames holds none that wait. Cancel safe.
    ///
    /// # Errors
    /// Nobody takes frames out any more.
    pub async fn room(&self) -> Result<Room<'_>, Gone> {
        self.runs.reserve().await.map(Room).map_err(|_| Gone)
    }
}

impl Room<'_> {
    /// Puts frames in.
    pub fn put(self, run: Run) {
        self.0.send(run);
    }
}

impl Outlet {
    /// The next frame, left where it is; nothing where none has come yet.
    ///
    /// # Errors
    /// All have come out, and no more will.
    pub fn peek(&mut self) -> Result<Option<&Frame>, Gone> {
        while self.run.as_ref().is_none_or(|(run, out)| *out >= run.len()) {
            self.run = None;
            match self.runs.try_recv() {
                Ok(run) => self.run = Some((run, 0)),
                Err(TryRecvError::Empty) => return Ok(None),
                Err(TryRecvError::Disconnected) => return Err(Gone),
            }
        }
        Ok(self.run.as_ref().and_then(|(run, out)| run.get(*out)))
    }

    /// Waits for the next whole run: for who passes runs on. Cancel safe.
    ///
    /// # Errors
    /// All have come out, and no more will.
    pub async fn next(&mut self) -> Result<Run, Gone> {
        self.runs.recv().await.ok_or(Gone)
    }

    /// The frame that was looked at has been taken.
    pub fn pass(&mut self) {
        if let Some((_, out)) = &mut self.run {
            *out += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use std::time::Duration;

    fn run(tracks: &[u16]) -> Run {
        let frame = |track: &u16| Frame {
            track: *track,
            number: 0,
            due: Duration::ZERO,
            pts: 0,
            is_sync: true,
            data: Bytes::new(),
        };
        tracks.iter().map(frame).collect()
    }

    #[tokio::test]
    async fn frames_come_out_in_order_and_a_full_pipe_makes_wait() {
        let graph = Graph::default();
        let (a, b) = (graph.add("loader", "a"), graph.add("transmission", "b"));
        let (inlet, mut outlet) = pipe(&graph, a.id(), b.id(), 2);
        assert_eq!(outlet.peek(), Ok(None));
        inlet.room().await.unwrap().put(run(&[1, 2]));
        inlet.room().await.unwrap().put(run(&[]));
        let mut third = Box::pin(inlet.room());
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut third).await.is_err(), "it is full");
        assert_eq!(outlet.peek().unwrap().unwrap().track, 1);
        assert_eq!(outlet.peek().unwrap().unwrap().track, 1, "until it is taken");
        outlet.pass();
        third.await.unwrap().put(run(&[3]));
        drop(inlet);
        for track in [2, 3] {
            assert_eq!(outlet.peek().unwrap().unwrap().track, track);
            outlet.pass();
        }
        assert_eq!(outlet.peek(), Err(Gone));
        let (inlet, outlet) = pipe(&graph, a.id(), b.id(), 2);
        drop(outlet);
        assert!(inlet.room().await.is_err());
    }
}
