//! Reads of whole ranges.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::error::OriginError;
use crate::origin::disk;
use crate::reading::object::Object;
use crate::reading::reader::{AT_ONCE, Reader};
use crate::stats;

/// Reads exactly a range of an object that is an open file.
pub(super) async fn read_file(object: &Arc<Object>, file: Arc<File>, range: Range<u64>) -> Result<Bytes, OriginError> {
    let len = range.end - range.start;
    if len <= AT_ONCE
        && let Some(bytes) = disk::read_resident(&file, &range)
    {
        object.check()?;
        stats::add(&object.source().counters.file_bytes, len);
        return Ok(bytes);
    }
    let kept = object.clone();
    let work = move || {
        let bytes = disk::read_at(&file, range);
        // Checked after the read: the bytes before belong to the version that was opened then.
        kept.check()?;
        bytes.map_err(|error| {
            let error =
                OriginError::Io { at: kept.source().at(kept.path()), kind: error.kind(), detail: error.to_string() };
            kept.note(&error);
            error
        })
    };
    let result = tokio::task::spawn_blocking(work).await;
    let bytes = result.unwrap_or_else(|error| {
        Err(OriginError::Io {
            at: object.source().at(object.path()),
            kind: std::io::ErrorKind::Other,
            detail: error.to_string(),
        })
    })?;
    stats::add(&object.source().counters.file_bytes, len);
    Ok(bytes)
}

/// Reads the rest of a reader into one buffer. A single piece is not copied.
pub(super) async fn collect(mut reader: Reader) -> Result<Bytes, OriginError> {
    let mut whole = BytesMut::new();
    while let Some(bytes) = reader.next_bytes().await {
        let bytes = bytes?;
        if whole.is_empty() && reader.remaining().is_empty() {
            return Ok(bytes);
        }
        whole.extend_from_slice(&bytes);
    }
    Ok(whole.freeze())
}
