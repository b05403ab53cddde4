//! Parts of an object as a reader returns them.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::disk::disk_tier::Pin;

/// A part of the requested range, in order.
#[derive(Clone, Debug)]
pub enum Chunk {
    /// Bytes in memory. They keep the slice they are part of alive, so hold few of them.
    Bytes(Bytes),
    /// Bytes of a file, for the kernel to send.
    File {
        /// The open file.
        file: Arc<File>,
        /// The range of its bytes.
        range: Range<u64>,
        /// Keeps those bytes unchanged, where the file is the cache's. Hold it until they are sent or read.
        pin: Option<Pin>,
    },
}

impl Chunk {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { range, .. } => range.end.saturating_sub(range.start),
        }
    }

    /// Splits off the first `count` bytes, at most all.
    #[must_use]
    pub fn split_to(&mut self, count: u64) -> Self {
        let count = count.min(self.len());
        match self {
            Self::Bytes(bytes) => Self::Bytes(bytes.split_to(count as usize)),
            Self::File { file, range, pin } => {
                let first = range.start..range.start + count;
                range.start = first.end;
                Self::File { file: file.clone(), range: first, pin: pin.clone() }
            }
        }
    }

    /// Returns whether it has no bytes. A reader returns no such chunk.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
