//! Hidden names kept out of reach: `.env`, `.git/config`, and all that lies below a folder with such a name.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{At, OriginError};
use crate::layout::Striping;
use crate::origin::{BoxFuture, Fetched, Listing, ObjectMeta, OpenFile, Origin, OriginCounts, OriginFacts};
use crate::path::ObjectPath;

/// An origin without its hidden files and folders. A path with a component that begins with a dot is answered as missing, without
/// a request to the origin.
///
/// A wrapper, so that one rule holds for files, assets, members of folders and manifests, subtitles and listings.
#[derive(Debug)]
pub(crate) struct VisibleOrigin(Arc<dyn Origin>);

impl VisibleOrigin {
    pub(crate) fn new(origin: Arc<dyn Origin>) -> Self {
        Self(origin)
    }

    fn check(&self, path: &ObjectPath) -> Result<(), OriginError> {
        if path.components().any(is_hidden) {
            return Err(OriginError::NotFound { at: At::new(&self.0.describe(), path.as_str()) });
        }
        Ok(())
    }
}

/// Returns whether a component of a path is a hidden name.
fn is_hidden(component: &str) -> bool {
    component.starts_with('.')
}

impl Origin for VisibleOrigin {
    fn describe(&self) -> String {
        self.0.describe()
    }

    fn head<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<ObjectMeta, OriginError>> {
        match self.check(path) {
            Ok(()) => self.0.head(path),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn read<'a>(
        &'a self,
        path: &'a ObjectPath,
        range: Range<u64>,
        expected: Option<&'a ObjectMeta>,
    ) -> BoxFuture<'a, Result<Fetched, OriginError>> {
        match self.check(path) {
            Ok(()) => self.0.read(path, range, expected),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
        Box::pin(async move {
            self.check(folder)?;
            let mut listing = self.0.list(folder).await?;
            listing.entries.retain(|entry| !is_hidden(&entry.name));
            Ok(listing)
        })
    }

    fn open_file<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<Option<OpenFile>, OriginError>> {
        match self.check(path) {
            Ok(()) => self.0.open_file(path),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn facts(&self) -> OriginFacts {
        self.0.facts()
    }

    fn counts(&self) -> OriginCounts {
        self.0.counts()
    }

    fn striping(&self, path: &ObjectPath) -> Option<Striping> {
        self.0.striping(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::memory::MemoryOrigin;
    use bytes::Bytes;

    #[tokio::test]
    async fn hidden_names_are_not_there_by_any_method() {
        let inner = MemoryOrigin::new("m");
        for path in ["a.mp4", "b/.env", ".git/config", "b/c.mp4", "b/..c.mp4", "b/d.x/e"] {
            inner.put(path, Bytes::from_static(b"x"));
        }
        let origin = VisibleOrigin::new(Arc::new(inner));
        for path in ["b/.env", ".git/config", ".git", "b/..c.mp4"] {
            let path = ObjectPath::parse(path).unwrap();
            assert!(origin.head(&path).await.unwrap_err().is_not_found(), "{path}");
            assert!(origin.read(&path, 0..1, None).await.unwrap_err().is_not_found(), "{path}");
            assert!(origin.list(&path).await.unwrap_err().is_not_found(), "{path}");
            assert!(origin.open_file(&path).await.unwrap_err().is_not_found(), "{path}");
        }
        for path in ["a.mp4", "b/c.mp4", "b/d.x/e"] {
            let path = ObjectPath::parse(path).unwrap();
            assert_eq!(origin.head(&path).await.unwrap().len, 1, "{path}");
            assert_eq!(origin.read(&path, 0..1, None).await.unwrap().range, 0..1, "{path}");
        }
        let listing = origin.list(&ObjectPath::parse("b").unwrap()).await.unwrap();
        assert_eq!(listing.entries.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["c.mp4", "d.x"]);
    }
}
