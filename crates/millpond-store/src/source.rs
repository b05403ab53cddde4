//! An origin under the name of a place, with its counters.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;

use crate::error::{At, OriginError};
use crate::object::Object;
use crate::origin::{Fetched, Origin};
use crate::path::ObjectPath;
use crate::stats::{self, Counters};

/// The most that is allocated for bytes before they come.
const AHEAD: u64 = 1024 * 1024;

/// What objects need of their place.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: Arc<str>,
    pub(crate) origin: Arc<dyn Origin>,
    pub(crate) description: Arc<str>,
    pub(crate) counters: Counters,
}

impl Source {
    pub(crate) fn new(name: &str, origin: Arc<dyn Origin>) -> Self {
        Self { name: Arc::from(name), description: Arc::from(origin.describe()), origin, counters: Counters::default() }
    }

    /// Names a path here, for errors.
    pub(crate) fn at(&self, path: &ObjectPath) -> At {
        At { origin: self.description.clone(), path: Arc::from(path.as_str()) }
    }

    /// Asks the origin for bytes of the version that was opened.
    pub(crate) async fn read(&self, object: &Object, range: Range<u64>) -> Result<Fetched, OriginError> {
        tracing::debug!(place = %self.name, path = %object.path(), ?range, "origin request");
        stats::add(&self.counters.origin_requests, 1);
        self.origin.read(object.path(), range, Some(object.meta())).await
    }

    /// Asks the origin for exactly a range, and waits for all of it.
    pub(crate) async fn read_whole(&self, object: &Object, range: Range<u64>) -> Result<Bytes, OriginError> {
        let mut fetched = self.read(object, range.clone()).await?;
        let expected = range.end - range.start;
        let mut bytes = Vec::with_capacity(expected.min(AHEAD) as usize);
        while let Some(piece) = fetched.body.next().await {
            let piece = piece?;
            stats::add(&self.counters.origin_bytes, piece.len() as u64);
            bytes.extend_from_slice(&piece);
        }
        let received = bytes.len() as u64;
        if fetched.range != range || received != expected {
            return Err(OriginError::Truncated {
                at: self.at(object.path()),
                expected,
                received,
                detail: "the body ended".into(),
            });
        }
        Ok(bytes.into())
    }
}
