//! Places under names, and one slice cache over them all.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::time::Instant;

use crate::cache::Cache;
use crate::disk_tier::{DiskTier, Pin};
use crate::error::OriginError;
use crate::freshness::Permission;
use crate::memory::Memory;
use crate::named_origin::NamedOrigin;
use crate::object::{Named, Object};
use crate::origin::{Entry, Listing, ObjectMeta, Origin, disk};
use crate::path::ObjectPath;
use crate::policy::PolicyName;
use crate::reader::{Reader, check_file};
use crate::schedule::Mode;
use crate::single_flight::SingleFlight;
use crate::slab::{ObjectName, SlabError};
use crate::slices::SliceCache;
use crate::stats::{self, PlaceStats, Stats};

/// Number of unused files that a place keeps open.
const OPEN_FILES: u64 = 256;

/// Number of objects of which a remote place remembers the metadata.
const REMEMBERED: u64 = 65_536;

/// Time for which an object is believed to be absent.
const ABSENT: Duration = Duration::from_secs(1);

/// How long an object is used while its origin fails, where the origin doesn't say.
const STALE_IF_ERROR: Duration = Duration::from_secs(24 * 3600);

/// After a failure, a stale object is used for this long before the origin is asked again.
const STALE_STEP: Duration = Duration::from_secs(1);

/// Longest range of the request that opens an object, in bytes.
const FIRST: u64 = 1 << 30;

/// Options of a [`Store`].
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Memory in bytes: for slices, complete ones and those being filled, and for what others keep in
    /// [`Store::memory`]. At least four slices are used.
    pub memory: u64,
    /// Where slices are kept on a disk, if at all.
    pub disk: Option<DiskOptions>,
    /// The size of a slice, in bytes.
    pub slice: u32,
    /// How far an origin request may be ahead of its readers, in bytes.
    pub run: u64,
    /// How long metadata is trusted; by default 1 s for a disk, 10 s for others.
    pub freshness: Option<Duration>,
    /// When slices are fetched that viewers will need.
    pub prefetch: Mode,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            memory: 256 * 1024 * 1024,
            disk: None,
            slice: 512 * 1024,
            run: 16 * 1024 * 1024,
            freshness: None,
            prefetch: Mode::Active,
        }
    }
}

/// How slices are kept on a disk.
#[derive(Clone, Debug)]
pub struct DiskOptions {
    /// The folder, made where it is missing; nothing else may be in it.
    pub folder: PathBuf,
    /// The most that its files take together, in bytes.
    pub quota: u64,
    /// The eviction policy.
    pub policy: PolicyName,
}

/// Why a [`Store`] can't be made as asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk cache can't be opened.
    #[error("{0}")]
    Disk(#[from] SlabError),
}

/// Objects of all places, read through one slice cache. Clones share it.
///
/// Its methods must be called inside a Tokio runtime, for origin requests are tasks of their own.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    slices: Arc<SliceCache>,
    freshness: Option<Duration>,
    /// A lock: changed by the operator only.
    prefetch: RwLock<Mode>,
    /// A lock: places change only when the configuration does.
    places: RwLock<BTreeMap<String, Arc<Place>>>,
}

/// A source, and the objects of it that are known.
struct Place {
    source: Arc<NamedOrigin>,
    freshness: Duration,
    objects: Cache<ObjectPath, Arc<Object>>,
    /// Paths where nothing is, with when that was said.
    absent: Cache<ObjectPath, (Instant, OriginError)>,
    /// Stale objects that stand in for a failing origin, with when they last did.
    standing_in: Cache<ObjectPath, Instant>,
    opening: SingleFlight<ObjectPath, Result<Arc<Object>, OriginError>>,
    listing: SingleFlight<ObjectPath, Result<Listing, OriginError>>,
    /// What the origin said of keeping a folder's list, where it said anything, and when.
    listed: Cache<ObjectPath, (Instant, Permission)>,
}

impl Store {
    /// A store without places.
    ///
    /// # Errors
    ///
    /// Fails where the disk cache can't be opened.
    pub fn new(options: &StoreOptions) -> Result<Self, StoreError> {
        let least = u64::from(options.slice) * 4;
        let memory = Memory::new(options.memory.max(least), PolicyName::Sieve);
        let open = |disk: &DiskOptions| -> Result<_, StoreError> {
            // What waits to be written is memory that the ledger may have given up already.
            let waiting = (options.memory / 8 / u64::from(options.slice).max(1)).clamp(2, 256) as usize;
            Ok(DiskTier::open(&disk.folder, disk.quota, options.slice, disk.policy, waiting)?)
        };
        let disk = options.disk.as_ref().map(open).transpose()?;
        Ok(Self(Arc::new(Inner {
            slices: Arc::new(SliceCache::new(memory, disk, options.slice, options.run)),
            freshness: options.freshness,
            prefetch: RwLock::new(options.prefetch),
            places: RwLock::default(),
        })))
    }

    /// The size of a slice in bytes.
    pub fn slice_size(&self) -> u64 {
        self.0.slices.slice()
    }

    pub(crate) fn slices(&self) -> &Arc<SliceCache> {
        &self.0.slices
    }

    /// Changes, while running, the capacity of the disk, up to the one that it was opened with, and its eviction policy.
    pub fn set_disk(&self, capacity: Option<u64>, policy: Option<PolicyName>) {
        if let Some(disk) = self.0.slices.disk() {
            policy.into_iter().for_each(|policy| disk.set_policy(policy));
            capacity.into_iter().for_each(|bytes| disk.set_capacity(bytes));
        }
    }

    /// Returns when slices are fetched that viewers will need.
    pub fn prefetch_mode(&self) -> Mode {
        *self.0.prefetch.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes that mode while running, for present viewers too.
    pub fn set_prefetch_mode(&self, mode: Mode) {
        *self.0.prefetch.write().unwrap_or_else(PoisonError::into_inner) = mode;
        self.all().into_iter().for_each(|place| place.source.scheduler.set_mode(mode));
    }

    /// Changes, while running, how much memory is used for all that is kept, at least for four slices.
    pub fn set_memory(&self, bytes: u64) {
        self.memory().set_budget(bytes.max(self.slice_size() * 4));
    }

    /// Returns whether the position of an object's viewers matters to the store: the caller then gives it a
    /// [`Watch`](crate::Watch) for each viewer.
    pub fn follows_viewers(&self, object: &Object) -> bool {
        object.file().is_none() && self.prefetch_mode().follows_viewers()
    }

    /// Does all that must be done before anything of an object is sent: with [`Mode::Full`], fetches all of it. Returns at
    /// once with other modes and for open files.
    ///
    /// # Errors
    ///
    /// The failure of the origin.
    pub async fn prepare(&self, object: &Arc<Object>) -> Result<(), OriginError> {
        if self.prefetch_mode() != Mode::Full || object.file().is_some() {
            return Ok(());
        }
        let mut reader = self.read(object, 0..object.meta().len);
        while let Some(chunk) = reader.next().await {
            chunk?;
        }
        Ok(())
    }

    /// The memory that slices are in: one budget for the whole process when others keep their entries there too.
    pub fn memory(&self) -> &Arc<Memory> {
        self.0.slices.memory()
    }

    /// Puts an origin under a name, `""` where it is the only one, in place of what had that name. Objects open
    /// already stay readable.
    pub fn add_place(&self, name: &str, origin: Arc<dyn Origin>) {
        let local = origin.is_local();
        let (objects, usual) =
            if local { (OPEN_FILES, Duration::from_secs(1)) } else { (REMEMBERED, Duration::from_secs(10)) };
        let place = Place {
            source: Arc::new(NamedOrigin::new(name, origin, self.prefetch_mode(), self.slice_size())),
            freshness: self.0.freshness.unwrap_or(usual),
            objects: Cache::new(objects),
            absent: Cache::new(REMEMBERED),
            standing_in: Cache::new(REMEMBERED),
            opening: SingleFlight::new(),
            listing: SingleFlight::new(),
            listed: Cache::new(REMEMBERED),
        };
        let mut places = self.0.places.write().unwrap_or_else(PoisonError::into_inner);
        places.insert(name.to_owned(), Arc::new(place));
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
    /// Concurrent callers share one request: for an unknown remote object a read of its first slice, which is kept; for a
    /// known one a HEAD.
    ///
    /// # Errors
    ///
    /// What the origin says, or [`OriginError::NoSuchPlace`]. That there is no such object is remembered for a second;
    /// where the origin fails otherwise, the object as it was last seen is given, for as long as that may be used.
    pub async fn open(&self, place: &str, path: &ObjectPath) -> Result<Arc<Object>, OriginError> {
        self.open_for(place, path, 0..1).await
    }

    /// As [`open`](Self::open), for a caller that will read a range: the request that opens an unknown object asks for that
    /// range instead of the first slice.
    ///
    /// # Errors
    ///
    /// As `open`; that the range lies behind the end of the object is none.
    pub async fn open_for(
        &self,
        place: &str,
        path: &ObjectPath,
        wanted: Range<u64>,
    ) -> Result<Arc<Object>, OriginError> {
        let place = self.place(place)?;
        if let Some(known) = place.known(path) {
            return known;
        }
        let (result, joined) = place
            .opening
            .run(path, || {
                let (inner, place, path) = (self.0.clone(), place.clone(), path.clone());
                async move {
                    let result = inner.open_now(&place, &path, wanted).await;
                    result.or_else(|error| place.stand_in(&path, place.source.counters.failed(error)))
                }
            })
            .await;
        if joined {
            stats::add(&place.source.counters.collapsed, 1);
        }
        result
    }

    /// Returns a known object, its metadata fresh or not, without asking the origin.
    pub fn peek(&self, place: &str, path: &ObjectPath) -> Option<Arc<Object>> {
        let place = self.place(place).ok()?;
        place.objects.get(path).filter(|object| !object.is_outdated())
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
            .run(folder, || {
                let (source, folder) = (place.source.clone(), folder.clone());
                async move {
                    stats::add(&source.counters.origin_requests, 1);
                    let result = source.origin.list(&folder).await;
                    result.map_err(|error| source.counters.failed(error))
                }
            })
            .await;
        if joined {
            stats::add(&place.source.counters.collapsed, 1);
        }
        let Listing { entries, freshness } = result?;
        if freshness.permission == Permission::default() {
            place.listed.remove(folder);
        } else {
            place.listed.insert(folder.clone(), (Instant::now(), freshness.permission), 1);
        }
        Ok(entries)
    }

    /// Returns what the origin permits caches to do with an object now: what it said last of the version, of whichever
    /// [`Object`] it said that.
    pub fn permission(&self, object: &Object) -> Permission {
        if object.file().is_some() {
            return object.permission();
        }
        let known = self.peek(object.place(), object.path());
        let same = known.filter(|known| known.meta().version == object.meta().version);
        same.map_or_else(|| object.permission(), |known| known.permission())
    }

    /// Returns what the origin permitted caches to do with the list of a folder when it was last asked for one.
    pub fn listing_permission(&self, place: &str, folder: &ObjectPath) -> Permission {
        let listed = self.place(place).ok().and_then(|place| place.listed.get(folder));
        listed.map_or_else(Permission::default, |(at, permission)| permission.after(at.elapsed()))
    }

    /// Reads a range piece by piece; what lies behind the end of the object is cut off. Nothing is asked of the
    /// origin before the first [`Reader::next`].
    pub fn read(&self, object: &Arc<Object>, range: Range<u64>) -> Reader {
        Reader::new(self.0.slices.clone(), object.clone(), range)
    }

    /// Takes note that a range of a file, which a [`Reader`] of an object gave with `pin`, could not be read to its end;
    /// `offset` says where in the object that was. A slice of the cache is dropped, so that another read from there on
    /// fetches it again.
    ///
    /// # Errors
    ///
    /// [`OriginError::Truncated`] where the file is the object itself: it became shorter, and has no other bytes.
    pub fn lost(&self, object: &Object, offset: u64, pin: Option<&Pin>) -> Result<(), OriginError> {
        match pin {
            Some(pin) => pin.drop_damaged(),
            None => return Err(object.is_cut(offset)),
        }
        Ok(())
    }

    /// Reads exactly a range, and waits for all of it: for metadata. It is taken from slices where all of them are
    /// in memory or on their way, else asked for as it is, not rounded to slices and not cached; once for all
    /// concurrent callers of the same range.
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

    /// Returns whether a range can be read without asking the origin for anything more than is on its way.
    pub fn is_near(&self, object: &Arc<Object>, range: &Range<u64>) -> bool {
        object.file().is_some() || object.is_coming(self.slices(), range)
    }

    /// Fetches the missing slices of a range, without waiting: one origin request for each missing run. At most one run's
    /// length is fetched, the rest of the range is left out. Does nothing for an open file.
    pub fn prefetch(&self, object: &Arc<Object>, range: Range<u64>) {
        if object.file().is_some() {
            return;
        }
        let end = range.end.min(object.meta().len).min(range.start.saturating_add(self.0.slices.run()));
        object.prefetch(&self.0.slices, &(range.start..end));
    }

    /// Returns the counters.
    pub fn stats(&self) -> Stats {
        let places = self.all().into_iter().map(|place| {
            let source = &place.source;
            let retries = source.origin.retries();
            let (used, unused) = source.speculation.bytes();
            PlaceStats {
                neighbours: source.origin.neighbours(),
                prefetched_bytes: used + unused,
                prefetched_unused_bytes: unused,
                watched: source.scheduler.viewers(),
                link_bandwidth: source.link().estimate.bandwidth as u64,
                ..source.counters.snapshot(&source.name, retries)
            }
        });
        let slices = &self.0.slices;
        Stats {
            cache: slices.counters(),
            memory_used: slices.memory().used(),
            memory: slices.memory().kinds(),
            disk: slices.disk().map(|disk| disk.stats()),
            places: places.collect(),
        }
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

impl Place {
    /// Returns what need not be asked: a fresh object, one that stands in for it, or that there is none.
    fn known(&self, path: &ObjectPath) -> Option<Result<Arc<Object>, OriginError>> {
        if let Some(object) = self.objects.get(path) {
            let fresh = object.fresh_for(self.freshness);
            let stands_in = || self.standing_in.get(path).is_some_and(|at| at.elapsed() < STALE_STEP);
            if object.is_fresh(fresh) || (!object.is_outdated() && stands_in()) {
                return Some(Ok(object));
            }
        }
        let (at, error) = self.absent.get(path)?;
        (at.elapsed() < ABSENT.min(self.freshness)).then_some(Err(error))
    }

    /// Returns what is given when the origin failed: the object as it was last seen, where that may be.
    fn stand_in(&self, path: &ObjectPath, error: OriginError) -> Result<Arc<Object>, OriginError> {
        if error.is_not_found() {
            self.objects.remove(path);
            self.absent.insert(path.clone(), (Instant::now(), error.clone()), 1);
            return Err(error);
        }
        let known = self.objects.get(path).filter(|_| error.may_pass());
        let fresh = |object: &Object| object.fresh_for(self.freshness);
        let Some(known) = known.filter(|object| object.outlasts_errors(fresh(object), STALE_IF_ERROR)) else {
            return Err(error);
        };
        stats::add(&self.source.counters.stale, 1);
        self.standing_in.insert(path.clone(), Instant::now(), 1);
        Ok(known)
    }
}

impl Inner {
    /// Asks the origin what is there now.
    async fn open_now(&self, place: &Place, path: &ObjectPath, wanted: Range<u64>) -> Result<Arc<Object>, OriginError> {
        let source = &place.source;
        let known = place.objects.get(path);
        stats::add(&source.counters.origin_requests, 1);
        if let Some((file, meta)) = source.origin.open_file(path).await? {
            if let Some(known) = still(known, &meta) {
                return Ok(known);
            }
            return Ok(self.remember(place, path, meta, Some(file)));
        }
        let known = known.filter(|known| !known.is_outdated());
        // What the disk may have is not asked for.
        let is_cached = || self.slices.disk().is_some_and(|disk| disk.knows(&source.name, path.as_str()));
        if known.is_none() && !is_cached() {
            match source.origin.read(path, self.first_read(source, wanted), None).await {
                Ok(fetched) => {
                    self.obey(source, path, &fetched.meta);
                    let object = self.remember(place, path, fetched.meta.clone(), None);
                    object.adopt(&self.slices, fetched);
                    return Ok(object);
                }
                Err(OriginError::OutOfRange { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let meta = source.origin.head(path).await?;
        self.obey(source, path, &meta);
        if let Some(known) = still(known, &meta) {
            return Ok(known);
        }
        Ok(self.remember(place, path, meta, None))
    }

    /// Takes slices off the disk that the origin no longer lets be stored.
    fn obey(&self, source: &NamedOrigin, path: &ObjectPath, meta: &ObjectMeta) {
        let Some(disk) = self.slices.disk() else { return };
        if meta.freshness.permission.is_storable() || !disk.knows(&source.name, path.as_str()) {
            return;
        }
        let of = |name: &ObjectName| *name.place == *source.name && *name.path == *path.as_str();
        for (object, _, _) in disk.objects().into_iter().filter(|(_, name, _)| of(name)) {
            disk.purge(|item| item.object == object);
        }
    }

    /// The range that opens an unknown object: whole slices of the wanted range. Where sibling caches may
    /// have it, as little as will do, for only the origin says which version there is.
    fn first_read(&self, source: &NamedOrigin, wanted: Range<u64>) -> Range<u64> {
        let slice = self.slices.slice();
        if wanted.is_empty() || source.origin.neighbours().is_some() {
            return 0..slice;
        }
        let start = wanted.start / slice * slice;
        let end = wanted.end.min(start.saturating_add(FIRST)).max(start + 1);
        start..end.div_ceil(slice).saturating_mul(slice)
    }

    fn remember(
        &self,
        place: &Place,
        path: &ObjectPath,
        meta: ObjectMeta,
        file: Option<Arc<std::fs::File>>,
    ) -> Arc<Object> {
        let source = place.source.clone();
        let named = Named::new(&source.name, path, &meta);
        let object = Arc::new(Object::new(named, source, path.clone(), meta, file));
        place.objects.insert(path.clone(), object.clone(), 1);
        place.absent.remove(path);
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
    known.confirm(meta.freshness);
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
    while let Some(bytes) = reader.next_bytes().await {
        let bytes = bytes?;
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
