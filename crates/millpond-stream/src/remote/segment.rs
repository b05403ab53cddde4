//! Segments of a title, read through the store.

use super::{origin::segment_path, title::RemoteTitle};
use bytes::Bytes;
use millpond_store::{At, Object, OriginError, Store};
use std::{ops::Range, sync::Arc};

/// Most bytes that the request which opens a segment asks for: more than any has.
const WHOLE: u64 = 256 << 20;
/// Bytes of a box header (ISO/IEC 14496-12 4.2).
const HEADER: u64 = 8;

/// A segment of a title in the store.
#[derive(Clone, Debug)]
pub struct TitleSegment {
    /// The fragments of all tracks.
    pub object: Arc<Object>,
}

impl RemoteTitle {
    /// Opens a segment, from 0. It is fetched from the server where the store has not got it.
    ///
    /// # Errors
    /// The title has no such segment, or the server failed.
    pub async fn segment(self: &Arc<Self>, store: &Store, number: u64) -> Result<TitleSegment, OriginError> {
        let (place, name) = self.place_and_name();
        let path = segment_path(name, self.version(), number)
            .filter(|_| number < self.segments())
            .ok_or_else(|| OriginError::NotFound { at: At::new(place, name) })?;
        Ok(TitleSegment { object: store.open_for(place, &path, 0..WHOLE).await? })
    }

    /// Reads all of a segment, from 0, which the store then keeps.
    ///
    /// # Errors
    /// As [`segment`](Self::segment).
    pub async fn media(self: &Arc<Self>, store: &Store, number: u64) -> Result<Bytes, OriginError> {
        let read = store.read_whole(&self.segment(store, number).await?.object).await;
        match read {
            // The store had its length, and not its bytes. Servers round times, so that it may be another version now.
            Err(error) if error.is_changed() => store.read_whole(&self.segment(store, number).await?.object).await,
            read => read,
        }
    }
}

impl TitleSegment {
    /// Returns the range of a track: its `moof` and `mdat`.
    ///
    /// # Errors
    /// The bytes can't be read.
    pub async fn track(&self, store: &Store, track: usize) -> Result<Range<u64>, OriginError> {
        let mut begin = 0;
        for place in 0.. {
            let end = self.after_box(store, self.after_box(store, begin).await?).await?;
            if place == track {
                return Ok(begin..end);
            }
            begin = end;
        }
        Ok(0..0)
    }

    /// Returns the offset behind the box at an offset.
    async fn after_box(&self, store: &Store, at: u64) -> Result<u64, OriginError> {
        let header = store.read_all(&self.object, at..at + HEADER).await?;
        let size = header.first_chunk::<4>().map_or(0, |size| u32::from_be_bytes(*size));
        // Segments have at most 64 MiB, so that no box has a long size.
        Ok(at + u64::from(size).max(HEADER))
    }
}
