//! Errors of ring files.

use std::io;
use std::path::{Path, PathBuf};

/// A failure of a ring, with the file and the error of the system.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// Another process, or another ring of this one, uses the files.
    #[error("{folder}: another ring keeps its files there")]
    Locked {
        /// Folder of the ring.
        folder: PathBuf,
    },
    /// The folder belongs to a stream whose name has the same hash.
    #[error("{folder}: found files of {found:?}, expected files of {expected:?}")]
    Taken {
        /// Folder of the ring.
        folder: PathBuf,
        /// Name of the stream whose files are there.
        found: String,
        /// Name of this stream.
        expected: String,
    },
    /// The limit in bytes is too small.
    #[error("{bytes} bytes are too few for a ring: {least} hold a few parts")]
    TooSmall {
        /// Limit in bytes.
        bytes: u64,
        /// Smallest possible limit.
        least: u64,
    },
    /// The file system has too little free space, even after an eviction of all older files of the ring.
    #[error("{folder}: {free} bytes are free, expected {expected}")]
    NoSpace {
        /// Folder of the ring.
        folder: PathBuf,
        /// Free bytes.
        free: u64,
        /// Bytes that must be free for another file.
        expected: u64,
    },
    /// The payload was evicted.
    #[error("{file}: evicted")]
    Evicted {
        /// File that held the payload.
        file: PathBuf,
    },
    /// A file failed.
    #[error("{file}: {what}: {error}")]
    File {
        /// File or folder.
        file: PathBuf,
        /// Operation that failed.
        what: &'static str,
        /// Error of the system.
        error: io::Error,
    },
}

impl RingError {
    /// Returns a function that turns an error of the system into one of a file.
    pub(super) fn of(file: &Path, what: &'static str) -> impl FnOnce(io::Error) -> Self {
        let file = file.to_owned();
        move |error| Self::File { file, what, error }
    }
}
