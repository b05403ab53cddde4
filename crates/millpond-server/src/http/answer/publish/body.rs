//! The body of a request that pushes a stream.

use super::{
    super::Front,
    error::PublishError,
    upload::{self, UploadFormat},
};
use bytes::{Bytes, BytesMut};
use millpond_http::wire::Upload;
use millpond_stream::{Conflict, Publication};
use std::time::Duration;

/// The body of a request that pushes a stream.
pub(super) struct PublishedBody<'a, U> {
    /// The bytes.
    pub(super) upload: &'a mut U,
    /// Longest silence of the publisher.
    pub(super) patience: Duration,
    /// Front end that takes the stream.
    pub(super) front: &'a Front,
    /// Rule for a stream that has a publisher already.
    pub(super) conflict: Conflict,
}

impl<U: Upload> PublishedBody<'_, U> {
    /// Waits for the next bytes; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, PublishError> {
        let mut stop = self.front.lasting.stop.subscribe();
        tokio::select! {
            next = tokio::time::timeout(self.patience, self.upload.next()) => match next {
                Ok(next) => Ok(next?),
                Err(_) => Err(PublishError::Stalled(self.patience)),
            },
            _ = stop.wait_for(|stop| *stop) => Err(PublishError::Stopped),
        }
    }

    /// Reads until the format is known.
    pub(super) async fn begin(&mut self) -> Result<(UploadFormat, Bytes), PublishError> {
        let mut first = BytesMut::new();
        loop {
            let next = self.next().await?;
            first.extend_from_slice(next.as_deref().unwrap_or_default());
            if let Some(format) = upload::format(&first, next.is_none()).map_err(PublishError::Format)? {
                return Ok((format, first.freeze()));
            }
        }
    }

    /// Gives all bytes to a publication.
    pub(super) async fn pass(
        &mut self,
        publication: &Publication,
        channel: u8,
        first: Bytes,
    ) -> Result<(), PublishError> {
        let mut piece = Some(first);
        while let Some(bytes) = piece {
            publication.push(channel, bytes).await?;
            piece = self.next().await?;
        }
        Ok(publication.taken().await?)
    }
}
