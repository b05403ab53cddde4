//! Frames on their way from one module to the next.

use crate::{
    Frame,
    graph::{Graph, Joined, NodeId},
};
use std::sync::Arc;
use tokio::sync::{
    Semaphore, SemaphorePermit, TryAcquireError,
    mpsc::{self, UnboundedReceiver, UnboundedSender, error::TryRecvError},
};

/// Frames in the order in which they are due, shared by all who have them.
pub type Run = Arc<[Frame]>;

/// The module at the other end is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// Where frames go in.
#[derive(Debug)]
pub struct Inlet {
    /// Bounded by `room`.
    runs: UnboundedSender<Run>,
    room: Arc<Semaphore>,
}

/// Room in a pipe for one run of frames.
#[derive(Debug)]
pub struct Room<'a> {
    runs: &'a UnboundedSender<Run>,
    permit: SemaphorePermit<'a>,
}

/// Where they come out.
#[derive(Debug)]
pub struct Outlet {
    runs: UnboundedReceiver<Run>,
    /// The run that comes out now, and how many of its frames have.
    run: Option<(Run, usize)>,
    room: Arc<Semaphore>,
    /// Runs that came out and whose room has not been given back.
    owed: usize,
    _joined: Joined,
}

/// A pipe of at most `depth` runs of frames between two modules of a graph, beside the run that is coming out. Who sends
/// waits while it is full, until room is [given back](Outlet::give_back); what is in it when the inlet goes still comes
/// out.
pub fn pipe(graph: &Graph, from: NodeId, to: NodeId, depth: usize) -> (Inlet, Outlet) {
    let depth = depth.max(1);
    let (inlet, outlet) = mpsc::unbounded_channel();
    let room = Arc::new(Semaphore::new(depth));
    let joined = graph.join(from, to, depth);
    (Inlet { runs: inlet, room: room.clone() }, Outlet { runs: outlet, run: None, room, owed: 0, _joined: joined })
}

impl Inlet {
    /// Waits for room: who has it before it makes frames holds none that wait. Cancel safe.
    ///
    /// # Errors
    /// Nobody takes frames out any more.
    pub async fn room(&self) -> Result<Room<'_>, Gone> {
        let permit = self.room.acquire().await.map_err(|_| Gone)?;
        Ok(Room { runs: &self.runs, permit })
    }

    /// Room, where there is some now.
    ///
    /// # Errors
    /// Nobody takes frames out any more.
    pub fn try_room(&self) -> Result<Option<Room<'_>>, Gone> {
        match self.room.try_acquire() {
            Ok(permit) => Ok(Some(Room { runs: &self.runs, permit })),
            Err(TryAcquireError::NoPermits) => Ok(None),
            Err(TryAcquireError::Closed) => Err(Gone),
        }
    }
}

impl Room<'_> {
    /// Puts frames in.
    pub fn put(self, run: Run) {
        // Where nobody takes them out they go, and room is of no use.
        let _ = self.runs.send(run);
        self.permit.forget();
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
                Ok(run) => {
                    self.run = Some((run, 0));
                    self.owed += 1;
                }
                Err(TryRecvError::Empty) => return Ok(None),
                Err(TryRecvError::Disconnected) => return Err(Gone),
            }
        }
        Ok(self.run.as_ref().and_then(|(run, out)| run.get(*out)))
    }

    /// Waits for the next whole run, and gives its room back: for who passes runs on. Cancel safe.
    ///
    /// # Errors
    /// All have come out, and no more will.
    pub async fn next(&mut self) -> Result<Run, Gone> {
        let run = self.runs.recv().await.ok_or(Gone)?;
        self.room.add_permits(1);
        Ok(run)
    }

    /// The frame that was looked at has been taken.
    pub fn pass(&mut self) {
        if let Some((_, out)) = &mut self.run {
            *out += 1;
        }
    }

    /// Whether runs came out whose room has not been given back.
    pub fn owes(&self) -> bool {
        self.owed > 0
    }

    /// Gives back the room of the runs that came out. It wakes who waits for it: one after another they are woken cheaply,
    /// each by itself they are not.
    pub fn give_back(&mut self) {
        self.room.add_permits(std::mem::take(&mut self.owed));
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.room.close();
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
        assert!(!outlet.owes());
        assert_eq!(outlet.peek().unwrap().unwrap().track, 1);
        assert_eq!(outlet.peek().unwrap().unwrap().track, 1, "until it is taken");
        outlet.pass();
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut third).await.is_err(), "it is still owed");
        assert!(outlet.owes() && inlet.try_room().unwrap().is_none());
        outlet.give_back();
        assert!(!outlet.owes());
        third.await.unwrap().put(run(&[3]));
        drop(inlet);
        for track in [2, 3] {
            assert_eq!(outlet.peek().unwrap().unwrap().track, track);
            outlet.pass();
        }
        assert_eq!(outlet.peek(), Err(Gone));
        let (inlet, outlet) = pipe(&graph, a.id(), b.id(), 2);
        drop(outlet);
        assert!(inlet.room().await.is_err() && inlet.try_room().is_err());
    }
}
