//! Errors of the slab files.

use std::io;
use std::path::{Path, PathBuf};

/// A failure of the disk cache, with the file and the error of the system.
#[derive(Debug, thiserror::Error)]
pub enum SlabError {
    /// Another process uses the folder.
    #[error("{}: another server keeps its slices there; give each server a folder of its own (cache)", folder.display())]
    Locked {
        /// The folder.
        folder: PathBuf,
    },
    /// The quota is smaller than one slice.
    #[error("{}: {quota} bytes are too few: one slice and its records need {least}: raise cache-size", folder.display())]
    TooSmall {
        /// The folder.
        folder: PathBuf,
        /// The quota in bytes.
        quota: u64,
        /// The smallest possible quota.
        least: u64,
    },
    /// A file failed.
    #[error("{file}: {what} at byte {offset}: {error}")]
    File {
        /// The file.
        file: PathBuf,
        /// Operation that failed.
        what: &'static str,
        /// Offset in the file.
        offset: u64,
        /// Error of the system.
        error: io::Error,
    },
    /// The log of names is full, also after its old entries were removed.
    #[error("{file}: the names of all objects take more than {most} bytes")]
    Names {
        /// The file.
        file: PathBuf,
        /// Its share of the quota.
        most: u64,
    },
}

impl SlabError {
    /// Returns a function that turns an error of the system into one of a file.
    pub(crate) fn of(file: &Path, what: &'static str, offset: u64) -> impl FnOnce(io::Error) -> Self {
        let file = file.to_owned();
        move |error| Self::File { file, what, offset, error }
    }
}
