//! One ring, as the writer sees it: the file under way, and the complete ones.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::error::RingError;
use super::record::RingPlace;
use super::ring_file::{KeptFile, RingFile, remove};
use super::shared::Shared;
use super::writer::Append;

/// How long a ring is off after an error of the disk.
const REST: Duration = Duration::from_secs(30);
/// Least time between two warnings.
const WARN: Duration = Duration::from_secs(60);

/// Files of one ring. The thread that writes owns it.
#[derive(Debug)]
pub(super) struct Writing {
    shared: Arc<Shared>,
    /// Complete files, the oldest first.
    kept: VecDeque<KeptFile>,
    current: Option<RingFile>,
    /// Number of the next file.
    next: u32,
    /// End of the rest after an error.
    rests_until: Option<Instant>,
    warned: Option<Instant>,
    /// Whether a payload was lost since the last one that was written.
    has_gap: bool,
}

impl Writing {
    /// Continues behind files that are complete.
    pub(super) fn new(shared: Arc<Shared>, kept: Vec<KeptFile>) -> Self {
        let next = kept.last().map_or(1, |last| last.number + 1);
        let kept = VecDeque::from(kept);
        let writing = Self { shared, kept, current: None, next, rests_until: None, warned: None, has_gap: false };
        writing.count();
        writing
    }

    /// Writes a payload, unless the ring rests.
    pub(super) fn append(&mut self, append: &Append, now: Instant) {
        self.has_gap |= append.is_after_gap;
        if self.rests_until.is_some_and(|until| now < until) {
            self.has_gap = true;
            return self.shared.lose(&append.queued);
        }
        match self.try_append(append) {
            Ok(place) => {
                if self.rests_until.take().is_some() {
                    self.shared.recovered();
                }
                self.has_gap = false;
                self.shared.wrote();
                append.queued.settle(Some(place));
            }
            Err(error) => {
                self.has_gap = true;
                self.shared.lose(&append.queued);
                self.failed(&error, now);
            }
        }
    }

    fn try_append(&mut self, append: &Append) -> Result<RingPlace, RingError> {
        let is_full = |file: &RingFile| !file.has_room(append.length());
        if self.current.as_ref().is_some_and(is_full) {
            self.finish()?;
        }
        let has_gap = self.has_gap;
        let shared = self.shared.clone();
        let file = match &mut self.current {
            Some(file) => file,
            None => self.begin()?,
        };
        file.append(&shared.folder, append.record, has_gap, &append.payload)
    }

    /// Creates the next file, after older ones made room for it.
    fn begin(&mut self) -> Result<&mut RingFile, RingError> {
        let limits = self.shared.limits;
        let need = limits.file_length() + limits.index_length();
        self.make_room(need)?;
        let file = RingFile::create(&self.shared.folder, self.next, &limits)?;
        self.next += 1;
        self.shared.add(file.number(), file.data());
        let file = self.current.insert(file);
        self.shared.bytes.fetch_add(need, Relaxed);
        Ok(file)
    }

    /// Completes the file under way. Later files rely on it, so it is on the disk before them.
    fn finish(&mut self) -> Result<(), RingError> {
        let Some(mut file) = self.current.take() else { return Ok(()) };
        let synced = file.sync(&self.shared.folder);
        self.kept.push_back(file.finish());
        self.count();
        synced
    }

    /// Evicts until `need` more bytes are within the limits. Nothing is evicted for a file that finds no space anyway.
    fn make_room(&mut self, need: u64) -> Result<(), RingError> {
        let (folder, limits) = (&self.shared.folder, self.shared.limits);
        let space = rustix::fs::statvfs(folder).map_err(io::Error::from);
        let space = space.map_err(RingError::of(folder, "examining the file system"))?;
        let mut free = space.f_bavail.saturating_mul(space.f_frsize);
        let expected = limits.min_free.saturating_add(need);
        let evictable: u64 = self.kept.iter().map(|file| file.bytes).sum();
        if need > 0 && free.saturating_add(evictable) < expected {
            return Err(RingError::NoSpace { folder: folder.clone(), free, expected });
        }
        while self.bytes() + need > limits.bytes || free < expected {
            let Some(bytes) = self.remove_oldest()? else { break };
            // Bytes of a file that is being read get free later. They count now, so that no further file is evicted.
            free = free.saturating_add(bytes);
        }
        Ok(())
    }

    /// Evicts files over the limits. `now` is the time since the Unix epoch.
    pub(super) fn evict(&mut self, now: Duration) {
        let age = self.shared.limits.age;
        let is_old = |newest: Duration| newest.saturating_add(age) < now;
        let mut evict = || {
            if self.current.as_ref().is_some_and(|file| is_old(file.newest())) {
                self.finish()?;
            }
            while self.kept.front().is_some_and(|file| is_old(file.newest)) {
                self.remove_oldest()?;
            }
            self.make_room(0)
        };
        if let Err(error) = evict() {
            self.failed(&error, Instant::now());
        }
    }

    /// Removes the oldest complete files until they had `bytes` bytes.
    pub(super) fn free(&mut self, bytes: u64) {
        let mut freed = 0;
        while freed < bytes {
            match self.remove_oldest() {
                Ok(Some(bytes)) => freed += bytes,
                Ok(None) => return,
                Err(error) => return self.failed(&error, Instant::now()),
            }
        }
    }

    /// Removes the oldest complete file; returns its bytes.
    fn remove_oldest(&mut self) -> Result<Option<u64>, RingError> {
        let Some(oldest) = self.kept.front().copied() else { return Ok(None) };
        remove(&self.shared.folder, oldest.number)?;
        self.kept.pop_front();
        self.count();
        Ok(Some(oldest.bytes))
    }

    /// Waits until everything written is on the disk.
    pub(super) fn sync(&mut self, now: Instant) {
        let synced = self.current.as_mut().map_or(Ok(()), |file| file.sync(&self.shared.folder));
        if let Err(error) = synced {
            self.failed(&error, now);
        }
    }

    /// Turns the ring off for a while. The file under way may have a part of a record, so it ends.
    fn failed(&mut self, error: &RingError, now: Instant) {
        self.rests_until = Some(now + REST);
        self.shared.failed(error);
        if self.warned.is_none_or(|warned| now.saturating_duration_since(warned) >= WARN) {
            self.warned = Some(now);
            tracing::warn!(%error, "time shift of a stream is off for {} s", REST.as_secs());
        }
        self.end();
    }

    /// Ends the file under way, whatever is on the disk of it.
    fn end(&mut self) {
        if let Some(file) = self.current.take() {
            self.kept.push_back(file.finish());
            self.count();
        }
    }

    fn bytes(&self) -> u64 {
        let kept: u64 = self.kept.iter().map(|file| file.bytes).sum();
        kept + self.current.as_ref().map_or(0, RingFile::bytes)
    }

    fn count(&self) {
        self.shared.bytes.store(self.bytes(), Relaxed);
        let current = self.current.as_ref().map_or(self.next, RingFile::number);
        self.shared.oldest.store(self.kept.front().map_or(current, |file| file.number), Relaxed);
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.sync(Instant::now());
        self.end();
    }
}
