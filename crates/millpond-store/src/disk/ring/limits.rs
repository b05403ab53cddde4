//! Limits of a ring.

use std::time::Duration;

use super::error::RingError;

/// Most bytes of a data file.
const MOST: u64 = 64 << 20;
/// Least bytes of a ring.
const LEAST: u64 = 1 << 20;
/// Number of data files in the limit in bytes, where they are shorter than [`MOST`]: eviction removes whole files.
const FILES: u64 = 8;
/// An index has at most this part of the length of its data file.
const INDEX_SHARE: u64 = 4;

/// Limits of a ring. Whole files are evicted, the oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingLimits {
    /// Age of payloads, by the wall time of their records.
    pub age: Duration,
    /// Bytes of all files, at least 1 MiB. A payload may have an eighth of it, and at most 32 MiB.
    pub bytes: u64,
    /// Bytes of the file system that stay free.
    pub min_free: u64,
}

impl RingLimits {
    /// # Errors
    ///
    /// The limit in bytes is too small.
    pub(super) fn check(&self) -> Result<(), RingError> {
        let (bytes, least) = (self.bytes, LEAST);
        if bytes < least { Err(RingError::TooSmall { bytes, least }) } else { Ok(()) }
    }

    /// Length of a data file in bytes.
    pub(super) fn file_length(&self) -> u64 {
        (self.bytes / FILES).min(MOST)
    }

    /// Most bytes of an index.
    pub(super) fn index_length(&self) -> u64 {
        self.file_length() / INDEX_SHARE
    }
}

/// Most bytes of an index that any limits allow.
pub(super) const MOST_INDEX: u64 = MOST / INDEX_SHARE;
