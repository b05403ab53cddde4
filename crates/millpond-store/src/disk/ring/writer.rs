//! The thread that writes the payloads of all rings.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::queued::Queued;
use super::record::RingRecord;
use super::writing::Writing;

/// Bytes that may wait for the disk, of all rings together.
const MOST_WAITING: u64 = 32 << 20;
/// Bytes that a waiting payload counts for, beside its own.
const COST: u64 = 256;
/// Interval between two waits for the disk (`fdatasync`). A loss of power damages at most the payloads since then.
const SYNC: Duration = Duration::from_secs(5);

/// A payload to write.
#[derive(Debug)]
pub(super) struct Append {
    pub(super) record: RingRecord,
    /// Whether the payload before it was not queued.
    pub(super) is_after_gap: bool,
    pub(super) payload: Arc<[Bytes]>,
    pub(super) queued: Queued,
}

impl Append {
    /// Bytes of the payload.
    pub(super) fn length(&self) -> u64 {
        self.payload.iter().map(|piece| piece.len() as u64).sum()
    }

    fn cost(&self) -> u64 {
        self.length() + COST
    }
}

/// A command for the thread, with the number of its ring.
#[derive(Debug)]
pub(super) enum Job {
    Open(u64, Box<Writing>),
    Append(u64, Append),
    /// With the time since the Unix epoch.
    Evict(u64, Duration),
    /// With the bytes to be freed.
    Free(u64, u64),
    /// Syncs the files, then replies.
    Flush(u64, SyncSender<()>),
    Close(u64),
}

/// The way to the thread that writes the payloads of all rings. The thread ends with its last handle and ring.
#[derive(Clone, Debug)]
pub struct RingWriter {
    /// A queue without a bound of its own: `waiting` bounds the payloads, and a ring has few other jobs.
    jobs: Sender<Job>,
    /// Bytes that wait.
    waiting: Arc<AtomicU64>,
    /// Number of the next ring.
    next: Arc<AtomicU64>,
}

impl RingWriter {
    /// Starts the thread `ring-writer`.
    ///
    /// # Errors
    ///
    /// The system gives no thread.
    pub fn start() -> io::Result<Self> {
        let (jobs, queue) = channel();
        let waiting = Arc::new(AtomicU64::new(0));
        let thread = WriterThread { queue, waiting: waiting.clone(), rings: BTreeMap::new() };
        std::thread::Builder::new().name("ring-writer".to_owned()).spawn(move || thread.run())?;
        Ok(Self { jobs, waiting, next: Arc::default() })
    }

    /// Hands a ring to the thread; returns its number.
    pub(super) fn add(&self, ring: Writing) -> u64 {
        let number = self.next.fetch_add(1, Relaxed);
        self.send(Job::Open(number, Box::new(ring)));
        number
    }

    /// Queues a payload; false where it has no room.
    pub(super) fn append(&self, ring: u64, append: Append) -> bool {
        let cost = append.cost();
        let within = |waiting: u64| waiting.checked_add(cost).filter(|all| *all <= MOST_WAITING);
        self.waiting.fetch_update(Relaxed, Relaxed, within).is_ok() && self.jobs.send(Job::Append(ring, append)).is_ok()
    }

    pub(super) fn send(&self, job: Job) {
        // An error says that the thread is gone, which is a defect here: payloads are lost then.
        let _ = self.jobs.send(job);
    }
}

/// The thread's own.
struct WriterThread {
    queue: Receiver<Job>,
    waiting: Arc<AtomicU64>,
    rings: BTreeMap<u64, Writing>,
}

impl WriterThread {
    fn run(mut self) {
        let mut sync = Instant::now() + SYNC;
        loop {
            match self.queue.recv_timeout(sync.saturating_duration_since(Instant::now())) {
                Ok(job) => self.carry_out(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if Instant::now() >= sync {
                self.rings.values_mut().for_each(|ring| ring.sync(Instant::now()));
                sync = Instant::now() + SYNC;
            }
        }
    }

    fn carry_out(&mut self, job: Job) {
        match job {
            Job::Open(number, ring) => drop(self.rings.insert(number, *ring)),
            Job::Append(number, append) => {
                if let Some(ring) = self.rings.get_mut(&number) {
                    ring.append(&append, Instant::now());
                }
                self.waiting.fetch_sub(append.cost(), Relaxed);
            }
            Job::Evict(number, now) => {
                if let Some(ring) = self.rings.get_mut(&number) {
                    ring.evict(now);
                }
            }
            Job::Free(number, bytes) => {
                if let Some(ring) = self.rings.get_mut(&number) {
                    ring.free(bytes);
                }
            }
            Job::Flush(number, done) => {
                if let Some(ring) = self.rings.get_mut(&number) {
                    ring.sync(Instant::now());
                }
                // The caller waits for it.
                let _ = done.send(());
            }
            Job::Close(number) => drop(self.rings.remove(&number)),
        }
    }
}
