//! Options of a store.

use std::path::PathBuf;
use std::time::Duration;

use crate::disk::slab::SlabError;
use crate::policy::PolicyName;
use crate::schedule::Mode;
#[cfg(doc)]
use crate::store::Store;

/// Options of a [`Store`].
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Memory in bytes, for complete slices, for those being filled, and for the entries of others in
    /// [`Store::memory`]. At least four slices are used.
    pub memory: u64,
    /// Disk cache; `None` for none.
    pub disk: Option<DiskOptions>,
    /// The size of a slice, in bytes.
    pub slice: u32,
    /// Most bytes by which an origin request may be ahead of its readers.
    pub run: u64,
    /// Time for which metadata is trusted; by default 1 s for a disk, 10 s for others.
    pub freshness: Option<Duration>,
    /// When slices are fetched that viewers will need.
    pub prefetch: Mode,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            memory: 256 * 1024 * 1024,
            disk: None,
            slice: 512 * 1024,
            run: 16 * 1024 * 1024,
            freshness: None,
            prefetch: Mode::Active,
        }
    }
}

/// Options of the disk cache.
#[derive(Clone, Debug)]
pub struct DiskOptions {
    /// The folder. It is created if it is missing, and must contain nothing else.
    pub folder: PathBuf,
    /// Highest total size of its files, in bytes.
    pub quota: u64,
    /// The eviction policy.
    pub policy: PolicyName,
}

/// Why a [`Store`] cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk cache cannot be opened.
    #[error("{0}")]
    Disk(#[from] SlabError),
}
