//! Writing objects of buckets: whole, or in parts.

use bytes::Bytes;
use object_store::ObjectStoreExt;
use object_store::multipart::PartId;

use super::{CloudOrigin, shielded};
use crate::error::OriginError;
use crate::origin::cloud::error::Request;
use crate::origin::timed::first_byte;
use crate::origin::{ObjectMeta, Timeouts};
use crate::path::ObjectPath;

/// Factor on the time limits of a reply for a request that writes an object.
const WRITING: u32 = 6;

impl CloudOrigin {
    /// Writes an object, whole or not at all.
    pub(crate) async fn put(&self, path: &ObjectPath, bytes: Bytes) -> Result<(), OriginError> {
        let key = self.key(path)?;
        self.write(path, self.store.put(&key, bytes.into())).await.map(drop)
    }

    /// Removes an object. One that does not exist is no error.
    #[cfg(feature = "stripe")]
    pub(crate) async fn remove(&self, path: &ObjectPath) -> Result<(), OriginError> {
        let key = self.key(path)?;
        match self.write(path, self.store.delete(&key)).await {
            Err(OriginError::NotFound { .. }) => Ok(()),
            outcome => outcome,
        }
    }

    /// Returns what is known of an object; `None` where there is none.
    pub(crate) async fn look_up(&self, path: &ObjectPath) -> Result<Option<ObjectMeta>, OriginError> {
        match self.head_now(path, None).await {
            Err(OriginError::NotFound { .. }) => Ok(None),
            found => found.map(Some),
        }
    }

    /// Begins an object of parts. Returns the name of the upload.
    pub(crate) async fn begin_parts(&self, path: &ObjectPath) -> Result<String, OriginError> {
        let key = self.key(path)?;
        self.write(path, self.parts.create_multipart(&key)).await
    }

    /// Writes a part, by its number from 0 on. Returns its tag.
    pub(crate) async fn put_part(
        &self,
        path: &ObjectPath,
        upload: &str,
        number: usize,
        bytes: Bytes,
    ) -> Result<String, OriginError> {
        let (key, upload) = (self.key(path)?, upload.to_owned());
        let part = self.write(path, self.parts.put_part(&key, &upload, number, bytes.into())).await?;
        Ok(part.content_id)
    }

    /// Makes an object of its parts, by their tags.
    pub(crate) async fn finish_parts(
        &self,
        path: &ObjectPath,
        upload: &str,
        tags: &[String],
    ) -> Result<(), OriginError> {
        let (key, upload) = (self.key(path)?, upload.to_owned());
        let parts = tags.iter().map(|tag| PartId { content_id: tag.clone() }).collect();
        self.write(path, self.parts.complete_multipart(&key, &upload, parts)).await.map(drop)
    }

    /// Gives an upload of parts up, with the parts that were written.
    pub(crate) async fn abort_parts(&self, path: &ObjectPath, upload: &str) -> Result<(), OriginError> {
        let (key, upload) = (self.key(path)?, upload.to_owned());
        match self.write(path, self.parts.abort_multipart(&key, &upload)).await {
            Err(OriginError::NotFound { .. }) => Ok(()),
            outcome => outcome,
        }
    }

    async fn write<T>(
        &self,
        path: &ObjectPath,
        work: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, OriginError> {
        let at = self.at(path);
        let Timeouts { connect, first_byte: reply, stall } = self.timeouts;
        let request = Request { at: &at, bucket: &self.bucket, start: 0, expected: None, connect };
        let limit = reply.saturating_add(stall).saturating_mul(WRITING);
        let result = first_byte(shielded(work), &at, connect, limit).await?;
        result.map_err(|error| self.explained(request.error(error)))
    }
}
