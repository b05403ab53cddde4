//! Parts of a store's objects in memory.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;

use super::sums::UnitSums;
use crate::error::{At, OriginError};
use crate::origin::{Fetched, Origin};
use crate::path::ObjectPath;

/// An object of a store, as its map describes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredObject<'a> {
    pub(super) path: &'a ObjectPath,
    /// Its kind, for errors.
    pub(super) kind: &'static str,
    /// Its length in bytes.
    pub(super) length: u64,
}

impl<'a> StoredObject<'a> {
    /// Describes a unit.
    pub(super) fn unit(path: &'a ObjectPath, length: u64) -> Self {
        Self { path, kind: "a unit", length }
    }

    /// Describes the checksums of a map.
    pub(super) fn sums(path: &'a ObjectPath, length: u64) -> Self {
        Self { path, kind: "checksums", length }
    }

    /// Reads a part whole.
    ///
    /// # Errors
    ///
    /// The store fails, or the object has another length.
    pub(super) async fn read(&self, origin: &dyn Origin, range: Range<u64>) -> Result<Bytes, OriginError> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let fetched = origin.read(self.path, range.clone(), None).await?;
        self.check(&fetched, &range, At::new(&origin.describe(), self.path.as_str()))?;
        let mut bytes = BytesMut::new();
        let mut body = fetched.body;
        // Bodies are as long as their range.
        while let Some(more) = body.next().await {
            bytes.extend_from_slice(&more?);
        }
        Ok(bytes.freeze())
    }

    /// Checks that a reply is the wanted part of an object of the right length.
    ///
    /// # Errors
    ///
    /// The length or the part differs.
    pub(super) fn check(&self, fetched: &Fetched, range: &Range<u64>, at: At) -> Result<(), OriginError> {
        if fetched.meta.len != self.length {
            let expected = format!("{} of {} bytes", self.kind, self.length);
            return Err(OriginError::BadReply { at, expected, found: format!("{} bytes", fetched.meta.len) });
        }
        if fetched.range != *range {
            let (expected, found) = (format!("bytes {range:?}"), format!("bytes {:?}", fetched.range));
            return Err(OriginError::BadReply { at, expected, found });
        }
        Ok(())
    }
}

/// Reads a unit whole, and verifies all its blocks.
///
/// # Errors
///
/// The store fails, or the unit is damaged there.
pub(super) async fn read_unit(origin: &dyn Origin, path: &ObjectPath, sums: &UnitSums) -> Result<Bytes, OriginError> {
    let bytes = StoredObject::unit(path, sums.length()).read(origin, 0..sums.length()).await?;
    match sums.verify(&bytes) {
        Ok(()) => Ok(bytes),
        Err(bad) => Err(bad.at(&At::new(&origin.describe(), path.as_str()))),
    }
}
