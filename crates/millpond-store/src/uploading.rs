//! Objects that are written to a bucket, in parts that can be resumed.

use bytes::Bytes;

use crate::error::OriginError;
use crate::location::OriginLocation;
use crate::origin::RemoteOptions;
use crate::origin::bare::LocationError;
use crate::origin::cloud::CloudOrigin;
use crate::path::ObjectPath;

/// Writes objects below the prefix of a bucket.
///
/// No request is repeated: the caller decides when it tries again. An object of parts exists once [`finish`](Self::finish) has returned. Its
/// parts stay in the bucket until then, or until [`abort`](Self::abort).
#[derive(Clone, Debug)]
pub struct BucketWriter {
    origin: CloudOrigin,
}

impl BucketWriter {
    /// Makes the writer of a bucket.
    ///
    /// # Errors
    /// The location is no bucket, or no client can be made of the options.
    pub fn new(location: &OriginLocation, options: &RemoteOptions) -> Result<Self, LocationError> {
        let client = |detail: String| LocationError::Client { location: location.to_string(), detail };
        let OriginLocation::Bucket(bucket) = location else {
            return Err(client("objects can be written to buckets only".to_owned()));
        };
        Ok(Self { origin: CloudOrigin::new(bucket, options).map_err(client)? })
    }

    /// Returns the length of an object; `None` where there is none.
    ///
    /// # Errors
    /// The bucket can't be asked.
    pub async fn length(&self, path: &ObjectPath) -> Result<Option<u64>, OriginError> {
        Ok(self.origin.look_up(path).await?.map(|meta| meta.len))
    }

    /// Writes an object, whole or not at all. Replaces one of its name.
    ///
    /// # Errors
    /// The bucket does not take it.
    pub async fn put(&self, path: &ObjectPath, bytes: Bytes) -> Result<(), OriginError> {
        self.origin.put(path, bytes).await
    }

    /// Begins an object of parts. Returns the name of the upload.
    ///
    /// # Errors
    /// The bucket does not take it.
    pub async fn begin(&self, path: &ObjectPath) -> Result<String, OriginError> {
        self.origin.begin_parts(path).await
    }

    /// Writes a part, by its number from 0 on. Returns its tag.
    ///
    /// # Errors
    /// The bucket does not take it; [`OriginError::NotFound`] where it knows no such upload.
    pub async fn put_part(
        &self,
        path: &ObjectPath,
        upload: &str,
        number: usize,
        bytes: Bytes,
    ) -> Result<String, OriginError> {
        self.origin.put_part(path, upload, number, bytes).await
    }

    /// Makes the object of its parts, by their tags in order.
    ///
    /// # Errors
    /// The bucket does not take it; [`OriginError::NotFound`] where it knows no such upload.
    pub async fn finish(&self, path: &ObjectPath, upload: &str, tags: &[String]) -> Result<(), OriginError> {
        self.origin.finish_parts(path, upload, tags).await
    }

    /// Gives an upload up, with its parts.
    ///
    /// # Errors
    /// The bucket can't be asked.
    pub async fn abort(&self, path: &ObjectPath, upload: &str) -> Result<(), OriginError> {
        self.origin.abort_parts(path, upload).await
    }
}
