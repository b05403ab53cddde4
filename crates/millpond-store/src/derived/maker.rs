//! Makes ranges of a derived object, a slice at a time.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;

use super::Derivation;
use crate::error::{At, OriginError};
use crate::origin::OriginBody;
use crate::reading::object::Object;
use crate::store::Store;

/// Largest part of a file that is read at once, in bytes. Parts of other sources are at most a slice.
const PART: u64 = 256 * 1024;

/// A source, and what is made of it.
#[derive(Debug)]
pub(super) struct Maker {
    store: Store,
    source: Arc<Object>,
    derivation: Arc<dyn Derivation>,
}

impl Maker {
    pub(super) fn new(store: Store, source: Arc<Object>, derivation: Arc<dyn Derivation>) -> Self {
        Self { store, source, derivation }
    }

    pub(super) fn describe(&self) -> String {
        format!("{} of {}/{}", self.derivation.name(), self.source.place(), self.source.path())
    }

    /// Returns the bytes of a range, a slice at a time. Each is made when the reader is ready for it.
    pub(super) fn make(self: Arc<Self>, at: At, range: Range<u64>) -> OriginBody {
        self.request(&range);
        Box::pin(stream::try_unfold(range, move |rest| self.clone().next_piece(at.clone(), rest)))
    }

    /// Requests the source of a range of several slices, at most of a run, so that the origin need not be asked for each slice.
    fn request(&self, range: &Range<u64>) {
        if self.piece(range) == *range {
            return;
        }
        let run = range.start..range.end.min(range.start.saturating_add(self.store.slices().run()));
        // A run that can't be made at once is requested slice by slice.
        if let Ok(needed) = self.derivation.needs(&run) {
            self.store.prefetch(&self.source, needed);
        }
    }

    /// Returns the beginning of a range, up to the end of its slice.
    fn piece(&self, range: &Range<u64>) -> Range<u64> {
        let slice = self.store.slice_size();
        let end = (range.start / slice).saturating_add(1).saturating_mul(slice);
        range.start..end.min(range.end)
    }

    /// Makes the next piece of a range. Returns it with the rest of the range; `None` at its end.
    async fn next_piece(
        self: Arc<Self>,
        at: At,
        range: Range<u64>,
    ) -> Result<Option<(Bytes, Range<u64>)>, OriginError> {
        if range.is_empty() {
            return Ok(None);
        }
        let piece = self.piece(&range);
        let rest = piece.end..range.end;
        let bytes = self.make_piece(&at, piece).await?;
        Ok(Some((bytes, rest)))
    }

    async fn make_piece(&self, at: &At, piece: Range<u64>) -> Result<Bytes, OriginError> {
        let damaged = |found: String| self.damaged(at, found);
        let needed = self.derivation.needs(&piece).map_err(damaged)?;
        let mut making = self.derivation.begin(&piece).map_err(damaged)?;
        let memory = making.memory();
        let room = self.store.slices().hold_for_making(memory).await;
        let _room = room.map_err(|most| self.too_large(at, &piece, memory, most))?;
        let mut source = self.store.read(&self.source, needed).in_parts(PART);
        while let Some(part) = source.next_bytes().await {
            let part = part?;
            let work = move || {
                making.supply(&part);
                making
            };
            making = tokio::task::spawn_blocking(work).await.map_err(|error| damaged(error.to_string()))?;
        }
        // Another program may have written into an open file meanwhile.
        self.source.check()?;
        let made = tokio::task::spawn_blocking(move || making.finish()).await;
        made.map_err(|error| damaged(error.to_string()))?.map_err(damaged)
    }

    fn damaged(&self, at: &At, found: String) -> OriginError {
        OriginError::BadReply { at: at.clone(), expected: self.derivation.name().to_owned(), found }
    }

    fn too_large(&self, at: &At, piece: &Range<u64>, memory: u64, most: u64) -> OriginError {
        let (name, Range { start, end }) = (self.derivation.name(), piece);
        let reason = format!(
            "bytes {start} to {end} of the {name} take {memory} bytes of memory, expected at most {most}: \
             half of the memory limit, which can be raised"
        );
        OriginError::Unplayable { at: at.clone(), reason }
    }
}
