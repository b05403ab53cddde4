//! Objects whose bytes are made of another object's bytes, such as the frames in a transport stream.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;

use crate::disk::named::Named;
use crate::error::{At, OriginError};
use crate::freshness::{Freshness, Permission, Storage};
use crate::named_origin::NamedOrigin;
use crate::origin::disk::check;
use crate::origin::{BoxFuture, Fetched, Listing, ObjectMeta, Origin, SentBy};
use crate::path::ObjectPath;
use crate::reading::object::Object;
use crate::store::Store;
use crate::version::Version;

/// A way to make the bytes of an object of those of another one, its source.
pub trait Derivation: Send + Sync + fmt::Debug {
    /// Name of the object, for its path below the source's.
    fn name(&self) -> &'static str;

    /// Length of the object in bytes.
    fn length(&self) -> u64;

    /// Returns the bytes of the source that a range is made of.
    ///
    /// # Errors
    /// The range can't be made, and why.
    fn needs(&self, range: &Range<u64>) -> Result<Range<u64>, String>;

    /// Makes a range of the bytes that it needs.
    ///
    /// # Errors
    /// The bytes are not those of which the derivation was made.
    fn make(&self, range: &Range<u64>, source: &[u8]) -> Result<Bytes, String>;
}

/// The origin of one derived object.
#[derive(Debug)]
struct DerivedOrigin {
    store: Store,
    source: Arc<Object>,
    derivation: Arc<dyn Derivation>,
    meta: ObjectMeta,
}

impl Store {
    /// Returns an object that is made of another one. Its slices are cached in memory only: those of its source are on the disk.
    #[must_use]
    pub fn derived(&self, source: &Arc<Object>, derivation: Arc<dyn Derivation>) -> Arc<Object> {
        let meta = meta(source, &*derivation);
        let path = source.path().join(derivation.name()).unwrap_or_else(|_| source.path().clone());
        let named = Named::new(&source.source().name, &path, &meta);
        let origin = DerivedOrigin { store: self.clone(), source: source.clone(), derivation, meta: meta.clone() };
        let place = NamedOrigin::new(source.place(), Arc::new(origin), self.prefetch_mode(), self.slice_size());
        Arc::new(Object::new(named, Arc::new(place), path, meta, None))
    }
}

/// Metadata of a derived object. Another version of the source makes another object.
fn meta(source: &Object, derivation: &dyn Derivation) -> ObjectMeta {
    let version = format!("{} of {}", derivation.name(), source.meta().version.as_str());
    let permission = Permission { storage: Storage::Never, ..Permission::default() };
    ObjectMeta {
        len: derivation.length(),
        version: Version::new(&version),
        etag: None,
        modified: source.meta().modified,
        content_type: None,
        content_disposition: None,
        content_language: None,
        content_encoding: None,
        freshness: Freshness { permission, ..Freshness::default() },
    }
}

impl DerivedOrigin {
    fn at(&self, path: &ObjectPath) -> At {
        At { origin: Arc::from(self.describe()), path: Arc::from(path.as_str()) }
    }

    async fn bytes(&self, at: At, range: Range<u64>) -> Result<Bytes, OriginError> {
        let name = self.derivation.name();
        let damaged = |found: String| OriginError::BadReply { at: at.clone(), expected: name.to_owned(), found };
        let needed = self.derivation.needs(&range).map_err(damaged)?;
        let source = self.store.read_all(&self.source, needed).await?;
        let derivation = self.derivation.clone();
        let made = tokio::task::spawn_blocking(move || derivation.make(&range, &source)).await;
        made.map_err(|error| damaged(error.to_string()))?.map_err(damaged)
    }
}

impl Origin for DerivedOrigin {
    fn describe(&self) -> String {
        format!("{} of {}/{}", self.derivation.name(), self.source.place(), self.source.path())
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
            let at = self.at(path);
            let range = check(&at, &self.meta, range, expected)?;
            let bytes = self.bytes(at, range.clone()).await?;
            let body = Box::pin(stream::iter([Ok(bytes)]));
            Ok(Fetched { meta: self.meta.clone(), range, body, sender: SentBy::Origin })
        })
    }

    fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
        Box::pin(async move { Err(OriginError::NotFound { at: self.at(folder) }) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::memory::MemoryOrigin;
    use crate::store::StoreOptions;

    /// Every second byte of the source.
    #[derive(Debug)]
    struct Half(u64);

    impl Derivation for Half {
        fn name(&self) -> &'static str {
            "half"
        }

        fn length(&self) -> u64 {
            self.0 / 2
        }

        fn needs(&self, range: &Range<u64>) -> Result<Range<u64>, String> {
            if range.start >= 400_000 { Err("nothing there".to_owned()) } else { Ok(2 * range.start..2 * range.end) }
        }

        fn make(&self, _: &Range<u64>, source: &[u8]) -> Result<Bytes, String> {
            Ok(source.iter().step_by(2).copied().collect())
        }
    }

    #[tokio::test]
    async fn a_derived_object_is_read_like_others() {
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|number| (number / 7) as u8).collect();
        let store = Store::new(&StoreOptions { slice: 4096, ..StoreOptions::default() }).unwrap();
        let origin = MemoryOrigin::new("films");
        origin.put("a.ts", bytes.clone());
        store.add_place("films", Arc::new(origin.clone()));
        let source = store.open("films", &ObjectPath::parse("a.ts").unwrap()).await.unwrap();
        let derived = store.derived(&source, Arc::new(Half(1_000_000)));
        assert_eq!((derived.meta().len, derived.path().as_str(), derived.is_storable()), (500_000, "a.ts/half", false));
        let expected: Vec<u8> = bytes.iter().step_by(2).copied().collect();
        for (start, end) in [(0, 10), (4000, 9000), (399_000, 400_000)] {
            let found = store.read_all(&derived, start as u64..end as u64).await.unwrap();
            assert_eq!(found, expected[start..end]);
        }
        let error = store.read_all(&derived, 450_000..450_001).await.unwrap_err().to_string();
        assert!(error.contains("half of films/a.ts") && error.contains("nothing there"), "{error}");

        // Another version of the source makes another object, and the old one is not mixed with it.
        origin.put("a.ts", vec![9; 1_000_000]);
        let error = store.read_all(&derived, 100_000..100_001).await.unwrap_err();
        assert!(matches!(error, OriginError::Changed { .. }), "{error}");
    }
}
