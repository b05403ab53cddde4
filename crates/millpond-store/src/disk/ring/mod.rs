//! Ring files: the last hours of a live stream, on the disk.
//!
//! A [`Ring`] has a folder with `name` (the stream), `lock`, and pairs of files `index-000001` and `data-000001` and so on. A
//! data file holds payloads one after the other. It is preallocated with 64 MiB, or with an eighth of the limit in bytes if that
//! is less. Its index has a record of 128 bytes for each payload. Eviction removes whole pairs, the oldest first, so neither file
//! is ever rewritten. Bytes of an evicted file stay readable while it is open.
//!
//! A thread ([`RingWriter`]) writes for all rings. [`Ring::append`] never waits for the disk. A payload is lost while the
//! queue is full, and while a ring is off after an error of the disk. The record after a loss says so.
//!
//! The record follows its payload. A process that is killed loses the payload that it was writing, and the waiting payloads. A
//! loss of power can damage the last five seconds. [`Ring::open`] reads each index up to the first bad record, and compares the
//! checksum of the last payload of each file. It never continues a file.

mod error;
mod index;
mod limits;
mod queued;
mod record;
mod recovery;
mod ring_file;
mod shared;
mod sweep;
mod writer;
mod writing;

#[cfg(test)]
mod tests;

pub use error::RingError;
pub use index::found;
pub use limits::RingLimits;
pub use queued::{Outcome, Queued};
pub use record::{Found, RingKind, RingPlace, RingRecord};
pub use shared::RingStats;
pub use sweep::{SweepLimits, Swept, sweep};
pub use writer::RingWriter;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;

use crate::disk::chunk::Chunk;
use shared::Shared;
use writer::{Append, Job};
use writing::Writing;

/// Payloads of one stream on the disk, with their records.
///
/// All methods may be called on any thread. Only [`open`](Ring::open), [`read`](Ring::read) and [`flush`](Ring::flush)
/// touch the disk.
#[derive(Debug)]
pub struct Ring {
    shared: Arc<Shared>,
    writer: RingWriter,
    /// Number at the writer.
    number: u64,
}

impl Ring {
    /// Opens or creates the ring of a stream below `folder`, which holds the rings of all streams. Returns the records
    /// found, in the order in which they were written.
    ///
    /// # Errors
    ///
    /// Another process or ring uses the files, the limit in bytes is too small, or a system call fails.
    pub fn open(
        folder: &Path,
        name: &str,
        limits: RingLimits,
        writer: &RingWriter,
    ) -> Result<(Self, Vec<Found>), RingError> {
        let shared = Arc::new(Shared::open(folder, name, limits)?);
        let (files, found) = recovery::recover(&shared.folder)?;
        let number = writer.add(Writing::new(shared.clone(), files));
        Ok((Self { shared, writer: writer.clone(), number }, found))
    }

    /// Whether a ring of the stream lies below `folder`. It blocks the thread.
    pub fn is_kept(folder: &Path, name: &str) -> bool {
        shared::is_kept(folder, name)
    }

    /// Queues a payload for writing, in the pieces given. It never waits: a payload for which the queue has no room is lost.
    pub fn append(&self, record: RingRecord, payload: Arc<[Bytes]>) -> Queued {
        let queued = Queued::default();
        let append = Append { record, is_after_gap: self.shared.take_gap(), payload, queued: queued.clone() };
        if append.length() > self.shared.limits.file_length() || !self.writer.append(self.number, append) {
            self.shared.lose(&queued);
            self.shared.note_gap();
        }
        queued
    }

    /// Returns the bytes of a payload, for the kernel to send. They stay readable after their eviction while the chunk
    /// is held.
    ///
    /// # Errors
    ///
    /// The payload was evicted, or its file can't be opened.
    pub fn read(&self, place: RingPlace) -> Result<Chunk, RingError> {
        let file = self.shared.data(place.file)?;
        Ok(Chunk::File { file, range: place.range(), pin: None })
    }

    /// Whether a payload was not evicted. It asks no disk.
    pub fn holds(&self, place: RingPlace) -> bool {
        place.file >= self.shared.oldest.load(Relaxed)
    }

    /// Has the writer evict files over the limits. `now` is the time since the Unix epoch. To be called about once a
    /// minute; the limits in bytes also hold in between.
    pub fn evict(&self, now: Duration) {
        self.writer.send(Job::Evict(self.number, now));
    }

    /// Has the writer remove the oldest complete files, until they had `bytes` bytes.
    pub fn free(&self, bytes: u64) {
        self.writer.send(Job::Free(self.number, bytes));
    }

    /// Waits until all payloads queued so far are on the disk or lost. It blocks the thread: for the end of a process.
    pub fn flush(&self) {
        let (done, wait) = std::sync::mpsc::sync_channel(1);
        self.writer.send(Job::Flush(self.number, done));
        // An error says that the writer is gone, and nothing waits there any more.
        let _ = wait.recv();
    }

    /// Returns what operators see.
    pub fn stats(&self) -> RingStats {
        self.shared.stats()
    }
}

/// Payloads queued so far are still written.
impl Drop for Ring {
    fn drop(&mut self) {
        self.writer.send(Job::Close(self.number));
    }
}
