//! Files that are still being copied into their place.
//!
//! A file counts as being copied where its bytes end before its boxes do and it changed within the last minute. A file
//! that did not change for longer was cut off, and is judged by the bytes that are there. So is an object of an origin
//! that stores objects as a whole, such as a bucket: no more bytes follow.

use millpond_store::Object;
use std::time::{Duration, SystemTime};

/// Longest pause of a copy.
const PAUSE: Duration = Duration::from_secs(60);

/// Whether more bytes of an object that ends too early may follow.
pub(crate) fn may_grow(object: &Object) -> bool {
    !object.is_stored_whole() && is_recent(object.meta().modified)
}

/// Whether something changed so lately that it may be changing still.
pub(crate) fn is_recent(modified: Option<SystemTime>) -> bool {
    let Some(modified) = modified else { return false };
    let now = SystemTime::now();
    // Clocks of storages differ a little.
    let age = now.duration_since(modified).unwrap_or_else(|ahead| ahead.duration());
    age < PAUSE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        AssetOptions, IndexError, Library, LibraryError, LibraryOptions,
        work::{PoolOptions, WorkPool},
    };
    use millpond_store::{
        BoxFuture, Fetched, Listing, MemoryOrigin, ObjectMeta, ObjectPath, Origin, OriginError, OriginFacts, Store,
        StoreOptions,
    };
    use std::{collections::HashMap, ops::Range, sync::Arc};

    const SAMPLE: &[u8] = include_bytes!("../../../assets/sample/180p.mp4");

    /// Objects that changed just now, as a whole or not.
    #[derive(Debug)]
    struct Fresh {
        objects: MemoryOrigin,
        whole: bool,
    }

    impl Origin for Fresh {
        fn describe(&self) -> String {
            self.objects.describe()
        }

        fn head<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<ObjectMeta, OriginError>> {
            Box::pin(async {
                let meta = self.objects.head(path).await?;
                Ok(ObjectMeta { modified: Some(SystemTime::now()), ..meta })
            })
        }

        fn read<'a>(
            &'a self,
            path: &'a ObjectPath,
            range: Range<u64>,
            expected: Option<&'a ObjectMeta>,
        ) -> BoxFuture<'a, Result<Fetched, OriginError>> {
            Box::pin(async move {
                let mut fetched = self.objects.read(path, range, expected).await?;
                fetched.meta.modified = Some(SystemTime::now());
                Ok(fetched)
            })
        }

        fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
            self.objects.list(folder)
        }

        fn facts(&self) -> OriginFacts {
            OriginFacts { stores_whole: self.whole, ..OriginFacts::default() }
        }
    }

    /// Opens a fresh file that lacks its last bytes.
    async fn open_cut_off(whole: bool) -> Result<(), LibraryError> {
        let objects = MemoryOrigin::new("memory");
        objects.put("film.mp4", SAMPLE.split_at(1000).0.to_vec());
        let store = Store::new(&StoreOptions::default()).unwrap();
        store.add_place("films", Arc::new(Fresh { objects, whole }));
        let pool = Arc::new(WorkPool::new(PoolOptions { threads: 2 }, store.memory()).unwrap());
        let options = LibraryOptions {
            segment_duration: Duration::from_secs(4),
            index_folder: None,
            cache_size: 0,
            lists_thumbnails: false,
            places: HashMap::from([("films".into(), AssetOptions::default())]),
        };
        Arc::new(Library::new(store, pool, options)).open(&"films".into(), "film.mp4").await.map(drop)
    }

    #[tokio::test]
    async fn an_object_stored_as_a_whole_is_never_being_copied() {
        assert!(matches!(open_cut_off(false).await, Err(LibraryError::BeingCopied { len: 1000, .. })));
        let whole = open_cut_off(true).await;
        assert!(matches!(whole, Err(LibraryError::Index(IndexError::Media { .. }))), "{whole:?}");
    }

    #[test]
    fn a_minute_without_a_change_ends_a_copy() {
        let now = SystemTime::now();
        assert!(is_recent(Some(now)) && is_recent(Some(now + Duration::from_secs(5))));
        for long in [now - Duration::from_secs(120), now + Duration::from_secs(120)] {
            assert!(!is_recent(Some(long)));
        }
        assert!(!is_recent(None));
    }
}
