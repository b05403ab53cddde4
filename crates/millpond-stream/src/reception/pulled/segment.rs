//! The bytes of a segment, and of init sections, within bounds.

use crate::{
    reception::fetching::{Fetcher, Resource, error},
    source_health::{SourceError, SourceErrorKind},
};
use bytes::Bytes;
use millpond_media::ByteRange;
use std::time::Duration;
use url::Url;

/// Most bytes of an init section.
const MOST_INIT: usize = 1 << 20;
/// Most bytes of a segment.
const MOST_SEGMENT: u64 = 256 << 20;

/// A segment, or a part of one, that arrives.
pub(super) struct Segment {
    resource: Resource,
    left: u64,
}

impl Segment {
    /// Opens a segment.
    ///
    /// # Errors
    /// It is not there, or leads to another host.
    pub(super) async fn open(fetcher: &Fetcher, url: Url, range: Option<ByteRange>) -> Result<Self, SourceError> {
        let resource = fetcher.open(url, range, Duration::ZERO).await?;
        Ok(Self { resource, left: MOST_SEGMENT })
    }

    /// Returns the next bytes; `None` at the end. Cancel safe.
    ///
    /// # Errors
    /// It breaks off, stands still, or is too long.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, SourceError> {
        let Some(bytes) = self.resource.next().await? else { return Ok(None) };
        match self.left.checked_sub(bytes.len() as u64) {
            Some(left) => {
                self.left = left;
                Ok(Some(bytes))
            }
            None => {
                let words = format!("a segment of more than {MOST_SEGMENT} bytes, expected at most that");
                Err(self.error(words))
            }
        }
    }

    /// An error of its bytes.
    pub(super) fn error(&self, words: String) -> SourceError {
        error(SourceErrorKind::Protocol, &self.resource.url, words)
    }
}

/// Reads an init section.
///
/// # Errors
/// It can't be read.
pub(super) async fn init(fetcher: &Fetcher, url: Url, range: Option<ByteRange>) -> Result<Bytes, SourceError> {
    let (_, init) = fetcher.read(url, range, (MOST_INIT, Duration::ZERO)).await?;
    Ok(init.into())
}
