//! Segments that are asked for again, in one piece.
//!
//! A segment gathered from a hundred places of a file, or rewritten to TS, costs several times the processor of one
//! that lies in one piece. What is asked for a second time is therefore put into a file without a name in the cache
//! folder (open(2), O_TMPFILE), from which the kernel sends it as it would any file; where that can't be, into a file
//! in memory (memfd_create(2)), and so it is with what an origin forbids to store. Each segment has a file of its own: pages that a slow client has not taken yet stay
//! valid when the segment is evicted, and nothing is left behind when the process ends.

use crate::{
    delivery::{Body, BodyError},
    library::Resource,
    work::Pool,
};
use millpond_store::{Cache, Memory};
use rustix::fs::{MemfdFlags, Mode, OFlags};
use std::{
    collections::HashSet,
    fs::File,
    io::Write as _,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

/// Smaller ones are not worth a file descriptor.
const SMALLEST: u64 = 32 << 10;
/// Larger ones would push out too many others.
const LARGEST: u64 = 16 << 20;
/// Memory a descriptor and its bookkeeping are counted as.
const OVERHEAD: u64 = 64 << 10;
/// How many segments asked for once are remembered.
const SEEN: u64 = 16_384;

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
    seen: Cache<Key, ()>,
    /// Being packed now: others are sent the long way meanwhile. A lock held for a look-up only.
    packing: Mutex<HashSet<Key>>,
    memory: Arc<Memory>,
    pool: Arc<Pool>,
    folder: PathBuf,
}

impl PackedSegments {
    pub(super) fn new(memory: &Arc<Memory>, pool: Arc<Pool>, folder: PathBuf) -> Self {
        Self {
            segments: Cache::of(memory, "segments"),
            seen: Cache::new(SEEN),
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

    /// Whether a segment is worth packing now: the second time that it is asked for.
    pub(super) fn wants(&self, key: &Key, body: &Body) -> bool {
        let fits = body.len().is_some_and(|len| (SMALLEST..=LARGEST.min(self.memory.budget() / 8)).contains(&len));
        if !fits || !body.is_laborious() {
            return false;
        }
        if self.seen.get(key).is_none() {
            self.seen.insert(key.clone(), (), 1);
            return false;
        }
        self.packing.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone())
    }

    /// Packs a segment that [`wants`](Self::wants) said yes to, and gives it in its new form. Only one that is `storable`
    /// may reach a disk.
    pub(super) async fn pack(&self, key: Key, body: Body, storable: bool) -> Result<Body, BodyError> {
        let packing = Packing { packed: self, key: &key };
        // Without room it is sent the long way.
        let Ok(_charge) = self.pool.charge(body.len().unwrap_or(LARGEST)).await else { return Ok(body) };
        let bytes = body.collect(LARGEST as usize).await?.unwrap_or_default();
        let len = bytes.len() as u64;
        let Ok(file) = unnamed(storable.then_some(&self.folder), &bytes) else { return Ok(Body::bytes(bytes)) };
        let file = Arc::new(file);
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

/// A file of its own that nobody else can open: in a folder, else in memory.
fn unnamed(folder: Option<&PathBuf>, bytes: &[u8]) -> std::io::Result<File> {
    let on_disk = |folder: &PathBuf| {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(bytes).map(|()| file)
    };
    if let Some(Ok(file)) = folder.map(on_disk) {
        return Ok(file);
    }
    let mut file = File::from(rustix::fs::memfd_create("segment", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes).map(|()| file)
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
        let packed = unnamed(None, b"secret").unwrap();
        assert_ne!(fstat(&packed).unwrap().st_dev, device);
        assert_eq!(packed.metadata().unwrap().len(), 6);
        let elsewhere = unnamed(Some(&folder.join("missing")), b"x").unwrap();
        assert_ne!(fstat(&elsewhere).unwrap().st_dev, device, "where the folder can't be used");
    }
}
