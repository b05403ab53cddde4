//! Transport stream segments of a window, made on request.

use super::LiveWindow;
use crate::graph::LiveMemory;
use bytes::Bytes;
use millpond_package::{
    PackageError,
    live::{SegmentNumber, TransportCounters, TransportSegment},
};
use millpond_store::SingleFlight;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Most segments that are kept: players ask for the newest ones, all at about the same time.
const KEPT: usize = 4;
/// Most bytes of them.
const BYTES: u64 = 8 << 20;
/// Their part of a stream's memory, where that is less.
const SHARE: u64 = 8;

/// Track and number of a segment.
type Key = (usize, SegmentNumber);

/// Makes a segment. Call this on a thread that serves no requests.
pub type TransportJob = Box<dyn FnOnce() -> Result<Bytes, TransportError> + Send>;

/// The reason why there is no transport stream segment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// It left memory, is not complete, or has no media.
    #[error("no such transport stream segment is in memory")]
    Unknown,
    /// The memory of the stream has no room for it.
    #[error("the stream has no memory for a transport stream segment of {0} bytes (stream-memory)")]
    NoMemory(u64),
    /// A sample violates the rules of its codec.
    #[error(transparent)]
    Sample(Arc<PackageError>),
    /// The job was not run, for this reason.
    #[error("{0}")]
    NotRun(String),
}

/// The segments that were made last, the segments that are being made, and the state of their counters.
#[derive(Debug, Default)]
pub(super) struct Transports {
    /// A lock: held by jobs, while samples of a segment are taken.
    counters: Mutex<TransportCounters>,
    /// By key, the oldest first. A lock: held for look-ups only.
    made: Mutex<VecDeque<(Key, Bytes)>>,
    flights: SingleFlight<Key, Result<Bytes, TransportError>>,
    /// The memory that counts them; `None` counts nothing.
    memory: Option<LiveMemory>,
}

impl Transports {
    pub(super) fn counted_in(memory: LiveMemory) -> Self {
        Self { memory: Some(memory), ..Self::default() }
    }

    fn made(&self) -> MutexGuard<'_, VecDeque<(Key, Bytes)>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, key: Key) -> Option<Bytes> {
        self.made().iter().find(|(of, _)| *of == key).map(|(_, bytes)| bytes.clone())
    }

    /// Makes room for `bytes` more in the memory of the stream: what was kept is forgotten where it must be.
    fn make_room(&self, bytes: u64) -> Result<(), TransportError> {
        let Some(memory) = &self.memory else { return Ok(()) };
        if !memory.has_room(bytes) {
            let forgotten = std::mem::take(&mut *self.made());
            drop(forgotten);
        }
        if memory.has_room(bytes) { Ok(()) } else { Err(TransportError::NoMemory(bytes)) }
    }

    /// Counts a segment in the memory of the stream and keeps it. Forgets the oldest ones beyond the limits.
    fn keep(&self, key: Key, bytes: Bytes) -> Result<Bytes, TransportError> {
        let len = bytes.len() as u64;
        let bytes = match &self.memory {
            Some(memory) => memory.hold_bytes(bytes).ok_or(TransportError::NoMemory(len))?,
            None => bytes,
        };
        let most = self.memory.as_ref().map_or(BYTES, |memory| BYTES.min(memory.most() / SHARE));
        let mut made = self.made();
        made.push_back((key, bytes.clone()));
        let held = |made: &VecDeque<(_, Bytes)>| made.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
        while made.len() > KEPT || held(&made) > most {
            made.pop_front();
        }
        Ok(bytes)
    }
}

impl LiveWindow {
    /// Returns segment `number` of a track as a transport stream, with the sound where that is in it. `run` runs the job that
    /// makes the segment, once for all waiting requests. Cancel safe.
    ///
    /// # Errors
    /// There is no such segment, no memory for it, a sample that its codec does not allow, or the job was not run.
    pub async fn transport<F>(
        self: &Arc<Self>,
        (track, number): (usize, SegmentNumber),
        run: impl FnOnce(TransportJob) -> F,
    ) -> Result<Bytes, TransportError>
    where
        F: Future<Output = Result<Bytes, TransportError>> + Send + 'static,
    {
        let key = (track, number);
        if let Some(known) = self.transports.known(key) {
            return Ok(known);
        }
        let window = self.clone();
        let job = || run(Box::new(move || window.make_transport(key)));
        self.transports.flights.run(&key, job).await.0
    }

    fn make_transport(&self, key: Key) -> Result<Bytes, TransportError> {
        // Another job may have made it in the meantime.
        if let Some(known) = self.transports.known(key) {
            return Ok(known);
        }
        let segment = {
            let mut counters = self.transports.counters.lock().unwrap_or_else(PoisonError::into_inner);
            self.look(|window| TransportSegment::of(window, &mut counters, key.0, key.1))
        };
        let segment = segment.ok_or(TransportError::Unknown)?;
        self.transports.make_room(segment.bytes())?;
        let bytes = segment.write().map_err(|error| TransportError::Sample(error.into()))?;
        self.transports.keep(key, bytes)
    }
}

#[cfg(test)]
mod tests;
