//! Names of versions of objects, under which their slices are kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use xxhash_rust::xxh3::Xxh3Default;

use crate::{
    disk::slab::ObjectName,
    origin::ObjectMeta,
    path::ObjectPath,
    selection::Candidate,
    tags::ObjectTags,
    version::{Version, is_strong},
};

/// The permanent name of one version of an object, under which its slices are found, also after a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// A hash of place, path, version and length.
    pub(crate) hash: u64,
    pub(crate) place: Arc<str>,
    pub(crate) path: ObjectPath,
    pub(crate) version: Version,
    /// Length of the object in bytes.
    pub(crate) len: u64,
    /// Whether the version identifies its content for good, and the origin permits storage. A version that consists of
    /// a length only ends with its object, and is not kept on the disk.
    pub(crate) lasting: bool,
    /// Its tags, as the origin stated them last. They are no part of the hash.
    pub(crate) tags: ObjectTags,
}

impl Named {
    pub(crate) fn new(place: &Arc<str>, path: &ObjectPath, meta: &ObjectMeta) -> Self {
        static UNNAMED: AtomicU64 = AtomicU64::new(1);
        let told = meta.etag.as_deref().is_some_and(is_strong) || meta.modified.is_some();
        let lasting = told && meta.freshness.permission.is_storable();
        let mut hash = Xxh3Default::new();
        for text in [&**place, path.as_str(), meta.version.as_str()] {
            hash.update(&(text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
        hash.update(&meta.len.to_le_bytes());
        if !lasting {
            hash.update(&UNNAMED.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        }
        let (place, path, version) = (place.clone(), path.clone(), meta.version.clone());
        Self { hash: hash.digest(), place, path, version, len: meta.len, lasting, tags: meta.tags.kept.clone() }
    }

    /// Returns the name that is written beside the object's slices.
    pub(crate) fn name(&self) -> ObjectName {
        let text = |text: &str| Arc::from(text);
        ObjectName {
            place: self.place.clone(),
            path: text(self.path.as_str()),
            version: text(self.version.as_str()),
            len: self.len,
            tags: self.tags.clone(),
        }
    }
}

impl<'a> From<&'a Named> for Candidate<'a> {
    fn from(named: &'a Named) -> Self {
        Self { place: &named.place, path: named.path.as_str(), tags: &named.tags }
    }
}
