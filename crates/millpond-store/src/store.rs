//! Places by name, and one slice cache for all of them.

mod derived_objects;
mod opening;
mod options;
mod place;
mod whole;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::disk::disk_tier::{DiskTier, Pin};
use crate::error::OriginError;
use crate::freshness::Permission;
use crate::memory::Memory;
use crate::memory::cache::Cache;
use crate::named_origin::NamedOrigin;
use crate::origin::{Entry, Listing, Origin};
use crate::path::ObjectPath;
use crate::policy::PolicyName;
use crate::purge_log::PurgeMark;
use crate::reading::object::Object;
use crate::reading::prefetch::Watch;
use crate::reading::reader::Reader;
use crate::schedule::Mode;
use crate::selection::Candidate;
use crate::single_flight::SingleFlight;
use crate::slices::SliceCache;
use crate::stats::{self, PlaceStats, Stats};

use derived_objects::DerivedObjects;
use opening::FirstRead;
pub use options::{DiskOptions, StoreError, StoreOptions};
use place::Place;
use whole::{collect, read_file};

/// Number of unused files that a place keeps open.
const OPEN_FILES: u64 = 256;

/// Number of objects of which a remote place remembers the metadata.
const REMEMBERED: u64 = 65_536;

/// Objects of all places, read through one slice cache. Clones share it.
///
/// Its methods must be called inside a Tokio runtime, for origin requests are tasks of their own.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    slices: Arc<SliceCache>,
    freshness: Option<Duration>,
    /// A lock: only operators change it.
    prefetch: RwLock<Mode>,
    /// A lock: places change only with the configuration.
    places: RwLock<BTreeMap<String, Arc<Place>>>,
    derived: DerivedObjects,
}

impl Store {
    /// Creates a store without places.
    ///
    /// # Errors
    ///
    /// The disk cache cannot be opened.
    pub fn new(options: &StoreOptions) -> Result<Self, StoreError> {
        let least = u64::from(options.slice) * 4;
        let memory = Memory::new(options.memory.max(least), PolicyName::Sieve);
        let disk = options.disk.as_ref().map(|disk| open_disk(disk, options.memory, options.slice)).transpose()?;
        Ok(Self(Arc::new(Inner {
            slices: Arc::new(SliceCache::new(memory, disk, options.slice, options.run)),
            freshness: options.freshness,
            prefetch: RwLock::new(options.prefetch),
            places: RwLock::default(),
            derived: DerivedObjects::default(),
        })))
    }

    /// Returns the size of a slice in bytes.
    pub fn slice_size(&self) -> u64 {
        self.0.slices.slice()
    }

    pub(crate) fn slices(&self) -> &Arc<SliceCache> {
        &self.0.slices
    }

    pub(crate) fn derived_objects(&self) -> &DerivedObjects {
        &self.0.derived
    }

    /// Opens a disk cache while running; does nothing where there is one.
    ///
    /// # Errors
    ///
    /// The disk cache cannot be opened.
    pub fn open_disk(&self, options: &DiskOptions) -> Result<(), StoreError> {
        if self.0.slices.disk().is_some() {
            return Ok(());
        }
        let slice = u32::try_from(self.slice_size()).unwrap_or(u32::MAX);
        let disk = open_disk(options, self.memory().budget(), slice)?;
        let (slices, start) = (self.slices(), PurgeMark::default());
        let purge = || disk.purge_objects(|name| slices.purges().has_removed(start, name.into()));
        // Its slices are older than the purges of this process. The second look is for purges between both.
        purge();
        slices.set_disk(disk.clone());
        purge();
        Ok(())
    }

    /// Forgets what is known of objects that are `removed`, adds their hashes to `hashes`, and has the origin asked for the versions of
    /// those that are `doubted`.
    pub(crate) fn forget(
        &self,
        removed: impl Fn(Candidate<'_>) -> bool,
        doubted: impl Fn(Candidate<'_>) -> bool,
        hashes: &mut HashSet<u64>,
    ) {
        for place in self.all() {
            let mut known = Vec::new();
            // Paths are compared without the lock, which viewers wait for.
            place.objects.each(|_, object| known.push(object.clone()));
            for object in known {
                let of = Candidate::from(&**object.named());
                if removed(of) {
                    place.objects.remove(object.path());
                    hashes.insert(object.named().hash);
                } else if doubted(of) {
                    object.doubt();
                }
            }
            // They are remembered for a second, and clients may have asked for many.
            place.absent.clear();
        }
    }

    /// Returns whether slices are kept on a disk.
    pub fn has_disk(&self) -> bool {
        self.slices().disk().is_some()
    }

    /// Stops using the disk. Releases its folder for another process when no slice is being read or written. Returns whether the
    /// folder has been released. If not, call this again a moment later. Slices are kept in memory from then on.
    pub fn leave_disk(&self) -> bool {
        self.0.slices.disk().is_none_or(|disk| disk.leave())
    }

    /// Changes the capacity of the disk, up to its initial one, and its eviction policy, while running.
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
        self.0.derived.all().into_iter().for_each(|object| object.source().scheduler.set_mode(mode));
    }

    /// Changes the memory limit while running. At least four slices are used.
    pub fn set_memory(&self, bytes: u64) {
        self.memory().set_budget(bytes.max(self.slice_size() * 4));
    }

    /// Returns whether the store uses the positions of an object's viewers. The caller then makes a
    /// [`Watch`](crate::Watch) for each viewer.
    pub fn follows_viewers(&self, object: &Object) -> bool {
        object.file().is_none() && self.prefetch_mode().follows_viewers()
    }

    /// Prepares an object before its first byte is sent: with [`Mode::Full`], fetches all of it. Returns at once with
    /// other modes and for open files.
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

    /// Returns the memory of the slices: one budget for the whole process if others keep their entries in it too.
    pub fn memory(&self) -> &Arc<Memory> {
        self.0.slices.memory()
    }

    /// Adds an origin under a name, `""` for a single one, and replaces the earlier one of that name. Open objects stay
    /// readable.
    pub fn add_place(&self, name: &str, origin: Arc<dyn Origin>) {
        let local = origin.facts().is_local;
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

    /// Removes a place. Open objects stay readable, and its slices stay cached until others need their room.
    pub fn remove_place(&self, name: &str) {
        self.0.places.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// Tells whether the files of a place lie on this machine: requests for them cost no other server anything.
    pub fn is_local(&self, place: &str) -> bool {
        self.place(place).is_ok_and(|place| place.source.origin.facts().is_local)
    }

    /// Returns the places by name, each with a description of its origin.
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

    /// Opens an object, or returns the open one if its metadata is fresh.
    ///
    /// Concurrent callers share one request. For an unknown remote object it is a read of its first slice, which is
    /// kept; for a known one it is a HEAD.
    ///
    /// # Errors
    ///
    /// The error of the origin, or [`OriginError::NoSuchPlace`]. An absent object is remembered for a second. If the origin fails
    /// otherwise, returns the object as last seen, while it may be used.
    pub async fn open(&self, place: &str, path: &ObjectPath) -> Result<Arc<Object>, OriginError> {
        self.open_for(place, path, 0..1).await
    }

    /// As [`open`](Self::open), for a caller that will read a range: the request that opens an unknown object asks for
    /// that range instead of the first slice.
    ///
    /// # Errors
    ///
    /// As `open`. A range behind the end of the object is no error.
    pub async fn open_for(
        &self,
        place: &str,
        path: &ObjectPath,
        wanted: Range<u64>,
    ) -> Result<Arc<Object>, OriginError> {
        self.open_by(place, path, FirstRead::Slices(wanted)).await
    }

    /// As [`open`](Self::open), for a caller that will read the first `len` bytes: the request that opens an unknown object asks for
    /// these, and not for a whole slice.
    ///
    /// # Errors
    ///
    /// As `open`.
    pub async fn open_head(&self, place: &str, path: &ObjectPath, len: u64) -> Result<Arc<Object>, OriginError> {
        self.open_by(place, path, FirstRead::Head(len)).await
    }

    async fn open_by(&self, place: &str, path: &ObjectPath, first: FirstRead) -> Result<Arc<Object>, OriginError> {
        let place = self.place(place)?;
        if let Some(known) = place.known(path) {
            return known;
        }
        let opened = || {
            place.opening.run(path, || {
                let (inner, place, path, first) = (self.0.clone(), place.clone(), path.clone(), first.clone());
                async move {
                    let result = inner.open_now(&place, &path, first).await;
                    result.or_else(|error| place.stand_in(&path, place.source.counters.failed(error)))
                }
            })
        };
        let (mut result, joined) = opened().await;
        if joined {
            stats::add(&place.source.counters.collapsed, 1);
            // A request from before a purge answers nobody who came after it.
            if result.as_ref().is_ok_and(|object| object.is_doubted()) {
                result = opened().await.0;
            }
        }
        result
    }

    /// Returns a known object, fresh or not, without asking the origin.
    pub fn peek(&self, place: &str, path: &ObjectPath) -> Option<Arc<Object>> {
        let place = self.place(place).ok()?;
        place.objects.get(path).filter(|object| !object.is_outdated())
    }

    /// Returns the entries of a folder by name.
    ///
    /// # Errors
    ///
    /// The error of the origin; [`OriginError::Unsupported`] for an HTTP server without index pages.
    pub async fn list(&self, place: &str, folder: &ObjectPath) -> Result<Vec<Entry>, OriginError> {
        let place = self.place(place)?;
        let (result, joined) = place
            .listing
            .run(folder, || {
                let (source, folder) = (place.source.clone(), folder.clone());
                async move {
                    stats::add(&source.counters.requests, 1);
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

    /// Returns the origin's current caching permissions for an object. They come from its last reply about the version, through
    /// any [`Object`].
    pub fn permission(&self, object: &Object) -> Permission {
        if object.file().is_some() {
            return object.permission();
        }
        let known = self.peek(object.place(), object.path());
        let same = known.filter(|known| known.meta().version == object.meta().version);
        same.map_or_else(|| object.permission(), |known| known.permission())
    }

    /// Returns the permissions of the origin for caches of a folder's list, as of its last reply.
    pub fn listing_permission(&self, place: &str, folder: &ObjectPath) -> Permission {
        let listed = self.place(place).ok().and_then(|place| place.listed.get(folder));
        listed.map_or_else(Permission::default, |(at, permission)| permission.after(at.elapsed()))
    }

    /// Reads a range piece by piece, cut at the end of the object. The origin is not asked before the first
    /// [`Reader::next`].
    pub fn read(&self, object: &Arc<Object>, range: Range<u64>) -> Reader {
        Reader::new(self.0.slices.clone(), object.clone(), range)
    }

    /// Notes that a range of a file that a [`Reader`] returned with `pin` could not be read to its end. `offset` is the
    /// position in the object. A slice of the cache is dropped, so that the next read fetches it again.
    ///
    /// # Errors
    ///
    /// [`OriginError::Truncated`] where the file is the object itself, whose bytes have no other source.
    pub fn lost(&self, object: &Object, offset: u64, pin: Option<&Pin>) -> Result<(), OriginError> {
        match pin {
            Some(pin) => pin.drop_damaged(),
            None => return Err(object.is_cut(offset)),
        }
        Ok(())
    }

    /// Reads exactly a range, and waits for all of it: for metadata. It is read from slices if all of them are in
    /// memory or on their way. Otherwise exactly the range is requested, not cached, and shared by all concurrent
    /// callers of the same range.
    ///
    /// # Errors
    ///
    /// The error of the origin; [`OriginError::OutOfRange`] where the range ends behind the object.
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
        let (bytes, joined) = object.read_exact(range, self.slices().purges().mark()).await?;
        if joined {
            stats::add(&object.source().counters.collapsed, 1);
        }
        Ok(bytes)
    }

    /// Reads a whole object, and waits for all of it. Other than by [`read_all`](Self::read_all), its missing slices are fetched and cached.
    ///
    /// # Errors
    /// The error of the origin.
    pub async fn read_whole(&self, object: &Arc<Object>) -> Result<Bytes, OriginError> {
        collect(self.read(object, 0..object.meta().len)).await
    }

    /// Returns whether a range can be read without a further request to the origin.
    pub fn is_near(&self, object: &Arc<Object>, range: &Range<u64>) -> bool {
        object.file().is_some() || object.is_coming(self.slices(), range)
    }

    /// Fetches the missing slices of a range, without waiting: one origin request for each missing run. At most one
    /// run's length is fetched; the rest of the range is left out. Does nothing for an open file.
    pub fn prefetch(&self, object: &Arc<Object>, range: Range<u64>) {
        if object.file().is_some() {
            return;
        }
        let end = range.end.min(object.meta().len).min(range.start.saturating_add(self.0.slices.run()));
        object.prefetch(&self.0.slices, &(range.start..end), u64::MAX);
    }

    /// Fetches the missing bytes of a range as [`prefetch`](Self::prefetch), but none behind the range: the rest of its last slice is
    /// fetched when it is needed. At most one run's length is fetched.
    /// If a request that is under way stops within the first slice, waits for its end.
    pub async fn prefetch_exactly(&self, object: &Arc<Object>, range: Range<u64>) {
        if object.file().is_some() {
            return;
        }
        let end = range.end.min(object.meta().len);
        let most = range.start.saturating_add(self.0.slices.run());
        object.until_stopped(&self.0.slices, &range).await;
        let stop = if end <= most { end } else { u64::MAX };
        object.prefetch(&self.0.slices, &(range.start..end.min(most)), stop);
    }

    /// Adds a viewer of a remote object. [`Watch::moves`] sets its position.
    pub fn watch(&self, object: &Arc<Object>) -> Watch {
        Watch::new(self.slices(), object)
    }

    /// Returns the counters.
    pub fn stats(&self) -> Stats {
        let places = self.all().into_iter().map(|place| {
            let source = &place.source;
            let counts = source.origin.counts();
            let (used, unused) = source.speculation.bytes();
            PlaceStats {
                prefetched_bytes: used + unused,
                prefetched_unused_bytes: unused,
                watched: source.scheduler.viewers(),
                link_bandwidth: source.measured().unwrap_or_default() as u64,
                ..source.counters.snapshot(&source.name, counts)
            }
        });
        let slices = &self.0.slices;
        Stats {
            cache: slices.counters(),
            memory_used: slices.memory().used(),
            memory: slices.memory().kinds(),
            disk: slices.disk().map(|disk| disk.stats()),
            lookups: slices.lookup_times(),
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

/// Opens the disk cache of a store with `memory` bytes of memory and slices of `slice` bytes.
fn open_disk(disk: &DiskOptions, memory: u64, slice: u32) -> Result<Arc<DiskTier>, StoreError> {
    // Slices that wait to be written use memory that the ledger may not count any more.
    let waiting = (memory / 8 / u64::from(slice).max(1)).clamp(2, 256) as usize;
    Ok(DiskTier::open(&disk.folder, disk.quota, slice, disk.policy, waiting)?)
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("places", &self.places().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
