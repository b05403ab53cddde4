//! Errors of reply bodies.

use millpond_package::PackageError;
use millpond_store::OriginError;

/// The error that ends a body early.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// A failure of the origin or the cache.
    #[error("{0}")]
    Origin(#[from] OriginError),
    /// A sample that contradicts the index.
    #[error("{0}")]
    Package(#[from] PackageError),
    /// An object with fewer bytes than its length promises.
    #[error("{path} ended at byte {offset} while more was expected")]
    Short {
        /// Path of the object.
        path: String,
        /// Offset of its end.
        offset: u64,
    },
    /// A plan that names an object which the asset doesn't have.
    #[error("the plan reads object {object}, which the asset doesn't have")]
    NoObject {
        /// Number of the object in the asset's list.
        object: u16,
    },
    /// A live segment that did not reach its end: its stream stopped, or the segment was evicted before it was sent.
    #[error("segment {segment} of a live stream ends early, before part {part}")]
    Cut {
        /// Number of the segment.
        segment: u64,
        /// Index of the first missing part.
        part: usize,
    },
    /// A clip of a stream's past that could not be read to its end.
    #[error("a clip ends early: {0}")]
    Past(String),
    /// A node of the cluster that broke off a reply which this one passes on.
    #[error("{0}")]
    Node(String),
    /// A segment that could not be written to a file.
    #[error("packing a segment: {0}")]
    Pack(#[from] std::io::Error),
    /// A file range that could not be read, and has no other source.
    #[error("reading a file at byte {offset}: {error}")]
    File {
        /// Offset of the first missing byte.
        offset: u64,
        /// The system's error.
        error: std::io::Error,
    },
}

impl BodyError {
    /// Creates the error of a file that ends at `offset`, inside a range.
    pub(crate) fn end_of_file(offset: u64) -> Self {
        Self::File { offset, error: std::io::ErrorKind::UnexpectedEof.into() }
    }

    /// Tells whether a file ended before its range did.
    pub(super) fn is_end_of_file(&self) -> bool {
        matches!(self, Self::File { error, .. } if error.kind() == std::io::ErrorKind::UnexpectedEof)
    }
}
