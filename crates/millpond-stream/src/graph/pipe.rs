//! Frames between two modules.

use super::queue::{QueueReader, QueueWriter, Weight, queue};
use crate::{
    Frame, Run,
    registry::{EdgeGuard, NodeId, Registry},
};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::time::Instant;
use tokio::sync::{Semaphore, SemaphorePermit, TryAcquireError};

/// The module at the other end has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the other end of the pipe has left")]
pub struct Closed;

/// The end of a pipe that takes frames.
#[derive(Debug)]
pub struct PipeWriter {
    /// Bounded by `permits`.
    runs: QueueWriter,
    permits: Arc<Semaphore>,
}

/// Permission to send one run.
#[derive(Debug)]
pub struct Permit<'a> {
    runs: &'a QueueWriter,
    permit: SemaphorePermit<'a>,
}

/// The end of a pipe that gives frames.
#[derive(Debug)]
pub struct PipeReader {
    runs: QueueReader,
    /// The current run, and the number of its frames that were taken.
    current: Option<(Run, usize)>,
    room: Room,
    /// Counts reports in which the receiver of the frames missed many packets.
    losses: Arc<AtomicU64>,
    edge: EdgeGuard,
}

/// The bounds of the runs in a pipe.
#[derive(Debug)]
enum Room {
    /// The writer waits for permits.
    Permits {
        permits: Arc<Semaphore>,
        /// Permits of runs that were taken and not returned yet.
        owed: usize,
    },
    /// The writer is a fork, which never waits and checks the load.
    Unbounded,
}

/// Returns the ends of a pipe between two modules. It holds at most `depth` runs beside the one that is being taken.
///
/// The writer waits while the pipe is full, until permits are [returned](PipeReader::return_permits). Runs in the pipe can
/// still be taken after the writer was dropped.
pub(crate) fn pipe(registry: &Registry, from: NodeId, to: NodeId, depth: usize) -> (PipeWriter, PipeReader) {
    let depth = depth.max(1);
    let (sender, runs) = queue();
    let permits = Arc::new(Semaphore::new(depth));
    let edge = registry.connect(from, to, depth, Arc::default());
    let writer = PipeWriter { runs: sender, permits: permits.clone() };
    let room = Room::Permits { permits, owed: 0 };
    (writer, PipeReader { runs, current: None, room, losses: Arc::default(), edge })
}

/// Returns the ends of a branch's pipe. `losses` counts [reports](PipeReader::report_loss) of its reader.
pub(super) fn branch(edge: EdgeGuard, losses: Arc<AtomicU64>) -> (QueueWriter, PipeReader) {
    let (sender, runs) = queue();
    (sender, PipeReader { runs, current: None, room: Room::Unbounded, losses, edge })
}

impl PipeWriter {
    /// Waits until there is room for a run. Frames are best made after that, so that none wait in memory. Cancel safe.
    ///
    /// # Errors
    /// The reader was dropped.
    pub async fn reserve(&self) -> Result<Permit<'_>, Closed> {
        let permit = self.permits.acquire().await.map_err(|_| Closed)?;
        Ok(Permit { runs: &self.runs, permit })
    }

    /// Reserves room for a run; `None` while the pipe is full.
    ///
    /// # Errors
    /// The reader was dropped.
    pub fn try_reserve(&self) -> Result<Option<Permit<'_>>, Closed> {
        match self.permits.try_acquire() {
            Ok(permit) => Ok(Some(Permit { runs: &self.runs, permit })),
            Err(TryAcquireError::NoPermits) => Ok(None),
            Err(TryAcquireError::Closed) => Err(Closed),
        }
    }
}

impl Permit<'_> {
    /// Sends a run.
    pub fn send(self, run: Run) {
        // Without a reader the run is dropped, and nobody needs the permit.
        self.runs.send((run, Weight::default()));
        self.permit.forget();
    }
}

impl PipeReader {
    /// Returns the next frame without taking it; `None` while none has arrived.
    ///
    /// # Errors
    /// All frames were taken and the writer was dropped.
    #[inline]
    pub fn peek(&mut self) -> Result<Option<&Frame>, Closed> {
        while self.current.as_ref().is_none_or(|(run, taken)| *taken >= run.len()) {
            self.current = None;
            let Some(run) = self.runs.try_take()? else { return Ok(None) };
            self.current = Some((run, 0));
            if let Room::Permits { owed, .. } = &mut self.room {
                *owed += 1;
            }
        }
        Ok(self.current.as_ref().and_then(|(run, taken)| run.get(*taken)))
    }

    /// Tells that another module takes the frames than the one that the pipe was made for.
    pub(crate) fn lead_to(&self, module: NodeId) {
        self.edge.redirect(module);
    }

    /// Whether all runs that have arrived were taken.
    pub(crate) fn is_drained(&self) -> bool {
        self.current.is_none() && self.runs.is_empty()
    }

    /// Waits for the next whole run and returns its permit at once. For modules that pass runs on: one that takes runs is behind until
    /// none waits. Cancel safe.
    ///
    /// # Errors
    /// All runs were taken and the writer was dropped.
    pub async fn next(&mut self) -> Result<Run, Closed> {
        let run = self.next_to_send().await?;
        self.hold(Instant::now());
        Ok(run)
    }

    /// Notes that the taken runs can't be passed on now, because the receiver's connection takes no bytes. Frames are dropped for
    /// the time from then on, until no run waits, and for no other time.
    pub fn hold(&self, now: Instant) {
        self.runs.hold(now);
    }

    /// The same as [`next`](Self::next) for readers that tell when they are [held up](Self::hold).
    pub(crate) async fn next_to_send(&mut self) -> Result<Run, Closed> {
        let run = self.runs.take().await?;
        if let Room::Permits { permits, .. } = &self.room {
            permits.add_permits(1);
        }
        Ok(run)
    }

    /// Takes the frame that [`peek`](Self::peek) returned.
    #[inline]
    pub fn advance(&mut self) {
        if let Some((_, taken)) = &mut self.current {
            *taken += 1;
        }
    }

    /// Tells the module that gives the frames of a report in which their receiver missed many packets.
    pub(crate) fn report_loss(&self) {
        self.losses.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether permits of taken runs were not returned yet.
    #[inline]
    pub fn owes_permits(&self) -> bool {
        matches!(self.room, Room::Permits { owed: 1.., .. })
    }

    /// Returns the permits of taken runs. This wakes the writer; many wakes one after another cost less than scattered ones.
    pub fn return_permits(&mut self) {
        if let Room::Permits { permits, owed } = &mut self.room {
            permits.add_permits(std::mem::take(owed));
        }
    }
}

impl Drop for PipeReader {
    fn drop(&mut self) {
        if let Room::Permits { permits, .. } = &self.room {
            permits.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use millpond_media::Importance;
    use std::time::Duration;

    fn run(tracks: &[u16]) -> Run {
        let frame = |track: &u16| Frame {
            track: *track,
            number: 0,
            due: Duration::ZERO,
            pts: 0,
            epoch: 0,
            is_sync: true,
            importance: Importance::BASE,
            data: Bytes::new(),
        };
        tracks.iter().map(frame).collect()
    }

    #[tokio::test]
    async fn frames_come_out_in_order_and_a_full_pipe_makes_wait() {
        let registry = Registry::default();
        let (a, b) = (registry.add("loader", "a"), registry.add("transmission", "b"));
        let (writer, mut reader) = pipe(&registry, a.id(), b.id(), 2);
        assert_eq!(reader.peek(), Ok(None));
        writer.reserve().await.unwrap().send(run(&[1, 2]));
        writer.reserve().await.unwrap().send(run(&[]));
        let mut third = Box::pin(writer.reserve());
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut third).await.is_err(), "it is full");
        assert!(!reader.owes_permits());
        assert_eq!(reader.peek().unwrap().unwrap().track, 1);
        assert_eq!(reader.peek().unwrap().unwrap().track, 1, "until it is taken");
        reader.advance();
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut third).await.is_err(), "it is still owed");
        assert!(reader.owes_permits() && writer.try_reserve().unwrap().is_none());
        reader.return_permits();
        assert!(!reader.owes_permits());
        third.await.unwrap().send(run(&[3]));
        drop(writer);
        for track in [2, 3] {
            assert_eq!(reader.peek().unwrap().unwrap().track, track);
            reader.advance();
        }
        assert_eq!(reader.peek(), Err(Closed));
        let (writer, reader) = pipe(&registry, a.id(), b.id(), 2);
        drop(reader);
        assert!(writer.reserve().await.is_err() && writer.try_reserve().is_err());
    }
}
