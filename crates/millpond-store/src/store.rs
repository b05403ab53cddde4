//! Places under names, and one slice cache over them all.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::cache::Cache;
use crate::collapse::Collapse;
use crate::error::OriginError;
use crate::object::Object;
use crate::origin::{Entry, ObjectMeta, Origin, disk};
use crate::path::ObjectPath;
use crate::reader::{Chunk, Reader, check_file};
use crate::slices::SliceCache;
use crate::source::Source;
use crate::stats::{self, Stats};

/// How many files a place keeps open for the next who asks; those in use are open besides.
const OPEN_FILES: u64 = 256;

/// Of how many objects a remote place remembers the metadata.
const REMEMBERED: u64 = 65_536;

/// How a [`Store`] is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// Memory for slices, in bytes: complete ones and those being filled. At least four slices are used.
    pub memory: u64,
    /// The size of a slice, in bytes.
    pub slice: u32,
    /// The longest single origin request, in bytes.
    pub run: u64,
    /// How long metadata is trusted; by default 1 s for a disk, 10 s for others.
    pub freshness: Option<Duration>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { memory: 256 * 1024 * 1024, slice: 256 * 1024, run: 16 * 1024 * 1024, freshness: None }
    }
}

/// Objects of all places, read through one slice cache. Clones share it.
///
/// Its methods must be called inside a Tokio runtime, for origin requests are tasks of their own.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    slices: Arc<SliceCache>,
    freshness: Option<Duration>,
    numbers: AtomicU64,
    /// A lock: places change only when the configuration does.
    places: RwLock<BTreeMap<String, Arc<Place>>>,
}

/// A source, and the objects of it that are known.
struct Place {
    source: Arc<Source>,
    freshness: Duration,
    objects: Cache<ObjectPath, Arc<Object>>,
    opening: Collapse<ObjectPath, Result<Arc<Object>, OriginError>>,
    listing: Collapse<ObjectPath, Result<Vec<Entry>, OriginError>>,
}

impl Store {
    /// A store without places.
    pub fn new(options: StoreOptions) -> Self {
        Self(Arc::new(Inner {
            slices: Arc::new(SliceCache::new(options.memory, options.slice, options.run)),
            freshness: options.freshness,
            numbers: AtomicU64::new(0),
            places: RwLock::default(),
        }))
    }

    /// Puts an origin under a name, `""` where it is the only one, in place of what had that name. Objects open
    /// already stay readable.
    pub fn add_place(&self, name: &str, origin: Arc<dyn Origin>) {
        let local = origin.is_local();
        let (objects, usual) =
            if local { (OPEN_FILES, Duration::from_secs(1)) } else { (REMEMBERED, Duration::from_secs(10)) };
        let place = Place {
            source: Arc::new(Source::new(name, origin)),
            freshness: self.0.freshness.unwrap_or(usual),
            objects: Cache::new(objects),
            opening: Collapse::new(),
            listing: Collapse::new(),
        };
        let mut places = self.0.places.write().unwrap_or_else(PoisonError::into_inner);
        places.insert(name.to_owned(), Arc::new(place));
    }

    /// Takes a place away. Objects open already stay readable. Returns whether there was one.
    pub fn remove_place(&self, name: &str) -> bool {
        let mut places = self.0.places.write().unwrap_or_else(PoisonError::into_inner);
        places.remove(name).is_some()
    }

    /// The places by name, each with its origin in words.
    pub fn places(&self) -> impl Iterator<Item = (String, String)> + use<> {
        let pairs: Vec<_> = self
            .all()
            .into_iter()
            .map(|place| {
                let source = &place.source;
                (source.name.to_string(), source.description.to_string())
            })
            .collect();
        pairs.into_iter()
    }

    /// Opens an object, or gives the open one where its metadata is fresh.
    ///
    /// All who open an object at one moment cause one request: for a remote one that nobody knows yet a read of its
    /// first slice, which is kept; for a known one a HEAD.
    ///
    /// # Errors
    ///
    /// What the origin says, or [`OriginError::NoSuchPlace`]. Errors are not remembered.
    pub async fn open(&self, place: &str, path: &ObjectPath) -> Result<Arc<Object>, OriginError> {
        let place = self.place(place)?;
        if let Some(object) = place.objects.get(path)
            && object.is_fresh(place.freshness)
        {
            return Ok(object);
        }
        let (result, joined) = place
            .opening
            .run(path.clone(), || {
                let (inner, place, path) = (self.0.clone(), place.clone(), path.clone());
                Box::pin(async move {
                    let result = inner.open_now(&place, &path).await;
                    result.map_err(|error| {
                        if error.is_not_found() {
                            place.objects.remove(&path);
                        }
                        place.source.counters.failed(error)
                    })
                })
            })
            .await;
        if joined {
            stats::add(&place.source.counters.collapsed, 1);
        }
        result
    }

    /// The entries of a folder by name.
    ///
    /// # Errors
    ///
    /// What the origin says; [`OriginError::Unsupported`] for an HTTP server that makes no index pages.
    pub async fn list(&self, place: &str, folder: &ObjectPath) -> Result<Vec<Entry>, OriginError> {
        let place = self.place(place)?;
        let (result, joined) = place
            .listing
            .run(folder.clone(), || {
                let (source, folder) = (place.source.clone(), folder.clone());
                Box::pin(async move {
                    stats::add(&source.counters.origin_requests, 1);
                    let result = source.origin.list(&folder).await;
                    result.map_err(|error| source.counters.failed(error))
                })
            })
            .await;
        if joined {
            stats::add(&place.source.counters.collapsed, 1);
        }
        result
    }

    /// Reads a range piece by piece; what lies behind the end of the object is cut off. Nothing is asked of the
    /// origin before the first [`Reader::next`].
    pub fn read(&self, object: &Arc<Object>, range: Range<u64>) -> Reader {
        Reader::new(self.0.slices.clone(), object.clone(), range)
    }

    /// Reads exactly a range, and waits for all of it: for metadata. It is taken from slices where all of them are
    /// in memory or on their way, else asked for as it is, not rounded to slices and not cached; once for all who
    /// want the same range now.
    ///
    /// # Errors
    ///
    /// What the origin says; [`OriginError::OutOfRange`] where the range ends behind the object.
    pub async fn read_all(&self, object: &Arc<Object>, range: Range<u64>) -> Result<Bytes, OriginError> {
        if range.end > object.meta().len || range.start > range.end {
            return Err(OriginError::OutOfRange {
                at: object.source().at(object.path()),
                start: range.start,
                len: Some(object.meta().len),
            });
        }
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        if let Some(file) = object.file() {
            return read_file(object, file.clone(), range).await;
        }
        if object.is_coming(&self.0.slices, &range) {
            return collect(self.read(object, range)).await;
        }
        let (bytes, joined) = object.read_exact(range).await?;
        if joined {
            stats::add(&object.source().counters.collapsed, 1);
        }
        Ok(bytes)
    }

    /// Sends for the missing slices of a range, without waiting: one origin request a missing run. At most one run
    /// is taken on at a time, the rest of the range is left out; for an open file there is nothing to do.
    pub fn prefetch(&self, object: &Arc<Object>, range: Range<u64>) {
        if object.file().is_some() {
            return;
        }
        let end = range.end.min(object.meta().len).min(range.start.saturating_add(self.0.slices.run()));
        object.prefetch(&self.0.slices, &(range.start..end));
    }

    /// What the store holds and did.
    pub fn stats(&self) -> Stats {
        let places = self.all().into_iter().map(|place| {
            let source = &place.source;
            let retries = source.origin.retries();
            source.counters.snapshot(&source.name, retries)
        });
        let cache = self.0.slices.cache.counters();
        Stats { cache, memory_used: cache.weight + self.0.slices.cache.reserved(), places: places.collect() }
    }

    fn all(&self) -> Vec<Arc<Place>> {
        let places = self.0.places.read().unwrap_or_else(PoisonError::into_inner);
        places.values().cloned().collect()
    }

    fn place(&self, name: &str) -> Result<Arc<Place>, OriginError> {
        let places = self.0.places.read().unwrap_or_else(PoisonError::into_inner);
        let place = places.get(name).cloned();
        place.ok_or_else(|| OriginError::NoSuchPlace { place: name.to_owned() })
    }
}

impl Inner {
    /// Asks the origin what is there now.
    async fn open_now(&self, place: &Place, path: &ObjectPath) -> Result<Arc<Object>, OriginError> {
        let source = &place.source;
        let known = place.objects.get(path);
        stats::add(&source.counters.origin_requests, 1);
        if let Some((file, meta)) = source.origin.open_file(path).await? {
            if let Some(known) = still(known, &meta) {
                return Ok(known);
            }
            return Ok(self.remember(place, path, meta, Some(file)));
        }
        let Some(known) = known.filter(|known| !known.is_outdated()) else {
            let first = 0..self.slices.slice();
            let fetched = source.origin.read(path, first, None).await?;
            let object = self.remember(place, path, fetched.meta.clone(), None);
            object.adopt(&self.slices, fetched);
            return Ok(object);
        };
        let meta = source.origin.head(path).await?;
        if let Some(known) = still(Some(known), &meta) {
            return Ok(known);
        }
        Ok(self.remember(place, path, meta, None))
    }

    fn remember(
        &self,
        place: &Place,
        path: &ObjectPath,
        meta: ObjectMeta,
        file: Option<Arc<std::fs::File>>,
    ) -> Arc<Object> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let source = place.source.clone();
        let object = Arc::new(Object::new(number, source, path.clone(), meta, file));
        place.objects.insert(path.clone(), object.clone(), 1);
        object
    }
}

/// The known object, where what the origin says is the same version.
fn still(known: Option<Arc<Object>>, meta: &ObjectMeta) -> Option<Arc<Object>> {
    let known = known?;
    let same = known.meta().version == meta.version && known.meta().len == meta.len;
    if !same || known.is_outdated() {
        return None;
    }
    known.confirm();
    Some(known)
}

async fn read_file(object: &Arc<Object>, file: Arc<std::fs::File>, range: Range<u64>) -> Result<Bytes, OriginError> {
    let len = range.end - range.start;
    let kept = object.clone();
    let work = move || {
        let bytes = disk::read_at(&file, range);
        // Looked at after the read: what was read before is of the version opened then.
        check_file(&kept, &file)?;
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

async fn collect(mut reader: Reader) -> Result<Bytes, OriginError> {
    let mut whole = BytesMut::new();
    while let Some(chunk) = reader.next().await {
        let Chunk::Bytes(bytes) = chunk? else {
            continue;
        };
        if whole.is_empty() && reader.remaining().is_empty() {
            return Ok(bytes);
        }
        whole.extend_from_slice(&bytes);
    }
    Ok(whole.freeze())
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("places", &self.places().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
