//! Reads a range of a joined object, one part after the other.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::ranges::Part;
use crate::error::{At, OriginError};
use crate::reading::object::Object;
use crate::reading::reader::Reader;
use crate::store::Store;

/// Largest part of a file that is read at once, in bytes. Other parts are at most a slice.
const MOST: u64 = 256 * 1024;

/// The parts of a joined object, and the store that reads them.
#[derive(Debug)]
pub(super) struct Parts {
    store: Store,
    place: Arc<str>,
    description: String,
    /// Parts in order, without gaps.
    parts: Vec<Part>,
}

impl Parts {
    /// Creates the parts that `list` names.
    pub(super) fn new(store: Store, list: &Object, name: &str, parts: Vec<Part>) -> Self {
        let description = format!("{name} of {}/{}", list.place(), list.path());
        Self { store, place: list.source().name.clone(), description, parts }
    }

    /// Returns a description for logs and errors.
    pub(super) fn description(&self) -> &str {
        &self.description
    }

    /// Returns the place of the part that holds an offset.
    fn find(&self, offset: u64) -> usize {
        self.parts.partition_point(|part| part.at <= offset).saturating_sub(1)
    }

    /// Opens the source of a part, in the version of the part. A remote one that is known is not asked for again: its reads name
    /// the version.
    async fn open(&self, part: &Part) -> Result<Arc<Object>, OriginError> {
        if let Some(known) = self.known(part).filter(|known| known.file().is_none()) {
            return Ok(known);
        }
        let object = self.store.open(&self.place, &part.path).await?;
        let version = &object.meta().version;
        if *version != part.version {
            let (expected, found) = (part.version.clone(), Some(version.clone()));
            return Err(OriginError::Changed { at: object.source().at(object.path()), expected, found });
        }
        Ok(object)
    }

    /// Returns the source of a part, if it is known in the version of the part.
    fn known(&self, part: &Part) -> Option<Arc<Object>> {
        self.store.peek(&self.place, &part.path).filter(|known| known.meta().version == part.version)
    }

    /// Begins to read the first part of a range, and fetches the second one.
    async fn begin(&self, range: &Range<u64>) -> Result<(Arc<Object>, Reader), OriginError> {
        let place = self.find(range.start);
        let missing = || OriginError::OutOfRange {
            at: At::new(&self.description, ""),
            start: range.start,
            len: self.parts.last().map(Part::end),
        };
        let part = self.parts.get(place).filter(|part| range.start < part.end()).ok_or_else(missing)?;
        let object = self.open(part).await?;
        if object.meta().len < part.range.end {
            let (at, start, len) = (object.source().at(object.path()), part.range.start, Some(object.meta().len));
            return Err(OriginError::OutOfRange { at, start, len });
        }
        if let Some(next) = self.parts.get(place + 1).filter(|next| next.at < range.end)
            && let Some(known) = self.known(next)
        {
            self.store.prefetch(&known, within(next, range));
        }
        let reader = self.store.read(&object, within(part, range)).in_parts(MOST);
        Ok((object, reader))
    }
}

/// Returns the range of a part's source that lies in a range of the joined object.
fn within(part: &Part, range: &Range<u64>) -> Range<u64> {
    let offset = |at: u64| part.range.start.saturating_add(at.saturating_sub(part.at)).min(part.range.end);
    offset(range.start)..offset(range.end)
}

/// A position in a joined object.
pub(super) struct Cursor {
    parts: Arc<Parts>,
    rest: Range<u64>,
    /// The source of the part at the position, and its reader.
    current: Option<(Arc<Object>, Reader)>,
    /// Bytes at the position that were read already.
    left: Bytes,
}

impl Cursor {
    pub(super) fn new(parts: Arc<Parts>, range: Range<u64>) -> Self {
        Self { parts, rest: range, current: None, left: Bytes::new() }
    }

    /// Returns the next bytes, up to the end of their slice, with the position behind them; `None` at the end of the range.
    ///
    /// The receiver of a slice reserves room for it after its first bytes, and would hold that while slices of the sources need room.
    pub(super) async fn next(mut self) -> Result<Option<(Bytes, Self)>, OriginError> {
        let slice = self.parts.store.slice_size();
        let end = (self.rest.start / slice).saturating_add(1).saturating_mul(slice).min(self.rest.end);
        let mut gathered = BytesMut::new();
        while self.rest.start < end {
            if self.left.is_empty() {
                self.left = self.read().await?;
            }
            let wanted = usize::try_from(end - self.rest.start).unwrap_or(usize::MAX);
            let bytes = self.left.split_to(wanted.min(self.left.len()));
            self.rest.start += bytes.len() as u64;
            if gathered.is_empty() {
                if self.rest.start == end {
                    return Ok(Some((bytes, self)));
                }
                gathered.reserve(wanted);
            }
            gathered.extend_from_slice(&bytes);
        }
        Ok((!gathered.is_empty()).then(|| (gathered.freeze(), self)))
    }

    /// Returns bytes of the source at the position.
    async fn read(&mut self) -> Result<Bytes, OriginError> {
        loop {
            if let Some((object, mut reader)) = self.current.take()
                && let Some(bytes) = reader.next_bytes().await
            {
                let bytes = bytes?;
                // Another program may have written into an open file meanwhile.
                object.check()?;
                self.current = Some((object, reader));
                return Ok(bytes);
            }
            self.current = Some(self.parts.begin(&self.rest).await?);
        }
    }
}
