//! The part of a ring that callers and the writer use.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::FlockOperation;
use xxhash_rust::xxh3::xxh3_64;

use super::error::RingError;
use super::limits::RingLimits;
use super::queued::Queued;
use super::recovery::data_path;

/// Figures of a ring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RingStats {
    /// Bytes of all files, with those allocated for the file under way.
    pub bytes: u64,
    /// Payloads written since the ring was opened.
    pub written: u64,
    /// Payloads lost since the ring was opened.
    pub lost: u64,
    /// Errors of the disk since the ring was opened.
    pub errors: u64,
    /// Text of the last error, while the ring is off because of it.
    pub failure: Option<String>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) folder: PathBuf,
    pub(super) limits: RingLimits,
    /// Data files that are in use. A lock: callers and the writer look files up.
    open: Mutex<BTreeMap<u32, Weak<File>>>,
    /// Whether a payload was lost since the last one that was queued.
    has_gap: AtomicBool,
    pub(super) bytes: AtomicU64,
    /// Number of the oldest file that was not evicted.
    pub(super) oldest: AtomicU32,
    written: AtomicU64,
    lost: AtomicU64,
    errors: AtomicU64,
    /// A lock: the writer sets it, callers read it.
    failure: Mutex<Option<String>>,
    #[expect(dead_code, reason = "held while the folder is used")]
    lock: File,
}

impl Shared {
    /// Locks the folder of a stream, and makes it where it is missing.
    ///
    /// # Errors
    ///
    /// See [`super::Ring::open`].
    pub(super) fn open(parent: &Path, name: &str, limits: RingLimits) -> Result<Self, RingError> {
        limits.check()?;
        let folder = folder_of(parent, name);
        fs::create_dir_all(&folder).map_err(RingError::of(&folder, "making the folder"))?;
        let lock = lock(&folder)?;
        claim(&folder, name)?;
        Ok(Self {
            folder,
            limits,
            open: Mutex::default(),
            has_gap: AtomicBool::new(false),
            bytes: AtomicU64::new(0),
            oldest: AtomicU32::new(0),
            written: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            failure: Mutex::default(),
            lock,
        })
    }

    /// Returns a data file, open for reading.
    ///
    /// # Errors
    ///
    /// The file was evicted, or can't be opened.
    pub(super) fn data(&self, number: u32) -> Result<Arc<File>, RingError> {
        if let Some(file) = self.files().get(&number).and_then(Weak::upgrade) {
            return Ok(file);
        }
        let path = data_path(&self.folder, number);
        match File::open(&path) {
            Ok(file) => {
                let file = Arc::new(file);
                self.add(number, &file);
                Ok(file)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(RingError::Evicted { file: path }),
            Err(error) => Err(RingError::of(&path, "opening")(error)),
        }
    }

    /// Makes an open data file known to readers.
    pub(super) fn add(&self, number: u32, file: &Arc<File>) {
        let mut files = self.files();
        files.retain(|_, file| file.strong_count() > 0);
        files.insert(number, Arc::downgrade(file));
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<u32, Weak<File>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a payload was lost before the one that is being queued.
    pub(super) fn take_gap(&self) -> bool {
        self.has_gap.swap(false, Relaxed)
    }

    /// Records that a payload was not queued.
    pub(super) fn note_gap(&self) {
        self.has_gap.store(true, Relaxed);
    }

    pub(super) fn lose(&self, queued: &Queued) {
        self.lost.fetch_add(1, Relaxed);
        queued.settle(None);
    }

    pub(super) fn wrote(&self) {
        self.written.fetch_add(1, Relaxed);
    }

    pub(super) fn failed(&self, error: &RingError) {
        self.errors.fetch_add(1, Relaxed);
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
    }

    /// Records that the ring is on again.
    pub(super) fn recovered(&self) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn stats(&self) -> RingStats {
        RingStats {
            bytes: self.bytes.load(Relaxed),
            written: self.written.load(Relaxed),
            lost: self.lost.load(Relaxed),
            errors: self.errors.load(Relaxed),
            failure: self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

/// Folder of the ring of a stream.
pub(super) fn folder_of(parent: &Path, name: &str) -> PathBuf {
    parent.join(format!("{:016x}", xxh3_64(name.as_bytes())))
}

/// Whether the folder of a stream is there.
pub(super) fn is_kept(parent: &Path, name: &str) -> bool {
    fs::read(folder_of(parent, name).join("name")).is_ok_and(|found| found == name.as_bytes())
}

fn lock(folder: &Path) -> Result<File, RingError> {
    let path = folder.join("lock");
    let opened = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
    let file = opened.map_err(RingError::of(&path, "opening"))?;
    let locked = || RingError::Locked { folder: folder.to_owned() };
    // A sweep may have removed the file between the two calls.
    if try_lock(&file, &path)? && is_at(&file, &path) { Ok(file) } else { Err(locked()) }
}

/// Locks the folder of a ring that is not open. `None` where it is open, or has no lock.
///
/// # Errors
///
/// The disk's.
pub(super) fn lock_existing(folder: &Path) -> Result<Option<File>, RingError> {
    let path = folder.join("lock");
    let file = match OpenOptions::new().write(true).open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(RingError::of(&path, "opening"))?,
    };
    Ok((try_lock(&file, &path)? && is_at(&file, &path)).then_some(file))
}

/// Locks a file. Returns whether nobody else has the lock.
fn try_lock(file: &File, path: &Path) -> Result<bool, RingError> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(RingError::of(path, "locking")(error.into())),
    }
}

/// Whether a path still leads to an open file.
fn is_at(file: &File, path: &Path) -> bool {
    let inode = |of: fs::Metadata| (of.dev(), of.ino());
    file.metadata().map(inode).ok() == fs::metadata(path).map(inode).ok()
}

/// Writes the name of the stream, or compares it: publishers choose names, and can choose two with the same hash.
fn claim(folder: &Path, name: &str) -> Result<(), RingError> {
    let path = folder.join("name");
    match fs::read(&path) {
        Ok(found) if found == name.as_bytes() => Ok(()),
        // A process that was killed while it wrote the name leaves a part of it.
        Ok(found) if !name.as_bytes().starts_with(&found) => Err(RingError::Taken {
            folder: folder.to_owned(),
            found: String::from_utf8_lossy(&found).into_owned(),
            expected: name.to_owned(),
        }),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(RingError::of(&path, "reading")(error)),
        _ => fs::write(&path, name).map_err(RingError::of(&path, "writing")),
    }
}
