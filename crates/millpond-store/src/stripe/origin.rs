//! An origin whose striped objects are like all others.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use futures_util::StreamExt;
use xxhash_rust::xxh3::xxh3_128;

use super::batch::{Batch, ReadAhead, read_ahead};
use super::group::StripeGroup;
use super::group_store::GroupStore;
use super::map::{LONGEST_MAP, StripeMap, map_path};
use super::sink::{Sink, StripeError};
use crate::error::{At, OriginError};
use crate::layout::Striping;
use crate::memory::cache::Cache;
use crate::origin::bare::{LocationError, bare};
use crate::origin::disk::check;
use crate::origin::retry::RetryOrigin;
use crate::origin::{
    BoxFuture, Fetched, Lanes, Listing, ObjectMeta, OpenFile, Origin, OriginCounts, OriginFacts, RemoteOptions, SentBy,
};
use crate::path::ObjectPath;
use crate::striping::{MAP_SUFFIX, StripeStore, StripingOptions};
use crate::version::Version;

/// Memory of a place for pieces that are read before their turn, in bytes.
const READ_AHEAD: u64 = 64 << 20;
/// Memory for maps, in bytes.
const MAPS: u64 = 8 << 20;
/// Beginning of the ETags of striped objects.
const ETAG: &str = "\"stripe-";

/// An origin with maps of striped objects between its objects.
///
/// The map `a.mp4.stripe` appears as the object `a.mp4`, also where the origin has an object of that name. Maps themselves are
/// not there for readers. Only stores of the group are used: a map that names another store is an error.
#[derive(Debug)]
pub(crate) struct StripedOrigin {
    inner: Arc<dyn Origin>,
    group: Arc<StripeGroup>,
    memory: ReadAhead,
    maps: Cache<ObjectPath, Arc<Mapped>>,
    /// Units that are read at the same time; 0 is twice the number of stores.
    batch: usize,
    /// The largest unit of all maps read, in bytes.
    unit: AtomicU64,
    /// The most copies of units of all maps read.
    copies: AtomicUsize,
    /// Longest delay of a start.
    longest: Duration,
    /// Maps without checksums that were read. The log tells of the first one.
    unchecked: AtomicU64,
}

/// A map, and what it says about its object.
struct Mapped {
    meta: ObjectMeta,
    map: Arc<StripeMap>,
}

impl StripedOrigin {
    /// Wraps an origin. `striping` has the stores, and `remote` the options of the origin itself.
    ///
    /// # Errors
    ///
    /// A store is a folder that does not exist, or its client cannot be made.
    pub(crate) fn new(
        inner: Arc<dyn Origin>,
        striping: &StripingOptions,
        remote: &RemoteOptions,
    ) -> Result<Self, LocationError> {
        let stores = striping.stores.iter().map(|named| {
            let plain = bare(named.location(), &named.remote(remote))?;
            let patient = Arc::new(RetryOrigin::new(plain.clone(), remote.retry));
            let sink = if striping.repair { sink(named, remote)? } else { None };
            Ok(GroupStore::new(named.name().to_owned(), plain, patient, sink))
        });
        let stores = stores.collect::<Result<Vec<_>, LocationError>>()?;
        let group = StripeGroup::new(stores, striping.timeout);
        Ok(Self::over(inner, group, striping.batch, striping.start))
    }

    pub(super) fn over(inner: Arc<dyn Origin>, group: StripeGroup, batch: usize, longest: Duration) -> Self {
        Self {
            inner,
            group: Arc::new(group),
            memory: read_ahead(READ_AHEAD),
            maps: Cache::new(MAPS),
            batch,
            unit: AtomicU64::new(0),
            copies: AtomicUsize::new(1),
            longest,
            unchecked: AtomicU64::new(0),
        }
    }

    fn at(&self, path: &ObjectPath) -> At {
        At::new(&self.inner.describe(), path.as_str())
    }

    /// Returns the map of an object; `None` where it is not striped.
    async fn load(&self, path: &ObjectPath) -> Result<Option<Arc<Mapped>>, OriginError> {
        let Some(map_path) = map_path(path) else { return Ok(None) };
        let fetched = match self.inner.read(&map_path, 0..LONGEST_MAP as u64, None).await {
            Ok(fetched) => fetched,
            // A folder of that name is no map. Buckets that may not be listed forbid what is missing.
            Err(OriginError::NotFound { .. } | OriginError::NotAFile { .. } | OriginError::Forbidden { .. }) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let wrong = |detail: String| OriginError::BadReply {
            at: self.at(&map_path),
            expected: "the map of a striped object".into(),
            found: detail,
        };
        if fetched.meta.len > LONGEST_MAP as u64 {
            return Err(wrong(format!("{} bytes", fetched.meta.len)));
        }
        let mut text = BytesMut::new();
        let mut body = fetched.body;
        while let Some(bytes) = body.next().await {
            text.extend_from_slice(&bytes?);
        }
        let map = StripeMap::parse(&text).map_err(|error| wrong(error.to_string()))?;
        if let Some(name) = self.group.stranger(&map) {
            return Err(wrong(format!("store {name:?}, which stripe-over does not have")));
        }
        if map.sums().is_none() && self.unchecked.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!(
                map = %self.at(&map_path),
                "a stripe map has no checksums: the units are served unchecked (later maps of this place are not logged). \
                 Stripe the file again with millpond stripe"
            );
        }
        let mapped = Arc::new(Mapped { meta: meta_of(&map, &text, fetched.meta), map: Arc::new(map) });
        self.unit.fetch_max(mapped.map.layout().unit(), Ordering::Relaxed);
        self.copies.fetch_max(mapped.map.layout().copies(), Ordering::Relaxed);
        self.maps.insert(path.clone(), mapped.clone(), text.len() as u64 + 512);
        Ok(Some(mapped))
    }

    /// Returns the map of an object of which a version is expected, from memory where that is possible.
    async fn expected(
        &self,
        path: &ObjectPath,
        expected: Option<&ObjectMeta>,
    ) -> Result<Option<Arc<Mapped>>, OriginError> {
        if let Some(expected) = expected {
            if !expected.version.as_str().starts_with(ETAG) {
                return Ok(None);
            }
            if let Some(known) = self.maps.get(path).filter(|known| known.meta.version == expected.version) {
                return Ok(Some(known));
            }
        }
        self.load(path).await
    }

    /// Returns what is read at the same time; `None` before the first map was read.
    fn lanes(&self) -> Option<Lanes> {
        let unit = self.unit.load(Ordering::Relaxed);
        let stores = self.group.len();
        let units = if self.batch == 0 { 2 * stores } else { self.batch };
        let patience = (self.copies.load(Ordering::Relaxed) > 1).then(|| self.group.patience());
        (unit > 0).then_some(Lanes { units, unit, stores, patience })
    }

    async fn read_now(
        &self,
        path: &ObjectPath,
        range: Range<u64>,
        expected: Option<&ObjectMeta>,
    ) -> Result<Fetched, OriginError> {
        self.check(path)?;
        let Some(mapped) = self.expected(path, expected).await? else {
            return self.inner.read(path, range, expected).await;
        };
        let at = self.at(path);
        let range = check(&at, &mapped.meta, range, expected)?;
        let most = if self.batch == 0 { 2 * mapped.map.layout().stores() } else { self.batch };
        let batch = Batch::new(&self.group, &self.memory, &mapped.map, at, range.clone(), most);
        Ok(Fetched { meta: mapped.meta.clone(), range, body: batch.into_body(), sender: SentBy::Origin })
    }

    /// Maps are not there for readers: they name stores.
    fn check(&self, path: &ObjectPath) -> Result<(), OriginError> {
        if path.as_str().ends_with(MAP_SUFFIX) {
            return Err(OriginError::NotFound { at: self.at(path) });
        }
        Ok(())
    }
}

/// Returns a store as a place for repaired units; `None` for a web server, which takes none.
fn sink(store: &StripeStore, remote: &RemoteOptions) -> Result<Option<Sink>, LocationError> {
    match Sink::of_store(store, remote) {
        Ok(sink) => Ok(Some(sink)),
        Err(StripeError::Location(error)) => Err(error),
        Err(error) => {
            tracing::warn!(store = store.name(), %error, "stripe-repair does not repair units of this store");
            Ok(None)
        }
    }
}

/// Returns the metadata of a striped object. Its version is a hash of the map's text, which has an identifier of its own.
fn meta_of(map: &StripeMap, text: &[u8], of_map: ObjectMeta) -> ObjectMeta {
    let etag = format!("{ETAG}{:032x}\"", xxh3_128(text));
    ObjectMeta {
        len: map.layout().length(),
        version: Version::new(&etag),
        etag: Some(etag),
        content_type: None,
        content_disposition: None,
        content_encoding: None,
        ..of_map
    }
}

impl Origin for StripedOrigin {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn head<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<ObjectMeta, OriginError>> {
        Box::pin(async move {
            self.check(path)?;
            match self.load(path).await? {
                Some(mapped) => Ok(mapped.meta.clone()),
                None => self.inner.head(path).await,
            }
        })
    }

    fn read<'a>(
        &'a self,
        path: &'a ObjectPath,
        range: Range<u64>,
        expected: Option<&'a ObjectMeta>,
    ) -> BoxFuture<'a, Result<Fetched, OriginError>> {
        Box::pin(self.read_now(path, range, expected))
    }

    fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
        Box::pin(async move {
            let mut listing = self.inner.list(folder).await?;
            for entry in listing.entries.iter_mut().filter(|entry| !entry.folder) {
                if let Some(name) = entry.name.strip_suffix(MAP_SUFFIX).filter(|name| !name.is_empty()) {
                    entry.name = name.to_owned();
                    // That of the map says nothing.
                    entry.len = 0;
                }
            }
            listing.entries.sort();
            listing.entries.dedup_by(|later, earlier| later.name == earlier.name && later.folder == earlier.folder);
            Ok(listing)
        })
    }

    fn open_file<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<Option<OpenFile>, OriginError>> {
        Box::pin(async move {
            self.check(path)?;
            if let Some(map) = map_path(path) {
                match self.inner.open_file(&map).await {
                    Ok(Some(_)) => return Ok(None),
                    Ok(None) | Err(OriginError::NotFound { .. } | OriginError::NotAFile { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            self.inner.open_file(path).await
        })
    }

    fn facts(&self) -> OriginFacts {
        OriginFacts { lanes: self.lanes(), ..self.inner.facts() }
    }

    fn counts(&self) -> OriginCounts {
        let inner = self.inner.counts();
        OriginCounts {
            retries: inner.retries + self.group.retries(),
            stripes: self.group.stats(),
            unchecked_maps: self.unchecked.load(Ordering::Relaxed),
            ..inner
        }
    }

    fn striping(&self, path: &ObjectPath) -> Option<Striping> {
        let map = self.maps.get(path)?.map.clone();
        let stores = map.stores().iter().map(|name| self.group.rate(name)).collect();
        let names = map.stores().iter().map(|name| name.as_str().into()).collect();
        Some(Striping { layout: *map.layout(), names, stores, longest: self.longest })
    }
}
