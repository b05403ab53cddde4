//! The unit in which a body is sent.

use bytes::Bytes;
use millpond_store::Pin;
use std::{fs::File, ops::Range, sync::Arc};

/// A contiguous part of a body, ready to be sent.
#[derive(Debug)]
pub(crate) enum Chunk {
    /// Bytes that are shared with a cache.
    Bytes(Bytes),
    /// Bytes made for this response. The sender returns the buffer with [`super::Body::recycle`].
    Owned(Vec<u8>),
    /// A range of an open file, for `sendfile`.
    File {
        /// The file.
        file: Arc<File>,
        /// Offsets of its bytes.
        range: Range<u64>,
        /// Pin of a cached slice, held until its bytes are sent.
        pin: Option<Pin>,
    },
}

impl From<millpond_store::Chunk> for Chunk {
    fn from(chunk: millpond_store::Chunk) -> Self {
        match chunk {
            millpond_store::Chunk::Bytes(bytes) => Self::Bytes(bytes),
            millpond_store::Chunk::File { file, range, pin } => Self::File { file, range, pin },
        }
    }
}

impl Chunk {
    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Bytes(b) => b.len() as u64,
            Self::Owned(v) => v.len() as u64,
            Self::File { range, .. } => range.end - range.start,
        }
    }

    /// Returns at most `take` bytes after the first `skip`.
    pub(crate) fn cut(self, skip: u64, take: u64) -> Self {
        let len = self.len();
        let start = skip.min(len);
        let end = start.saturating_add(take).min(len);
        match self {
            Self::Bytes(b) => Self::Bytes(b.slice(start as usize..end as usize)),
            Self::Owned(mut v) => {
                v.truncate(end as usize);
                v.drain(..start as usize);
                Self::Owned(v)
            }
            Self::File { file, range, pin } => Self::File { file, range: range.start + start..range.start + end, pin },
        }
    }
}
