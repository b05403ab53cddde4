//! The bytes of frames, read through the store, and the memory that they take.

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use millpond_store::{Hold, Holds, Object, OriginError, Store};
use std::{error::Error, fmt, ops::Range, sync::Arc};

/// Does work that takes long, away from the threads that serve.
pub trait HeavyWork: fmt::Debug + Send + Sync + 'static {
    /// Runs a job. The job is cancelled where it waits and the future is dropped.
    ///
    /// # Errors
    /// Why the job was refused.
    fn run(&self, job: Box<dyn FnOnce() + Send>) -> BoxFuture<'_, Result<(), Box<dyn Error + Send + Sync>>>;
}

/// Reads media through the store.
#[derive(Clone, Debug)]
pub(crate) struct MediaReader {
    pub(crate) store: Store,
    /// Memory of frames that sessions use.
    pub(crate) holds: Holds,
    pub(crate) heavy: Arc<dyn HeavyWork>,
}

impl MediaReader {
    pub(crate) fn new(store: Store, heavy: Arc<dyn HeavyWork>) -> Self {
        let holds = Holds::of(store.memory(), "sessions");
        Self { store, holds, heavy }
    }

    /// Reads a range. Its hold lasts until all of the bytes are dropped. Slices of the cache are pinned only while they are read.
    pub(crate) async fn read(
        &self,
        object: &Arc<Object>,
        range: Range<u64>,
        hold: &Arc<Hold>,
    ) -> Result<Bytes, OriginError> {
        let bytes = read(&self.store, object, range).await?;
        Ok(held(bytes, hold))
    }
}

/// Returns bytes that keep a hold until all of them are dropped.
pub(crate) fn held(bytes: Bytes, hold: &Arc<Hold>) -> Bytes {
    Bytes::from_owner(Held { bytes, _hold: hold.clone() })
}

/// Bytes and the memory that is charged for them.
struct Held {
    bytes: Bytes,
    _hold: Arc<Hold>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a range. Bytes of a slice in memory are copied: a part of the slice would keep the whole of it there.
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
