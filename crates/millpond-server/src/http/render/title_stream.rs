//! A stored title of an RTSP server in one response.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use millpond_http::body::{BodyError, ChunkStream};
use millpond_store::Store;
use millpond_stream::remote::RemoteTitle;
use std::sync::Arc;

/// The segments of a title, as chunks of a body.
pub(crate) struct TitleStream {
    store: Store,
    title: Arc<RemoteTitle>,
    /// The init segment, before it is sent.
    init: Option<Bytes>,
    /// Number of the next segment, from 0.
    next: u64,
}

impl TitleStream {
    /// Sends an init segment, and then all segments of a title.
    pub(crate) fn new(store: Store, title: Arc<RemoteTitle>, init: Bytes) -> Self {
        Self { store, title, init: Some(init), next: 0 }
    }
}

impl ChunkStream for TitleStream {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, BodyError>> {
        Box::pin(async {
            if let Some(init) = self.init.take() {
                return Ok(Some(init));
            }
            if self.next >= self.title.segments() {
                return Ok(None);
            }
            let bytes = match self.title.media(&self.store, self.next).await {
                // The title was found to be shorter than its description says.
                Err(_) if self.next >= self.title.segments() => return Ok(None),
                bytes => bytes.map_err(BodyError::Origin)?,
            };
            self.next += 1;
            Ok(Some(bytes))
        })
    }
}
