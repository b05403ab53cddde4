//! Segments that are asked for again, in one piece.
//!
//! A segment gathered from a hundred places of a file, or rewritten to TS, costs several times the processor of one
//! that lies in one piece. What is soon asked for a second time is therefore put into a file without a name in the cache
//! folder (open(2), O_TMPFILE), from which the kernel sends it as it would any file; where that can't be, into a file
//! in memory (memfd_create(2)), and so it is with what an origin forbids to store. Each segment has a file of its own: pages that a slow client has not taken yet stay
//! valid when the segment is evicted, and nothing is left behind when the process ends.

use super::recent::Recent;
use crate::{
    delivery::{Body, BodyError},
    library::Resource,
    work::WorkPool,
};
use millpond_store::{Cache, Memory};
use rustix::fs::{MemfdFlags, Mode, OFlags};
use std::{
    collections::HashSet,
    fs::File,
    io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write},
    os::unix::fs::FileExt as _,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

/// Smaller ones are not worth a file descriptor.
const SMALLEST: u64 = 32 << 10;
/// Larger ones would push out too many others.
const LARGEST: u64 = 16 << 20;
/// Memory a descriptor and its bookkeeping are counted as.
const OVERHEAD: u64 = 64 << 10;

type Key = (u64, Resource);

/// A segment in memory.
#[derive(Clone)]
struct Packed {
    file: Arc<File>,
    len: u64,
}

/// Segments in memory under a budget.
pub(super) struct PackedSegments {
    segments: Cache<Key, Packed>,
    recent: Recent,
    /// Being packed now: others are sent the long way meanwhile. A lock held for a look-up only.
    packing: Mutex<HashSet<Key>>,
    memory: Arc<Memory>,
    pool: Arc<WorkPool>,
    folder: PathBuf,
}

impl PackedSegments {
    pub(super) fn new(memory: &Arc<Memory>, pool: Arc<WorkPool>, folder: PathBuf) -> Self {
        Self {
            segments: Cache::of(memory, "segments"),
            recent: Recent::new(),
            packing: Mutex::default(),
            memory: memory.clone(),
            pool,
            folder,
        }
    }

    /// The segment, where it is packed.
    pub(super) fn get(&self, key: &Key) -> Option<Body> {
        self.segments.get(key).map(|packed| Body::file(packed.file, packed.len))
    }

    /// Whether a segment is worth packing now: when it is asked for again, and so soon that it would have been in memory
    /// still. Where more is asked for in turn than fits, packing would be in vain.
    pub(super) fn wants(&self, key: &Key, body: &Body) -> bool {
        let fits = |len: &u64| (SMALLEST..=LARGEST.min(self.memory.budget() / 8)).contains(len);
        let Some(len) = body.len().filter(fits).filter(|_| body.is_laborious()) else { return false };
        let soon = self.recent.again(key, len, self.memory.budget());
        soon && self.packing.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone())
    }

    /// Packs a segment that [`wants`](Self::wants) said yes to, and gives it in its new form. Only one that is `storable`
    /// may reach a disk.
    pub(super) async fn pack(&self, key: Key, body: Body, storable: bool) -> Result<Body, BodyError> {
        let packing = Packing { packed: self, key: &key };
        // Without room it is sent the long way.
        let Ok(_charge) = self.pool.charge(body.len().unwrap_or(LARGEST)).await else { return Ok(body) };
        let Ok(mut file) = Unnamed::create(storable.then_some(&self.folder)) else { return Ok(body) };
        body.write_to(&mut file).await?;
        let (file, len) = (Arc::new(file.file), file.len);
        self.segments.insert(key.clone(), Packed { file: file.clone(), len }, len + OVERHEAD);
        drop(packing);
        Ok(Body::file(file, len))
    }
}

/// Takes the key out of the set however the packing ends.
struct Packing<'a> {
    packed: &'a PackedSegments,
    key: &'a Key,
}

impl Drop for Packing<'_> {
    fn drop(&mut self) {
        self.packed.packing.lock().unwrap_or_else(PoisonError::into_inner).remove(self.key);
    }
}

/// A file of its own that nobody else can open: in a folder, else in memory. What is made for it is written into its pages
/// at once, and sent from there.
struct Unnamed {
    file: File,
    len: u64,
    in_memory: bool,
}

impl Unnamed {
    fn create(folder: Option<&PathBuf>) -> std::io::Result<Self> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let on_disk = folder.and_then(|folder| rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR).ok());
        match on_disk {
            Some(file) => Ok(Self { file: file.into(), len: 0, in_memory: false }),
            None => Self::in_memory(),
        }
    }

    fn in_memory() -> std::io::Result<Self> {
        let file = rustix::fs::memfd_create("segment", MemfdFlags::CLOEXEC)?;
        Ok(Self { file: file.into(), len: 0, in_memory: true })
    }

    /// Goes on in memory, where the disk takes no more.
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
    fn what_may_not_be_stored_stays_in_memory() {
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
        // A file that is open for reading takes no bytes, as one on a full disk doesn't.
        let mut file = Unnamed { file: File::open(&path).unwrap(), len: 16, in_memory: false };
        file.write_all(b"and what follows").unwrap();
        let mut read = String::new();
        file.file.seek(SeekFrom::Start(0)).unwrap();
        file.file.read_to_string(&mut read).unwrap();
        assert_eq!((read.as_str(), file.len), ("what is written and what follows", 32));
        assert!(file.in_memory);
    }
}
