//! Why the slab files can't be used.

use std::io;
use std::path::{Path, PathBuf};

/// A failure of the disk cache, with the file and what the system said.
#[derive(Debug, thiserror::Error)]
pub enum SlabError {
    /// Another process uses the folder.
    #[error("{folder}: another process keeps its slices there")]
    Locked {
        /// The folder.
        folder: PathBuf,
    },
    /// The quota leaves no room for a slice.
    #[error("{folder}: {quota} bytes are too few: {least} hold one slice and what belongs to it")]
    TooSmall {
        /// The folder.
        folder: PathBuf,
        /// The quota in bytes.
        quota: u64,
        /// The least that would do.
        least: u64,
    },
    /// A file failed.
    #[error("{file}: {what} at byte {offset}: {error}")]
    File {
        /// The file.
        file: PathBuf,
        /// Operation that failed.
        what: &'static str,
        /// Where.
        offset: u64,
        /// Error of the system.
        error: io::Error,
    },
    /// The log of names has no room, though what is old in it was thrown out.
    #[error("{file}: the names of all objects take more than {most} bytes")]
    Names {
        /// The file.
        file: PathBuf,
        /// Its share of the quota.
        most: u64,
    },
}

impl SlabError {
    /// Makes an error of what the system said of a file.
    pub(crate) fn of(file: &Path, what: &'static str, offset: u64) -> impl FnOnce(io::Error) -> Self {
        let file = file.to_owned();
        move |error| Self::File { file, what, offset, error }
    }
}
