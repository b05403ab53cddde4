//! Objects whose bytes are ranges of other objects, one behind the other, such as the segments of an HLS playlist.

mod cursor;
mod ranges;

use std::ops::Range;
use std::sync::Arc;

use futures_util::stream;

use crate::disk::named::Named;
use crate::error::{At, OriginError};
use crate::freshness::Freshness;
use crate::named_origin::NamedOrigin;
use crate::origin::disk::check;
use crate::origin::{BoxFuture, Fetched, Listing, ObjectMeta, Origin, SentBy};
use crate::path::ObjectPath;
use crate::reading::object::Object;
use crate::store::Store;

use cursor::{Cursor, Parts};
pub use ranges::{JoinedRanges, JoinedSource};

/// Name of joined objects among those that are made of others.
const NAME: &str = "segments";

/// The origin of one joined object.
#[derive(Debug)]
struct JoinedOrigin {
    parts: Arc<Parts>,
    meta: ObjectMeta,
}

impl Store {
    /// Returns the object whose bytes are these ranges of objects of one place: the same one for all callers while somebody holds it.
    /// `list` is the object that names the ranges. The joined object has its path.
    ///
    /// Its slices are cached in memory only: those of its sources are on the disk. A source is opened when its bytes are read. If it
    /// has another version by then, the read fails, and the joined object is [out of date](Object::is_outdated).
    #[must_use]
    pub fn joined(&self, list: &Arc<Object>, ranges: JoinedRanges) -> Arc<Object> {
        self.derived_objects().get_or_make(ranges.hash(), list, NAME, || {
            let meta = meta(list, &ranges);
            let path = list.path().clone();
            let named = Named::new(&list.source().name, &path, &meta);
            let parts = Parts::new(self.clone(), list, NAME, ranges.into_parts());
            let origin = JoinedOrigin { parts: Arc::new(parts), meta: meta.clone() };
            let place = NamedOrigin::new(list.place(), Arc::new(origin), self.prefetch_mode(), self.slice_size());
            Arc::new(Object::new(named, Arc::new(place), path, meta, None))
        })
    }
}

/// Metadata of a joined object. Without a time and an entity tag its slices reach no disk.
fn meta(list: &Object, ranges: &JoinedRanges) -> ObjectMeta {
    ObjectMeta {
        len: ranges.length(),
        version: ranges.version(),
        etag: None,
        modified: None,
        content_type: None,
        content_disposition: None,
        content_language: None,
        content_encoding: None,
        freshness: Freshness { permission: ranges.permission(), ..Freshness::default() },
        tags: list.meta().tags.clone(),
    }
}

impl JoinedOrigin {
    fn at(&self, path: &ObjectPath) -> At {
        At::new(self.parts.description(), path.as_str())
    }
}

impl Origin for JoinedOrigin {
    fn describe(&self) -> String {
        self.parts.description().to_owned()
    }

    fn head<'a>(&'a self, _: &'a ObjectPath) -> BoxFuture<'a, Result<ObjectMeta, OriginError>> {
        Box::pin(async { Ok(self.meta.clone()) })
    }

    fn read<'a>(
        &'a self,
        path: &'a ObjectPath,
        range: Range<u64>,
        expected: Option<&'a ObjectMeta>,
    ) -> BoxFuture<'a, Result<Fetched, OriginError>> {
        Box::pin(async move {
            let range = check(&self.at(path), &self.meta, range, expected)?;
            let cursor = Cursor::new(self.parts.clone(), range.clone());
            let body = Box::pin(stream::try_unfold(cursor, Cursor::next));
            Ok(Fetched { meta: self.meta.clone(), range, body, sender: SentBy::Origin })
        })
    }

    fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
        Box::pin(async move { Err(OriginError::NotFound { at: self.at(folder) }) })
    }
}

#[cfg(test)]
mod tests;
