//! One reader over pieces of a remote object that lie near each other.

use millpond_store::{Chunk, Object, OriginError, ReadCounts, Reader, Store};
use std::{ops::Range, sync::Arc};

/// A reader and its position.
pub(super) struct RemoteRun {
    object: Arc<Object>,
    reader: Reader,
    /// Offset of the next byte.
    at: u64,
    end: u64,
    /// Bytes from `at` on that the reader gave and no piece has used.
    unused: Option<Chunk>,
}

impl RemoteRun {
    /// Starts to read `range` of an object. Its bytes are counted.
    pub(super) fn new(store: &Store, object: Arc<Object>, range: Range<u64>, counts: Option<Arc<ReadCounts>>) -> Self {
        let reader = store.read(&object, range.clone()).trimmed().counted(counts);
        Self { object, reader, at: range.start, end: range.end, unused: None }
    }

    /// Tells whether the run will reach `offset` of an object.
    pub(super) fn covers(&self, object: &Arc<Object>, offset: u64) -> bool {
        Arc::ptr_eq(&self.object, object) && self.at <= offset && offset < self.end
    }

    /// Returns the chunk at `start`, and drops the bytes before. `None` stands for the end of the object.
    pub(super) async fn chunk_at(&mut self, start: u64) -> Result<Option<Chunk>, OriginError> {
        loop {
            let mut chunk = match self.unused.take() {
                Some(chunk) => chunk,
                None => match self.reader.next().await {
                    Some(chunk) => chunk?,
                    None => return Ok(None),
                },
            };
            let dropped = chunk.split_to(start - self.at);
            self.at += dropped.len();
            if !chunk.is_empty() {
                return Ok(Some(chunk));
            }
        }
    }

    /// Advances over `taken` bytes of the last chunk. `rest` are those behind them.
    pub(super) fn took(&mut self, taken: u64, rest: Chunk) {
        self.at += taken;
        if !rest.is_empty() {
            self.unused = Some(rest);
        }
    }
}
