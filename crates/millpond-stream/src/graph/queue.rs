//! Runs that wait between two modules, and the sum of their weights.

use super::pipe::Closed;
use crate::Run;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

/// Runs for which an empty queue keeps memory.
const KEPT: usize = 32;

/// A run in a queue, and what it adds to the queue's load.
pub(super) type Parcel = (Run, Weight);

/// Bytes and duration of a run that counts in the load of a branch. Runs from before its beginning have none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weight {
    pub(super) bytes: usize,
    micros: u64,
    pub(super) runs: usize,
}

impl Weight {
    pub(super) fn new(bytes: usize, span: Duration) -> Self {
        Self { bytes, micros: span.as_micros() as u64, runs: 1 }
    }

    pub(super) fn and(self, other: Self) -> Self {
        let Self { bytes, micros, runs } = self;
        Self { bytes: bytes + other.bytes, micros: micros + other.micros, runs: runs + other.runs }
    }

    fn without(self, other: Self) -> Self {
        let Self { bytes, micros, runs } = self;
        Self { bytes: bytes - other.bytes, micros: micros - other.micros, runs: runs - other.runs }
    }

    pub(super) fn span(self) -> Duration {
        Duration::from_micros(self.micros)
    }
}

#[derive(Debug)]
struct Queue {
    /// A lock: taken for each run by its giver and by its taker. It is never held across a wait.
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Debug)]
struct State {
    runs: VecDeque<Parcel>,
    load: Weight,
    has_writer: bool,
    has_reader: bool,
    /// Whether the reader waits.
    is_awaited: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end that gives runs. The queue itself has no bound: those who give keep one.
#[derive(Debug)]
pub(super) struct QueueWriter(Arc<Queue>);

/// The end that takes runs. Runs can still be taken after the writer was dropped.
#[derive(Debug)]
pub(super) struct QueueReader(Arc<Queue>);

/// Returns the ends of a queue.
pub(super) fn queue() -> (QueueWriter, QueueReader) {
    let state =
        State { runs: VecDeque::new(), load: Weight::default(), has_writer: true, has_reader: true, is_awaited: false };
    let queue = Arc::new(Queue { state: Mutex::new(state), arrived: Notify::new() });
    (QueueWriter(queue.clone()), QueueReader(queue))
}

impl QueueWriter {
    /// The sum of the weights of all runs that wait.
    ///
    /// # Errors
    /// The reader was dropped.
    pub(super) fn load(&self) -> Result<Weight, Closed> {
        let state = self.0.lock();
        if state.has_reader { Ok(state.load) } else { Err(Closed) }
    }

    /// Gives a run. Without a reader it is dropped.
    pub(super) fn send(&self, (run, weight): Parcel) {
        let mut state = self.0.lock();
        if !state.has_reader {
            return;
        }
        state.load = state.load.and(weight);
        state.runs.push_back((run, weight));
        let is_awaited = std::mem::take(&mut state.is_awaited);
        drop(state);
        if is_awaited {
            self.0.arrived.notify_one();
        }
    }
}

impl Drop for QueueWriter {
    fn drop(&mut self) {
        self.0.lock().has_writer = false;
        self.0.arrived.notify_one();
    }
}

impl QueueReader {
    /// Takes the next run; `None` while none waits.
    ///
    /// # Errors
    /// All runs were taken and the writer was dropped.
    pub(super) fn try_take(&self) -> Result<Option<Run>, Closed> {
        let mut state = self.0.lock();
        match state.runs.pop_front() {
            Some((run, weight)) => {
                state.load = state.load.without(weight);
                if state.runs.is_empty() && state.runs.capacity() > KEPT {
                    state.runs = VecDeque::new();
                }
                Ok(Some(run))
            }
            None if state.has_writer => Ok(None),
            None => Err(Closed),
        }
    }

    /// Whether no run waits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().runs.is_empty()
    }

    /// Waits for the next run and takes it. Cancel safe.
    ///
    /// # Errors
    /// All runs were taken and the writer was dropped.
    pub(super) async fn take(&mut self) -> Result<Run, Closed> {
        loop {
            if let Some(run) = self.try_take()? {
                return Ok(run);
            }
            if self.waits() {
                self.0.arrived.notified().await;
            }
        }
    }

    /// Asks to be told of the next run. Returns whether there is none yet.
    fn waits(&self) -> bool {
        let mut state = self.0.lock();
        state.is_awaited = state.runs.is_empty() && state.has_writer;
        state.is_awaited
    }
}

impl Drop for QueueReader {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.has_reader = false;
        let runs = std::mem::take(&mut state.runs);
        drop(state);
        drop(runs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Frame;
    use bytes::Bytes;

    fn run(number: u32) -> Run {
        [Frame {
            track: 0,
            number,
            due: Duration::ZERO,
            pts: 0,
            epoch: 0,
            is_sync: true,
            is_disposable: false,
            data: Bytes::new(),
        }]
        .into()
    }

    fn weight() -> Weight {
        Weight::new(10, Duration::from_millis(40))
    }

    #[tokio::test]
    async fn runs_come_in_order_from_another_thread() {
        let (writer, mut reader) = queue();
        let giving = std::thread::spawn(move || {
            for number in 0..10_000 {
                writer.send((run(number), weight()));
                if number % 97 == 0 {
                    std::thread::yield_now();
                }
            }
        });
        for number in 0..10_000 {
            assert_eq!(reader.take().await.unwrap()[0].number, number);
        }
        giving.join().unwrap();
        assert_eq!(reader.take().await, Err(Closed));
    }

    #[tokio::test]
    async fn a_reader_that_waits_is_told_that_the_writer_left() {
        let (writer, mut reader) = queue();
        let waiting = tokio::spawn(async move { reader.take().await });
        tokio::task::yield_now().await;
        drop(writer);
        assert_eq!(waiting.await.unwrap(), Err(Closed));
    }

    #[test]
    fn the_load_is_that_of_the_runs_that_wait() {
        let (writer, reader) = queue();
        (0..1000).for_each(|number| writer.send((run(number), weight())));
        assert_eq!(
            writer.load().map(|load| (load.runs, load.bytes, load.span())),
            Ok((1000, 10_000, Duration::from_secs(40)))
        );
        (0..1000).for_each(|_| assert!(reader.try_take().unwrap().is_some()));
        assert_eq!(reader.try_take(), Ok(None));
        assert_eq!(writer.load().map(|load| load.runs), Ok(0));
        assert!(reader.0.lock().runs.capacity() <= KEPT, "the memory of a long queue is given back");
        writer.send((run(0), weight()));
        drop(reader);
        assert_eq!(writer.load().map(|load| load.runs), Err(Closed));
        assert!(writer.0.lock().runs.is_empty(), "nobody takes them");
    }
}
