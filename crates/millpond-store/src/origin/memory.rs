//! Objects held in memory: embedded samples, and tests.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::stream;

use crate::error::{At, OriginError};
use crate::freshness::Freshness;
use crate::origin::disk::check;
use crate::origin::{BoxFuture, Entry, Fetched, Listing, ObjectMeta, Origin, OriginBody, OriginFacts, SentBy};
use crate::path::ObjectPath;
use crate::tags::StatedTags;
use crate::version::Version;

/// Bytes of one piece of a body: about as many as a network read brings.
const PIECE: usize = 16 * 1024;

/// Objects by path. Clones share them.
#[derive(Debug, Clone)]
pub struct MemoryOrigin {
    name: Arc<str>,
    objects: Arc<Mutex<Objects>>,
}

#[derive(Debug, Default)]
struct Objects {
    by_path: BTreeMap<String, (Bytes, ObjectMeta)>,
    /// Number of objects written, for versions.
    written: u64,
}

impl MemoryOrigin {
    /// Creates an empty origin with a name for logs.
    pub fn new(name: &str) -> Self {
        Self { name: Arc::from(format!("memory:{name}")), objects: Arc::default() }
    }

    /// Adds an object, or a new version of it.
    pub fn put(&self, path: &str, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        let mut objects = self.lock();
        objects.written += 1;
        let etag = format!("\"{}\"", objects.written);
        let meta = ObjectMeta {
            len: bytes.len() as u64,
            version: Version::of_reply(Some(&etag), None, bytes.len() as u64),
            etag: Some(etag),
            modified: None,
            content_type: None,
            content_disposition: None,
            content_language: None,
            content_encoding: None,
            freshness: Freshness::default(),
            tags: StatedTags::default(),
        };
        objects.by_path.insert(path.to_owned(), (bytes, meta));
    }

    /// Replaces the bytes of an object by as many others, under the same version.
    #[cfg(test)]
    pub(crate) fn replace(&self, path: &str, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        let mut objects = self.lock();
        let known = objects.by_path.get_mut(path).expect("an object to replace");
        assert_eq!(known.0.len(), bytes.len());
        known.0 = bytes;
    }

    /// Changes the tags of an object, under the same version.
    #[cfg(test)]
    pub(crate) fn tag(&self, path: &str, tags: &str) {
        let mut objects = self.lock();
        let known = objects.by_path.get_mut(path).expect("an object to tag");
        known.1.tags = StatedTags::of_fields(Some(tags), None);
    }

    /// Removes an object. Returns whether it existed.
    pub fn remove(&self, path: &str) -> bool {
        self.lock().by_path.remove(path).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at(&self, path: &ObjectPath) -> At {
        At { origin: self.name.clone(), path: Arc::from(path.as_str()) }
    }

    fn find(&self, path: &ObjectPath) -> Result<(Bytes, ObjectMeta), OriginError> {
        let found = self.lock().by_path.get(path.as_str()).cloned();
        found.ok_or_else(|| OriginError::NotFound { at: self.at(path) })
    }

    fn read_now(
        &self,
        path: &ObjectPath,
        range: Range<u64>,
        expected: Option<&ObjectMeta>,
    ) -> Result<Fetched, OriginError> {
        let (bytes, meta) = self.find(path)?;
        let range = check(&self.at(path), &meta, range, expected)?;
        // Both ends are at most the length, which is a usize.
        let part = bytes.slice(range.start as usize..range.end as usize);
        let body = pieces(part);
        Ok(Fetched { meta, range, body, sender: SentBy::Origin })
    }

    fn list_now(&self, folder: &ObjectPath) -> Result<Vec<Entry>, OriginError> {
        let prefix = if folder.is_root() { String::new() } else { format!("{folder}/") };
        let mut entries = BTreeMap::new();
        for (path, (bytes, _)) in &self.lock().by_path {
            let Some(below) = path.strip_prefix(&prefix) else {
                continue;
            };
            let (name, folder, len) = match below.split_once('/') {
                Some((name, _)) => (name, true, 0),
                None => (below, false, bytes.len() as u64),
            };
            if !name.starts_with('.') {
                let name = name.to_owned();
                entries.insert(name.clone(), Entry { name, folder, len, modified: None });
            }
        }
        if entries.is_empty() && !folder.is_root() {
            let at = self.at(folder);
            return Err(OriginError::NotFound { at });
        }
        Ok(entries.into_values().collect())
    }
}

fn pieces(mut bytes: Bytes) -> OriginBody {
    Box::pin(stream::iter(std::iter::from_fn(move || {
        let piece = bytes.split_to(bytes.len().min(PIECE));
        (!piece.is_empty()).then_some(Ok(piece))
    })))
}

impl Origin for MemoryOrigin {
    fn describe(&self) -> String {
        self.name.to_string()
    }

    fn head<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<ObjectMeta, OriginError>> {
        Box::pin(async move { self.find(path).map(|(_, meta)| meta) })
    }

    fn read<'a>(
        &'a self,
        path: &'a ObjectPath,
        range: Range<u64>,
        expected: Option<&'a ObjectMeta>,
    ) -> BoxFuture<'a, Result<Fetched, OriginError>> {
        Box::pin(async move { self.read_now(path, range, expected) })
    }

    fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
        Box::pin(async move { self.list_now(folder).map(Listing::from) })
    }

    fn facts(&self) -> OriginFacts {
        OriginFacts { stores_whole: true, ..OriginFacts::default() }
    }
}
