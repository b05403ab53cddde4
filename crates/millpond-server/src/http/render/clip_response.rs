//! A clip of a stream's past in one response of unknown length.

use super::Sent;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use millpond_http::body::{BodyError, ChunkStream};
use millpond_stream::live::{Clip, NoClip};
use std::collections::VecDeque;
use tokio::task::{JoinHandle, spawn_blocking};

/// Result of a reading thread: the clip, and its next chunks.
type Read = (Clip, Result<Option<Vec<Bytes>>, NoClip>);

/// A clip, as chunks of a body. A blocking thread reads the next piece when the client has taken the one before.
pub(crate) struct ClipResponse {
    /// The clip, while no thread reads it.
    clip: Option<Clip>,
    reading: Option<JoinHandle<Read>>,
    ready: VecDeque<Bytes>,
    sent: Sent,
}

impl ClipResponse {
    pub(crate) fn new(clip: Clip, sent: Sent) -> Self {
        Self { clip: Some(clip), reading: None, ready: VecDeque::new(), sent }
    }
}

impl ChunkStream for ClipResponse {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, BodyError>> {
        Box::pin(async {
            loop {
                if let Some(chunk) = self.ready.pop_front() {
                    self.sent.count(&chunk);
                    return Ok(Some(chunk));
                }
                if let Some(mut clip) = self.clip.take() {
                    self.reading = Some(spawn_blocking(move || {
                        let read = clip.read();
                        (clip, read)
                    }));
                }
                let Some(reading) = &mut self.reading else { return Ok(None) };
                let read = reading.await;
                self.reading = None;
                let (clip, read) = read.map_err(std::io::Error::other)?;
                let read = read.map_err(|error| BodyError::Past(error.to_string()))?;
                let Some(chunks) = read else { return Ok(None) };
                self.ready.extend(chunks);
                self.clip = Some(clip);
            }
        })
    }
}
