//! The bytes of frames, as sessions read them from the store, and the room that they take in memory.

use crate::work::WorkPool;
use bytes::{Bytes, BytesMut};
use millpond_store::{Hold, Holds, Object, OriginError, Store};
use std::{ops::Range, sync::Arc};

/// What frames are read from.
#[derive(Clone, Debug)]
pub(super) struct Media {
    pub(super) store: Store,
    /// Of what sessions have in use.
    pub(super) holds: Holds,
    /// Where heavy work is done.
    pub(super) pool: Arc<WorkPool>,
}

impl Media {
    pub(super) fn new(store: Store, pool: Arc<WorkPool>) -> Self {
        let holds = Holds::of(store.memory(), "sessions");
        Self { store, holds, pool }
    }

    /// Reads a range into memory, under a hold that lasts until nobody has any of it; slices of the cache are pinned only as long
    /// as that takes.
    pub(super) async fn read(
        &self,
        object: &Arc<Object>,
        range: Range<u64>,
        hold: &Arc<Hold>,
    ) -> Result<Bytes, OriginError> {
        let bytes = read(&self.store, object, range).await?;
        Ok(Bytes::from_owner(Kept { bytes, _hold: hold.clone() }))
    }
}

/// Bytes and their room.
struct Kept {
    bytes: Bytes,
    _hold: Arc<Hold>,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a range. What lies in memory already is copied: a part of a slice would keep the whole of it there.
async fn read(store: &Store, object: &Arc<Object>, range: Range<u64>) -> Result<Bytes, OriginError> {
    let length = (range.end - range.start) as usize;
    let mut reader = store.read(object, range);
    let mut whole = BytesMut::new();
    while let Some(bytes) = reader.next_bytes().await {
        let bytes = bytes?;
        if bytes.len() == length && bytes.is_unique() {
            return Ok(bytes);
        }
        whole.reserve(length - whole.len());
        whole.extend_from_slice(&bytes);
    }
    Ok(whole.freeze())
}
