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
use crate::object::{Named, Object};
use crate::origin::{Entry, Listing, ObjectMeta, Origin, disk};
use crate::path::ObjectPath;
use crate::policy::{self, Policy};
use crate::reader::{Reader, check_file};
use crate::schedule::Mode;
use crate::single_flight::SingleFlight;
use crate::slab::{ObjectName, SlabError};
use crate::slices::SliceCache;
use crate::source::Source;
use crate::stats::{self, PlaceStats, Stats};

/// How many files a place keeps open for the next who asks; those in use are open besides.
const OPEN_FILES: u64 = 256;

/// Of how many objects a remote place remembers the metadata.
const REMEMBERED: u64 = 65_536;

/// How long it is believed that an object isn't there.
const ABSENT: Duration = Duration::from_secs(1);

/// How long an object is used while its origin fails, where the origin doesn't say.
const STALE_IF_ERROR: Duration = Duration::from_secs(24 * 3600);

/// After a failure, a stale object is used for this long before the origin is asked again.
const STALE_STEP: Duration = Duration::from_secs(1);

/// The most that the request asks for that tells what an object is, in bytes.
const FIRST: u64 = 1 << 30;

/// How a [`Store`] is made.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Memory in bytes: for slices, complete ones and those being filled, and for what others keep in
    /// [`Store::memory`]. At least four slices are used.
    pub memory: u64,
    /// Which entry of the memory goes: one of [`policy::NAMES`].
    pub memory_policy: &'static str,
    /// Where slices are kept on a disk, if at all.
    pub disk: Option<DiskOptions>,
    /// The size of a slice, in bytes.
    pub slice: u32,
    /// How far an origin request goes ahead of those who read what it brings, in bytes.
    pub run: u64,
    /// How long metadata is trusted; by default 1 s for a disk, 10 s for others.
    pub freshness: Option<Duration>,
    /// When slices are sent for that viewers will need next.
    pub prefetch: Mode,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            memory: 256 * 1024 * 1024,
            memory_policy: "sieve",
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
    /// Which slice goes: one of [`policy::NAMES`].
    pub policy: &'static str,
}

/// Why a [`Store`] can't be made as asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such replacement policy.
    #[error("there is no policy {name:?}: there are {}", policy::NAMES.join(", "))]
    NoSuchPolicy {
        /// What was asked for.
        name: String,
    },
    /// The disk cache can't be opened.
    #[error("{0}")]
    Disk(#[from] SlabError),
}

fn policy_of(name: &str) -> Result<Box<dyn Policy>, StoreError> {
    policy::by_name(name).ok_or_else(|| StoreError::NoSuchPolicy { name: name.to_owned() })
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
    source: Arc<Source>,
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
    /// Where there is no such policy, or the disk cache can't be opened: without one, no store is to fail.
    pub fn new(options: &StoreOptions) -> Result<Self, StoreError> {
        let least = u64::from(options.slice) * 4;
        let memory = Memory::new(options.memory.max(least), policy_of(options.memory_policy)?);
        let open = |disk: &DiskOptions| -> Result<_, StoreError> {
            // What waits to be written is memory that the ledger may have given up already.
            let waiting = (options.memory / 8 / u64::from(options.slice).max(1)).clamp(2, 256) as usize;
            Ok(DiskTier::open(&disk.folder, disk.quota, options.slice, policy_of(disk.policy)?, waiting)?)
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

    /// Changes, while running, what the disk holds at most (up to what it was opened with) and which slice goes.
    ///
    /// # Errors
    ///
    /// Where there is no such policy.
    pub fn set_disk(&self, capacity: Option<u64>, policy: Option<&str>) -> Result<(), StoreError> {
        let policy = policy.map(policy_of).transpose()?;
        if let Some(disk) = self.0.slices.disk() {
            policy.into_iter().for_each(|policy| disk.set_policy(policy));
            capacity.into_iter().for_each(|bytes| disk.set_capacity(bytes));
        }
        Ok(())
    }

    /// When slices are sent for that viewers will need next.
    pub fn prefetch_mode(&self) -> Mode {
        *self.0.prefetch.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes that, while running, for the viewers that are there too.
    pub fn set_prefetch_mode(&self, mode: Mode) {
        *self.0.prefetch.write().unwrap_or_else(PoisonError::into_inner) = mode;
        self.all().into_iter().for_each(|place| place.source.scheduler.set_mode(mode));
    }

    /// Changes, while running, how much memory is used for all that is kept, at least for four slices.
    pub fn set_memory(&self, bytes: u64) {
        self.memory().set_budget(bytes.max(self.slice_size() * 4));
    }

    /// Waits until all of an object is here: what [`Mode::Full`] does before anything is sent.
    ///
    /// # Errors
    ///
    /// What the origin says.
    pub async fn fill(&self, object: &Arc<Object>) -> Result<(), OriginError> {
        let mut reader = self.read(object, 0..object.meta().len);
        while object.file().is_none()
            && let Some(chunk) = reader.next().await
        {
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
            source: Arc::new(Source::new(name, origin, self.prefetch_mode(), self.slice_size())),
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
    /// What the origin says, or [`OriginError::NoSuchPlace`]. That there is no such object is remembered for a second;
    /// where the origin fails otherwise, the object as it was last seen is given, for as long as that may be used.
    pub async fn open(&self, place: &str, path: &ObjectPath) -> Result<Arc<Object>, OriginError> {
        self.open_for(place, path, 0..1).await
    }

    /// As [`open`](Self::open), for somebody who will read a range: the request that tells what an unknown object is
    /// asks for that instead of the first slice.
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

    /// An object that is known, its metadata fresh or not: asks nobody.
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

    /// Whether a range can be read without asking the origin for anything more than is on its way.
    pub fn is_near(&self, object: &Arc<Object>, range: &Range<u64>) -> bool {
        object.file().is_some() || object.is_coming(self.slices(), range)
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
            let (used, unused) = source.speculation.bytes();
            PlaceStats {
                neighbours: source.origin.neighbours(),
                prefetched_bytes: used + unused,
                prefetched_unused_bytes: unused,
                watched: source.scheduler.viewers(),
                link_bandwidth: source.link().0.bandwidth as u64,
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
    /// What need not be asked: a fresh object, one that stands in for it, or that there is none.
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

    /// What is given when the origin failed: the object as it was last seen, where that may be.
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
    fn obey(&self, source: &Source, path: &ObjectPath, meta: &ObjectMeta) {
        let Some(disk) = self.slices.disk() else { return };
        if meta.freshness.permission.is_storable() || !disk.knows(&source.name, path.as_str()) {
            return;
        }
        let of = |name: &ObjectName| *name.place == *source.name && *name.path == *path.as_str();
        for (object, _, _) in disk.objects().into_iter().filter(|(_, name, _)| of(name)) {
            disk.purge(|item| item.object == object);
        }
    }

    /// What is asked for of an object that nobody knows yet: whole slices of what is wanted. Where sibling caches may
    /// have it, as little as will do, for only the origin says which version there is.
    fn first_read(&self, source: &Source, wanted: Range<u64>) -> Range<u64> {
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
