//! Bodies whose chunks are made while they are sent, such as those of live streams.

use super::{BodyError, Chunk};
use bytes::Bytes;
use futures_util::future::BoxFuture;

/// Gives the chunks of a body one after another. Dropping it tells the source that nobody takes them any more.
pub trait ChunkStream: Send {
    /// Waits for the next chunk; `None` is the end. Dropping the future loses no bytes.
    ///
    /// # Errors
    /// A failure of the source. The response is broken off.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, BodyError>>;

    /// Is told that the client takes no bytes now.
    fn held_up(&mut self) {}
}

/// A stream of chunks as the content of a body.
pub(super) struct Stream(Option<Box<dyn ChunkStream>>);

impl Stream {
    pub(super) fn new(chunks: Box<dyn ChunkStream>) -> Self {
        Self(Some(chunks))
    }

    /// Returns one without chunks.
    pub(super) fn ended() -> Self {
        Self(None)
    }

    /// Tells the stream that the client takes no bytes now.
    pub(super) fn held_up(&mut self) {
        if let Some(chunks) = &mut self.0 {
            chunks.held_up();
        }
    }

    /// Returns the next chunk that has bytes. The stream is dropped at its end.
    pub(super) async fn next(&mut self) -> Result<Option<Chunk>, BodyError> {
        while let Some(chunks) = &mut self.0 {
            match chunks.next().await? {
                // The chunked coding ends with an empty chunk (RFC 9112 section 7.1).
                Some(bytes) if bytes.is_empty() => {}
                Some(bytes) => return Ok(Some(Chunk::Bytes(bytes))),
                None => self.0 = None,
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Body;
    use super::*;
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };
    use tokio::sync::mpsc::{Receiver, channel};

    /// Chunks of a queue; notes when it is dropped.
    struct Queue(Receiver<&'static str>, Arc<AtomicBool>);

    impl ChunkStream for Queue {
        fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, BodyError>> {
            Box::pin(async { Ok(self.0.recv().await.map(|text| Bytes::from_static(text.as_bytes()))) })
        }
    }

    impl Drop for Queue {
        fn drop(&mut self) {
            self.1.store(true, Ordering::Relaxed);
        }
    }

    fn text(chunk: Option<Chunk>) -> Option<String> {
        chunk.map(|chunk| match chunk {
            Chunk::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        })
    }

    #[tokio::test]
    async fn a_reply_begins_before_its_first_chunk_is_there_and_ends_with_the_stream() {
        let (sender, chunks) = channel(4);
        let dropped = Arc::new(AtomicBool::new(false));
        let mut body = Body::stream(Box::new(Queue(chunks, dropped.clone())));
        assert_eq!((body.len(), body.as_bytes(), body.is_laborious()), (None, None, false));
        body.begin().await.unwrap();
        assert!(futures_util::future::poll_immediate(body.next()).await.is_none());
        for part in ["one", "", "two"] {
            sender.send(part).await.unwrap();
        }
        assert_eq!(text(body.next().await.unwrap()).as_deref(), Some("one"));
        assert_eq!(text(body.next().await.unwrap()).as_deref(), Some("two"), "an empty chunk is no end");
        drop(sender);
        assert!(!dropped.load(Ordering::Relaxed));
        assert_eq!(text(body.next().await.unwrap()), None);
        assert!(dropped.load(Ordering::Relaxed), "the source is released at the end");
        assert_eq!(text(body.next().await.unwrap()), None);
    }

    #[tokio::test]
    async fn a_chunk_that_is_there_begins_the_reply() {
        let (sender, chunks) = channel(4);
        let dropped = Arc::new(AtomicBool::new(false));
        let mut body = Body::stream(Box::new(Queue(chunks, dropped.clone())));
        sender.send("one").await.unwrap();
        body.begin().await.unwrap();
        sender.send("two").await.unwrap();
        assert_eq!(text(body.next().await.unwrap()).as_deref(), Some("one"));
        assert_eq!(text(body.next().await.unwrap()).as_deref(), Some("two"));
        drop(body);
        assert!(dropped.load(Ordering::Relaxed));
    }
}
