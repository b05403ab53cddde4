//! The origin of all nodes: objects that are replaced under the same entity tag, so that only a purge shows it.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use millpond_store::{
    Fetched, Freshness, Listing, ObjectMeta, ObjectPath, Origin, OriginError, SentBy, StatedTags, Version,
};
use std::{
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

/// Length of each object: its version as a number.
pub(super) const LENGTH: u64 = 8;
/// Number of objects.
pub(super) const OBJECTS: usize = 6;

/// Path of an object.
pub(super) fn path(object: usize) -> String {
    format!("film{object}.mp4")
}

/// Versions of the objects.
#[derive(Clone, Debug, Default)]
pub(super) struct Publisher(Arc<Mutex<[u64; OBJECTS]>>);

impl Publisher {
    /// Replaces an object; returns its version.
    pub(super) fn replace(&self, object: usize) -> u64 {
        let mut versions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        versions[object] += 1;
        versions[object]
    }

    fn version(&self, path: &ObjectPath) -> u64 {
        let versions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (0..OBJECTS).find(|object| self::path(*object) == path.as_str()).map_or(0, |object| versions[object])
    }

    fn meta() -> ObjectMeta {
        ObjectMeta {
            len: LENGTH,
            version: Version::new("\"same\""),
            etag: Some("\"same\"".to_owned()),
            modified: None,
            content_type: None,
            content_disposition: None,
            content_language: None,
            content_encoding: None,
            freshness: Freshness::default(),
            tags: StatedTags::default(),
        }
    }
}

impl Origin for Publisher {
    fn describe(&self) -> String {
        "a simulated origin".to_owned()
    }

    fn head<'a>(&'a self, _: &'a ObjectPath) -> BoxFuture<'a, Result<ObjectMeta, OriginError>> {
        Box::pin(async { Ok(Self::meta()) })
    }

    fn read<'a>(
        &'a self,
        path: &'a ObjectPath,
        range: Range<u64>,
        _: Option<&'a ObjectMeta>,
    ) -> BoxFuture<'a, Result<Fetched, OriginError>> {
        Box::pin(async move {
            let bytes = Bytes::copy_from_slice(&self.version(path).to_be_bytes());
            let range = range.start..range.end.min(LENGTH);
            let part = bytes.slice(range.start as usize..range.end as usize);
            let body = Box::pin(futures_util::stream::once(async { Ok(part) }));
            Ok(Fetched { meta: Self::meta(), range, body, sender: SentBy::Origin })
        })
    }

    fn list<'a>(&'a self, _: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
        Box::pin(async { Ok(Listing::default()) })
    }
}
