//! Runs that wait between two modules, and the sum of their weights.

use super::pipe::Closed;
use crate::{Frame, Run};
use std::{
    collections::VecDeque,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::Notify;

/// Runs for which an empty queue keeps memory.
const KEPT: usize = 32;

/// A run in a queue, and its part of the queue's load.
pub(super) type Parcel = (Run, Weight);

/// Placeholder of a dropped run.
static DROPPED: LazyLock<Run> = LazyLock::new(|| Run::from([]));

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

    /// The same time with other bytes.
    pub(super) fn with_bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
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
    waiting: Waiting,
    has_writer: bool,
    has_reader: bool,
    /// Whether the reader waits.
    is_awaited: bool,
}

/// Runs that wait, and their load.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    runs: VecDeque<Parcel>,
    load: Weight,
    /// Time of the newest runs that were dropped: it counts for the next one.
    owed: u64,
    /// Time at which the reader could first not pass a run on, since it last found the queue empty; `None` where it could.
    held: Option<Instant>,
}

impl Waiting {
    /// The sum of the weights of all runs that wait. The span is the time from the first run to the last run.
    pub(super) fn load(&self) -> Weight {
        self.load
    }

    /// Time for which the reader has been behind because it could not pass runs on.
    pub(super) fn held(&self, now: Instant) -> Duration {
        self.held.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    /// The runs, in their order.
    pub(super) fn runs(&self) -> impl DoubleEndedIterator<Item = &Run> {
        self.runs.iter().map(|(run, _)| run)
    }

    /// Adds a run behind the others.
    pub(super) fn push(&mut self, (run, mut weight): Parcel) {
        weight.micros = if self.runs.is_empty() { 0 } else { weight.micros + self.owed };
        self.owed = 0;
        self.load = self.load.and(weight);
        self.runs.push_back((run, weight));
    }

    fn pop(&mut self) -> Option<Run> {
        let (run, weight) = self.runs.pop_front()?;
        self.load = self.load.without(weight);
        self.begin();
        if self.runs.is_empty() && self.runs.capacity() > KEPT {
            self.runs = VecDeque::new();
        }
        Some(run)
    }

    /// The first run has no time before it.
    fn begin(&mut self) {
        if let Some((_, first)) = self.runs.front_mut() {
            self.load.micros -= std::mem::take(&mut first.micros);
        }
    }

    /// Drops the frames that `keeps` returns `false` for. It is called for all frames, the newest first.
    pub(super) fn retain_newest_first(&mut self, mut keeps: impl FnMut(&Frame) -> bool) {
        let (mut newer, mut is_changed, mut kept) = (None, false, Vec::new());
        for at in (0..self.runs.len()).rev() {
            let (run, weight) = &mut self.runs[at];
            kept.clear();
            kept.extend(run.iter().rev().map(&mut keeps));
            if !kept.contains(&false) {
                newer = Some(at);
                continue;
            }
            let rest = run.iter().zip(kept.iter().rev()).filter(|(_, kept)| **kept).map(|(frame, _)| frame.clone());
            let rest: Run = rest.collect();
            let is_counted = weight.runs > 0;
            let bytes = if is_counted { rest.iter().map(|frame| frame.data.len()).sum() } else { 0 };
            self.load.bytes = self.load.bytes - weight.bytes + bytes;
            weight.bytes = bytes;
            if !rest.is_empty() {
                *run = rest;
                newer = Some(at);
                continue;
            }
            *run = DROPPED.clone();
            let micros = std::mem::take(&mut weight.micros);
            self.load.runs -= std::mem::take(&mut weight.runs);
            is_changed = true;
            match newer {
                Some(newer) => self.runs[newer].1.micros += micros,
                None => {
                    self.owed += micros;
                    self.load.micros -= micros;
                }
            }
        }
        if is_changed {
            self.runs.retain(|(run, _)| !run.is_empty());
            self.begin();
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end that gives runs. The queue itself has no bound: its writers keep one.
#[derive(Debug)]
pub(super) struct QueueWriter(Arc<Queue>);

/// The end that takes runs. Runs can still be taken after the writer was dropped.
#[derive(Debug)]
pub(super) struct QueueReader(Arc<Queue>);

/// Returns the ends of a queue.
pub(super) fn queue() -> (QueueWriter, QueueReader) {
    let state = State { waiting: Waiting::default(), has_writer: true, has_reader: true, is_awaited: false };
    let queue = Arc::new(Queue { state: Mutex::new(state), arrived: Notify::new() });
    (QueueWriter(queue.clone()), QueueReader(queue))
}

impl QueueWriter {
    /// Whether the reader was not dropped.
    pub(super) fn has_reader(&self) -> bool {
        self.0.lock().has_reader
    }

    /// Changes what waits, and tells the reader of it.
    ///
    /// # Errors
    /// The reader was dropped.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Waiting) -> T) -> Result<T, Closed> {
        let mut state = self.0.lock();
        if !state.has_reader {
            return Err(Closed);
        }
        let changed = change(&mut state.waiting);
        let is_awaited = !state.waiting.runs.is_empty() && std::mem::take(&mut state.is_awaited);
        drop(state);
        if is_awaited {
            self.0.arrived.notify_one();
        }
        Ok(changed)
    }

    /// Gives a run. Without a reader it is dropped.
    pub(super) fn send(&self, parcel: Parcel) {
        let _ = self.change(|waiting| waiting.push(parcel));
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
        match state.waiting.pop() {
            Some(run) => Ok(Some(run)),
            None if state.has_writer => {
                state.waiting.held = None;
                Ok(None)
            }
            None => Err(Closed),
        }
    }

    /// Notes that the reader can't pass a run on now, until it finds the queue empty.
    pub(super) fn hold(&self, now: Instant) {
        self.0.lock().waiting.held.get_or_insert(now);
    }

    /// Whether no run waits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().waiting.runs.is_empty()
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
        state.is_awaited = state.waiting.runs.is_empty() && state.has_writer;
        state.is_awaited
    }
}

impl Drop for QueueReader {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.has_reader = false;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        drop(waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Frame;
    use bytes::Bytes;
    use millpond_media::Importance;

    fn run(number: u32) -> Run {
        [Frame {
            track: 0,
            number,
            due: Duration::ZERO,
            pts: 0,
            epoch: 0,
            is_sync: true,
            importance: Importance::BASE,
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

    fn load(writer: &QueueWriter) -> Result<(usize, usize, Duration), Closed> {
        writer.change(|waiting| (waiting.load.runs, waiting.load.bytes, waiting.load.span()))
    }

    #[test]
    fn the_load_is_that_of_the_runs_that_wait() {
        let (writer, reader) = queue();
        (0..1000).for_each(|number| writer.send((run(number), weight())));
        // From the first one to the last one.
        assert_eq!(load(&writer), Ok((1000, 10_000, Duration::from_millis(40) * 999)));
        assert!(reader.try_take().unwrap().is_some());
        assert_eq!(load(&writer), Ok((999, 9990, Duration::from_millis(40) * 998)));
        (0..999).for_each(|_| assert!(reader.try_take().unwrap().is_some()));
        assert_eq!(reader.try_take(), Ok(None));
        assert_eq!(load(&writer), Ok((0, 0, Duration::ZERO)));
        assert!(reader.0.lock().waiting.runs.capacity() <= KEPT, "the memory of a long queue is given back");
        writer.send((run(0), weight()));
        drop(reader);
        assert_eq!(load(&writer), Err(Closed));
        assert!(writer.0.lock().waiting.runs.is_empty(), "nobody takes them");
    }

    #[test]
    fn dropped_runs_leave_their_time_to_the_next_ones() {
        let (writer, reader) = queue();
        (0..10).for_each(|number| writer.send((run(number), weight())));
        let drops = |numbers: &[u32]| {
            writer.change(|waiting| waiting.retain_newest_first(|frame| !numbers.contains(&frame.number))).unwrap();
            load(&writer).unwrap()
        };
        let ms = Duration::from_millis;
        assert_eq!(drops(&[3, 4, 8]), (7, 70, ms(360)));
        assert_eq!(drops(&[9]), (6, 60, ms(280)), "up to 7");
        writer.send((run(10), weight()));
        assert_eq!(load(&writer), Ok((7, 70, ms(400))));
        assert_eq!(drops(&[0, 1]), (5, 50, ms(320)), "from 2 on");
        let left: Vec<u32> = std::iter::from_fn(|| reader.try_take().unwrap()).map(|run| run[0].number).collect();
        assert_eq!((left, load(&writer).unwrap().2), (vec![2, 5, 6, 7, 10], Duration::ZERO));
    }

    #[test]
    fn runs_lose_some_of_their_frames() {
        let (writer, reader) = queue();
        let both: Run = [run(1)[0].clone(), run(2)[0].clone()].into();
        writer.send((both, weight()));
        writer.change(|waiting| waiting.retain_newest_first(|frame| frame.number == 2)).unwrap();
        assert_eq!(reader.try_take().unwrap().unwrap()[..], run(2)[..]);
    }
}
