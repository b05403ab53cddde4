//! Segments that are requested repeatedly, packed into one file each.
//!
//! A segment gathered from a hundred places of a file, or rewritten to TS, costs several times the processor time of
//! one contiguous range. A segment requested again soon is therefore written into an unnamed file in the cache folder
//! (open(2), O_TMPFILE), from which the kernel sends it as it would any file. A file in memory (memfd_create(2)) takes
//! its place if the folder is unusable or the origin forbids storing. Each segment has a file of its own. So pages that
//! a slow client has not read yet stay valid after eviction, and no file outlives the process.

use super::recent::RecentSegments;
use crate::{library::Resource, work::WorkPool};
use millpond_http::body::{Body, BodyError};
use millpond_store::{Cache, Memory, ReadCounts};
use rustix::fs::{MemfdFlags, Mode, OFlags};
use std::{
    collections::HashSet,
    fs::File,
    io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write},
    os::unix::fs::FileExt as _,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

/// Shortest segment that is packed, in bytes: shorter ones are not worth a file descriptor.
const SMALLEST: u64 = 32 << 10;
/// Longest segment that is packed, in bytes: longer ones would evict too many others.
const LARGEST: u64 = 16 << 20;
/// Weight of a cache entry in addition to its bytes: descriptor and bookkeeping.
const OVERHEAD: u64 = 64 << 10;

type Key = (u64, Resource);

/// A packed segment.
#[derive(Clone)]
struct Packed {
    file: Arc<File>,
    len: u64,
}

/// Packed segments, within the memory budget.
pub(super) struct PackedSegments {
    segments: Cache<Key, Packed>,
    recent: RecentSegments,
    /// Segments being packed. Other requests for them are served from their plan meanwhile. The lock is held for
    /// look-ups only.
    packing: Mutex<HashSet<Key>>,
    memory: Arc<Memory>,
    pool: Arc<WorkPool>,
    folder: PathBuf,
}

impl PackedSegments {
    /// Creates an empty cache. Its files are in `folder`.
    pub(super) fn new(memory: &Arc<Memory>, pool: Arc<WorkPool>, folder: PathBuf) -> Self {
        Self {
            segments: Cache::of(memory, "segments"),
            recent: RecentSegments::new(),
            packing: Mutex::default(),
            memory: memory.clone(),
            pool,
            folder,
        }
    }

    /// Returns the body of a packed segment.
    pub(super) fn get(&self, key: &Key) -> Option<Body> {
        self.segments.get(key).map(|packed| {
            let counts = Arc::new(ReadCounts::default());
            counts.hit(packed.len);
            Body::file(packed.file, packed.len).with_counts(Some(counts))
        })
    }

    /// Tells whether a segment is worth packing now, and reserves that for the caller.
    ///
    /// A segment is packed if it is requested again while the cache would still hold it. Packing segments that don't
    /// fit together in memory would be in vain.
    pub(super) fn reserve(&self, key: &Key, body: &Body) -> bool {
        let fits = |len: &u64| (SMALLEST..=LARGEST.min(self.memory.budget() / 8)).contains(len);
        let Some(len) = body.len().filter(fits).filter(|_| body.is_laborious()) else { return false };
        let soon = self.recent.is_repeated(key, len, self.memory.budget());
        soon && self.packing.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone())
    }

    /// Packs a segment after [`reserve`](Self::reserve), and returns its new body. Only a `storable` segment may reach
    /// a disk.
    ///
    /// # Errors
    /// Those of reading the segment and of writing the file.
    pub(super) async fn pack(&self, key: Key, body: Body, storable: bool) -> Result<Body, BodyError> {
        let packing = Packing { packed: self, key: &key };
        // A pool without room leaves the segment as it is.
        let Ok(_charge) = self.pool.charge(body.len().unwrap_or(LARGEST)).await else { return Ok(body) };
        let counts = body.read_counts();
        let Ok(mut file) = Unnamed::create(storable.then_some(&self.folder)) else { return Ok(body) };
        body.write_to(&mut file).await?;
        let (file, len) = (Arc::new(file.file), file.len);
        self.segments.insert(key.clone(), Packed { file: file.clone(), len }, len + OVERHEAD);
        drop(packing);
        Ok(Body::file(file, len).with_counts(counts))
    }
}

/// The mark of a segment being packed. Dropping it removes the mark.
struct Packing<'a> {
    packed: &'a PackedSegments,
    key: &'a Key,
}

impl Drop for Packing<'_> {
    fn drop(&mut self) {
        self.packed.packing.lock().unwrap_or_else(PoisonError::into_inner).remove(self.key);
    }
}

/// A file without a name, in a folder or in memory.
struct Unnamed {
    file: File,
    len: u64,
    in_memory: bool,
}

impl Unnamed {
    /// Creates a file in `folder`, or in memory if there is none or it is unusable.
    fn create(folder: Option<&PathBuf>) -> std::io::Result<Self> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let on_disk = folder.and_then(|folder| rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR).ok());
        match on_disk {
            Some(file) => Ok(Self { file: file.into(), len: 0, in_memory: false }),
            None => Self::in_memory(),
        }
    }

    /// Creates a file in memory.
    fn in_memory() -> std::io::Result<Self> {
        let file = rustix::fs::memfd_create("segment", MemfdFlags::CLOEXEC)?;
        Ok(Self { file: file.into(), len: 0, in_memory: true })
    }

    /// Copies the file into memory, after the disk refused more bytes.
    fn move_to_memory(&mut self) -> std::io::Result<()> {
        let mut moved = Self::in_memory()?;
        self.file.seek(SeekFrom::Start(0))?;
        let copied = std::io::copy(&mut (&self.file).take(self.len), &mut moved.file)?;
        if copied < self.len {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        moved.len = copied;
        *self = moved;
        Ok(())
    }
}

impl Write for Unnamed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = match self.file.write_at(bytes, self.len) {
            Err(_) if !self.in_memory => {
                self.move_to_memory()?;
                self.file.write_at(bytes, self.len)?
            }
            written => written?,
        };
        self.len += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::fstat;

    #[test]
    fn unstorable_segments_stay_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        let device = std::os::unix::fs::MetadataExt::dev(&std::fs::metadata(dir.path()).unwrap());
        let folder = dir.path().to_owned();
        let write = |folder: Option<&PathBuf>| {
            let mut file = Unnamed::create(folder).unwrap();
            file.write_all(b"secret").unwrap();
            file.file
        };
        let packed = write(None);
        assert_ne!(fstat(&packed).unwrap().st_dev, device);
        assert_eq!(packed.metadata().unwrap().len(), 6);
        assert_eq!(fstat(write(Some(&folder))).unwrap().st_dev, device);
        let elsewhere = write(Some(&folder.join("missing")));
        assert_ne!(fstat(&elsewhere).unwrap().st_dev, device, "where the folder can't be used");
    }

    #[test]
    fn a_full_disk_loses_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("full");
        std::fs::write(&path, b"what is written ").unwrap();
        // A file opened for reading refuses bytes, as one on a full disk does.
        let mut file = Unnamed { file: File::open(&path).unwrap(), len: 16, in_memory: false };
        file.write_all(b"and what follows").unwrap();
        let mut read = String::new();
        file.file.seek(SeekFrom::Start(0)).unwrap();
        file.file.read_to_string(&mut read).unwrap();
        assert_eq!((read.as_str(), file.len), ("what is written and what follows", 32));
        assert!(file.in_memory);
    }
}
