//! A pair of files that is being written: an index and its payloads.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustix::fs::FallocateFlags;

use super::error::RingError;
use super::limits::RingLimits;
use super::record::{Entry, Found, RingPlace, RingRecord, SIZE};
use super::recovery::{data_path, index_path};
use crate::disk::slab::fill;

/// A pair that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeptFile {
    pub(super) number: u32,
    /// Bytes of both files.
    pub(super) bytes: u64,
    /// Wall time of the end of its newest payload.
    pub(super) newest: Duration,
}

impl KeptFile {
    /// Wall time of the end of a payload.
    pub(super) fn time(entry: &Entry) -> Duration {
        entry.found.record.wall.saturating_add(entry.found.record.duration)
    }
}

/// The pair that payloads are appended to.
#[derive(Debug)]
pub(super) struct RingFile {
    number: u32,
    data: Arc<File>,
    index: File,
    /// Lengths that the files may have.
    most: (u64, u64),
    /// Bytes written to the files.
    written: (u64, u64),
    newest: Duration,
    is_dirty: bool,
}

impl RingFile {
    /// Creates the pair `number`, and allocates its payloads.
    ///
    /// # Errors
    ///
    /// The files can't be created, or the disk is full. Then neither is there.
    pub(super) fn create(folder: &Path, number: u32, limits: &RingLimits) -> Result<Self, RingError> {
        Self::try_create(folder, number, limits).inspect_err(|_| {
            // The error that there was says more.
            let _ = remove(folder, number);
        })
    }

    fn try_create(folder: &Path, number: u32, limits: &RingLimits) -> Result<Self, RingError> {
        let create = |path: &Path| {
            let opened = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path);
            opened.map_err(RingError::of(path, "creating"))
        };
        let path = data_path(folder, number);
        let (data, index) = (create(&path)?, create(&index_path(folder, number))?);
        let most = (limits.file_length(), limits.index_length());
        match rustix::fs::fallocate(&data, FallocateFlags::empty(), 0, most.0).map_err(io::Error::from) {
            // Not every file system supports it. There, blocks are allocated by writes.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => data.set_len(most.0),
            allocated => allocated,
        }
        .map_err(RingError::of(&path, "allocating"))?;
        let data = Arc::new(data);
        Ok(Self { number, data, index, most, written: (0, 0), newest: Duration::ZERO, is_dirty: false })
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn data(&self) -> &Arc<File> {
        &self.data
    }

    /// Bytes that both files may take.
    pub(super) fn bytes(&self) -> u64 {
        self.most.0 + self.most.1
    }

    /// Wall time of the end of the newest payload.
    pub(super) fn newest(&self) -> Duration {
        self.newest
    }

    /// Whether a payload of `length` bytes fits.
    pub(super) fn has_room(&self, length: u64) -> bool {
        self.written.0 + length <= self.most.0 && self.written.1 + SIZE as u64 <= self.most.1
    }

    /// Writes a payload, then its record.
    ///
    /// # Errors
    ///
    /// The disk failed. The index ends before the record, or with a bad one.
    pub(super) fn append(
        &mut self,
        folder: &Path,
        record: RingRecord,
        is_after_gap: bool,
        payload: &[Bytes],
    ) -> Result<RingPlace, RingError> {
        let offset = self.written.0;
        self.is_dirty = true;
        let pieces = payload.iter().filter(|piece| !piece.is_empty());
        let filled = fill(&self.data, offset, self.most.0 - offset, pieces);
        let (length, sum) = filled.map_err(RingError::of(&data_path(folder, self.number), "writing"))?;
        let place = RingPlace { file: self.number, offset, length };
        let entry = Entry { found: Found { record, is_after_gap, place }, sum };
        let written = self.index.write_all_at(&entry.encode(), self.written.1);
        written.map_err(RingError::of(&index_path(folder, self.number), "writing"))?;
        self.written = (place.end(), self.written.1 + SIZE as u64);
        self.newest = self.newest.max(KeptFile::time(&entry));
        Ok(place)
    }

    /// Waits until everything written is on the disk.
    ///
    /// # Errors
    ///
    /// The disk failed.
    pub(super) fn sync(&mut self, folder: &Path) -> Result<(), RingError> {
        if std::mem::take(&mut self.is_dirty) {
            self.data.sync_data().map_err(RingError::of(&data_path(folder, self.number), "syncing"))?;
            self.index.sync_data().map_err(RingError::of(&index_path(folder, self.number), "syncing"))?;
        }
        Ok(())
    }

    /// Gives back the blocks behind the last payload.
    pub(super) fn finish(self) -> KeptFile {
        let (data, index) = self.written;
        // Where that fails, they stay allocated until the eviction.
        let data = if self.data.set_len(data).is_ok() { data } else { self.most.0 };
        KeptFile { number: self.number, bytes: data + index, newest: self.newest }
    }
}

/// Removes a pair.
///
/// # Errors
///
/// One of the files is still there.
pub(super) fn remove(folder: &Path, number: u32) -> Result<(), RingError> {
    // Data without an index are of no use, so what remains of a pair is removed when the ring is opened.
    for path in [index_path(folder, number), data_path(folder, number)] {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(RingError::of(&path, "removing")(error));
            }
            _ => {}
        }
    }
    Ok(())
}
