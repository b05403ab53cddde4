//! Frames on their way from one module to the next.

use crate::{
    Frame,
    graph::{Graph, Joined, NodeId},
};
use tokio::sync::mpsc::{self, error::TryRecvError};

/// The module at the other end is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// Where frames go in.
#[derive(Debug)]
pub struct Inlet {
    frames: mpsc::Sender<Frame>,
}

/// Where they come out.
#[derive(Debug)]
pub struct Outlet {
    frames: mpsc::Receiver<Frame>,
    /// The next one, looked at already.
    next: Option<Frame>,
    _joined: Joined,
}

/// A pipe of at most `depth` frames between two modules of a graph. Who sends waits while it is full; what is in it when
/// the inlet goes still comes out.
pub fn pipe(graph: &Graph, from: NodeId, to: NodeId, depth: usize) -> (Inlet, Outlet) {
    let (inlet, outlet) = mpsc::channel(depth.max(1));
    (Inlet { frames: inlet }, Outlet { frames: outlet, next: None, _joined: graph.join(from, to, depth.max(1)) })
}

impl Inlet {
    /// Puts a frame in, when there is room. Cancel safe: a dropped future has put nothing in.
    ///
    /// # Errors
    /// Nobody takes frames out any more.
    pub async fn put(&self, frame: Frame) -> Result<(), Gone> {
        self.frames.send(frame).await.map_err(|_| Gone)
    }
}

impl Outlet {
    /// The next frame, left where it is; nothing where none has come yet.
    ///
    /// # Errors
    /// All have come out, and no more will.
    pub fn peek(&mut self) -> Result<Option<&Frame>, Gone> {
        if self.next.is_none() {
            match self.frames.try_recv() {
                Ok(frame) => self.next = Some(frame),
                Err(TryRecvError::Empty) => return Ok(None),
                Err(TryRecvError::Disconnected) => return Err(Gone),
            }
        }
        Ok(self.next.as_ref())
    }

    /// Takes the frame that was looked at.
    pub fn take(&mut self) -> Option<Frame> {
        self.next.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use std::time::Duration;

    fn frame(track: u8) -> Frame {
        Frame { track, number: 0, due: Duration::ZERO, pts: 0, is_sync: true, data: Bytes::new() }
    }

    #[tokio::test]
    async fn frames_come_out_in_order_and_a_full_pipe_makes_wait() {
        let graph = Graph::default();
        let (a, b) = (graph.add("loader", "a"), graph.add("transmission", "b"));
        let (inlet, mut outlet) = pipe(&graph, a.id(), b.id(), 2);
        assert_eq!(outlet.peek(), Ok(None));
        inlet.put(frame(1)).await.unwrap();
        inlet.put(frame(2)).await.unwrap();
        let mut third = Box::pin(inlet.put(frame(3)));
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut third).await.is_err(), "it is full");
        assert_eq!(outlet.peek().unwrap().unwrap().track, 1);
        assert_eq!(outlet.take().unwrap().track, 1);
        third.await.unwrap();
        drop(inlet);
        for track in [2, 3] {
            assert_eq!(outlet.peek().unwrap().unwrap().track, track);
            outlet.take();
        }
        assert_eq!(outlet.peek(), Err(Gone));
        let (inlet, outlet) = pipe(&graph, a.id(), b.id(), 2);
        drop(outlet);
        assert_eq!(inlet.put(frame(1)).await, Err(Gone));
    }
}
