//! An opened object.

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::{
    disk::named::Named,
    error::OriginError,
    freshness::{Freshness, Permission},
    named_origin::NamedOrigin,
    origin::{ObjectMeta, disk},
    path::ObjectPath,
    purge_log::PurgeMark,
    reading::flight::Flight,
    single_flight::SingleFlight,
    slice::SliceId,
    slices::SliceCache,
    stats::Usage,
};

/// Most slices of a range that are looked up one by one.
const MOST_LOOKED_UP: u64 = 1 << 12;

/// One version of one object, open for reading. Shared by all its readers.
///
/// It stays readable while anyone holds it, but never becomes another version. Where the origin has a new one, reads
/// fail with [`OriginError::Changed`], and the next [`Store::open`](crate::Store::open) returns a new object.
pub struct Object {
    named: Arc<Named>,
    source: Arc<NamedOrigin>,
    path: ObjectPath,
    meta: ObjectMeta,
    file: Option<Arc<File>>,
    /// Time at which the origin last confirmed the version, and the freshness that it stated. A lock, which is written
    /// every few seconds.
    checked: Mutex<(Instant, Freshness)>,
    changed: AtomicBool,
    /// Whether the origin must be asked before the metadata is trusted again.
    doubted: AtomicBool,
    /// Whether the log tells that its bytes are damaged.
    damage_told: AtomicBool,
    /// Origin requests under way. A lock: readers and flights change it from many tasks.
    flights: Mutex<Vec<Arc<Flight>>>,
    /// Exact reads under way. Those of before a purge are not joined after it.
    exact: SingleFlight<(PurgeMark, Range<u64>), Result<Bytes, OriginError>>,
    pub(crate) usage: Usage,
}

impl Object {
    pub(crate) fn new(
        named: Named,
        source: Arc<NamedOrigin>,
        path: ObjectPath,
        meta: ObjectMeta,
        file: Option<Arc<File>>,
    ) -> Self {
        Self {
            named: Arc::new(named),
            source,
            path,
            checked: Mutex::new((Instant::now(), meta.freshness)),
            meta,
            file,
            changed: AtomicBool::new(false),
            doubted: AtomicBool::new(false),
            damage_told: AtomicBool::new(false),
            flights: Mutex::default(),
            exact: SingleFlight::new(),
            usage: Usage::default(),
        }
    }

    /// Returns the metadata from the origin.
    pub fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    /// Returns the path inside the place.
    pub fn path(&self) -> &ObjectPath {
        &self.path
    }

    /// Returns the name of the place.
    pub fn place(&self) -> &str {
        &self.source.name
    }

    /// Returns the address of its place's storage, without secrets: a URL, or a folder.
    pub fn address(&self) -> &str {
        &self.source.description
    }

    /// Returns the open file, where the object is one.
    pub fn file(&self) -> Option<&Arc<File>> {
        self.file.as_ref()
    }

    /// Returns the names of the stores that hold its units; empty where one link carries it.
    pub fn stores(&self) -> Vec<Arc<str>> {
        self.source.origin.striping(&self.path).map_or_else(Vec::new, |striping| striping.names)
    }

    pub(crate) fn source(&self) -> &NamedOrigin {
        &self.source
    }

    pub(crate) fn source_of(&self) -> Arc<NamedOrigin> {
        self.source.clone()
    }

    pub(crate) fn slice_id(&self, index: u64) -> SliceId {
        SliceId { object: self.named.hash, index }
    }

    pub(crate) fn named(&self) -> &Arc<Named> {
        &self.named
    }

    /// Returns whether the metadata is younger than `freshness`, and neither outdated nor doubted.
    pub(crate) fn is_fresh(&self, freshness: Duration) -> bool {
        !self.doubted.load(Ordering::Relaxed) && self.is_within(freshness)
    }

    fn is_within(&self, freshness: Duration) -> bool {
        !self.changed.load(Ordering::Relaxed) && self.checked().0.elapsed() < freshness
    }

    /// Makes the next [`Store::open`](crate::Store::open) ask the origin, however fresh the metadata is, because
    /// another version is known.
    pub fn doubt(&self) {
        self.doubted.store(true, Ordering::Relaxed);
    }

    /// Returns whether the origin must be asked before the metadata is trusted again.
    pub(crate) fn is_doubted(&self) -> bool {
        self.doubted.load(Ordering::Relaxed)
    }

    /// Checks that an object that is an open file is still the version that was opened. Another program may have
    /// written into the file. One `fstat` without disk access.
    ///
    /// # Errors
    ///
    /// [`OriginError::Changed`], after which the object is [out of date](Self::is_outdated).
    pub fn check(&self) -> Result<(), OriginError> {
        let Some(file) = &self.file else { return Ok(()) };
        let at = || self.source.at(&self.path);
        let error = match disk::is_unchanged(file, &self.meta) {
            Ok(true) => return Ok(()),
            Ok(false) => OriginError::Changed { at: at(), expected: self.meta.version.clone(), found: None },
            Err(error) => OriginError::Io { at: at(), kind: error.kind(), detail: error.to_string() },
        };
        self.note(&error);
        Err(error)
    }

    fn checked(&self) -> MutexGuard<'_, (Instant, Freshness)> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time for which the origin lets it be trusted, or `usual` if the origin does not state one.
    pub(crate) fn fresh_for(&self, usual: Duration) -> Duration {
        self.checked().1.fresh.unwrap_or(usual)
    }

    /// Returns the permissions of the origin, as far as this object knows: see
    /// [`Store::permission`](crate::Store::permission).
    pub(crate) fn permission(&self) -> Permission {
        let (at, freshness) = *self.checked();
        freshness.permission.after(at.elapsed())
    }

    /// Whether its origin shows objects only when they are complete: see
    /// [`OriginFacts::stores_whole`](crate::OriginFacts::stores_whole).
    pub fn is_stored_whole(&self) -> bool {
        self.source.origin.facts().stores_whole
    }

    /// Returns whether its bytes may be written to a disk.
    pub fn is_storable(&self) -> bool {
        self.checked().1.permission.is_storable()
    }

    /// Merges the permissions of a later reply, which may be stricter. Its lifetime does not count, because the reply
    /// may come from a sibling.
    pub(crate) fn restrict(&self, said: &Freshness) {
        let permission = &mut self.checked().1.permission;
        permission.storage = permission.storage.max(said.permission.storage);
        permission.no_cache |= said.permission.no_cache;
    }

    /// Returns whether it may be used while the origin fails. `usual` is the time limit if the origin does not state
    /// one.
    pub(crate) fn outlasts_errors(&self, fresh: Duration, usual: Duration) -> bool {
        let more = self.checked().1.stale_if_error.unwrap_or(usual);
        self.is_within(fresh.saturating_add(more))
    }

    /// Notes that the origin confirmed the version, with its freshness.
    pub(crate) fn confirm(&self, freshness: Freshness) {
        *self.checked() = (Instant::now(), freshness);
        self.doubted.store(false, Ordering::Relaxed);
    }

    /// Returns whether the origin was seen to have another version.
    pub fn is_outdated(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    /// Counts a failure, and notes its consequences for the version.
    pub(crate) fn note(&self, error: &OriginError) {
        self.source.counters.failed(error.clone());
        if error.is_changed() || error.is_not_found() {
            self.changed.store(true, Ordering::Relaxed);
        }
    }

    /// Notes that its bytes are damaged. Returns whether that is the first time: one line of the log is enough for a version.
    pub fn note_damage(&self) -> bool {
        !self.damage_told.swap(true, Ordering::Relaxed)
    }

    /// Returns the counted error for an open file that ends at `offset`, before its expected end.
    pub(crate) fn is_cut(&self, offset: u64) -> OriginError {
        let error = OriginError::Truncated {
            at: self.source.at(&self.path),
            expected: self.meta.len,
            received: offset,
            detail: "the file became shorter while it was sent".into(),
        };
        self.note(&error);
        self.changed.store(true, Ordering::Relaxed);
        error
    }

    pub(crate) fn flights(&self) -> MutexGuard<'_, Vec<Arc<Flight>>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of bytes of a range that are neither cached nor arrived. Behind the first [`MOST_LOOKED_UP`] slices all bytes
    /// count: an origin may state any length.
    pub(crate) fn missing(&self, slices: &SliceCache, range: &Range<u64>) -> u64 {
        let looked_up = range.start.saturating_add(MOST_LOOKED_UP.saturating_mul(slices.slice())).min(range.end);
        let rest = range.end - looked_up;
        let range = &(range.start..looked_up);
        let flights = self.flights();
        let missing = |index: u64| {
            let part = slices.range(index, self.meta.len);
            let arrived = match slices.contains(self.slice_id(index)) {
                true => part.end,
                false => part.start + flights.iter().map(|flight| flight.arrived(index)).max().unwrap_or(0),
            };
            part.end.min(range.end).saturating_sub(arrived.max(range.start))
        };
        slices.indexes(range).map(missing).sum::<u64>().saturating_add(rest)
    }

    /// Returns whether each slice of a range is complete or will be soon.
    pub(crate) fn is_coming(&self, slices: &SliceCache, range: &Range<u64>) -> bool {
        let flights = self.flights();
        slices.indexes(range).all(|index| {
            let soon = |flight: &Arc<Flight>| flight.will_bring_soon(index, slices);
            let needed = range.end.saturating_sub(slices.range(index, self.meta.len).start).min(slices.slice());
            flights.iter().any(soon) || slices.reaches(self.slice_id(index), needed)
        })
    }

    async fn read_once(&self, range: Range<u64>) -> Result<Bytes, OriginError> {
        let fetched = self.source.read(&self.path, range.clone(), &self.meta).await?;
        self.restrict(&fetched.meta.freshness);
        self.source.collect(&self.path, range, fetched).await
    }

    /// Reads exactly a range from the origin, once for all callers of the same range since the last purge.
    pub(crate) async fn read_exact(
        self: &Arc<Self>,
        range: Range<u64>,
        since: PurgeMark,
    ) -> Result<(Bytes, bool), OriginError> {
        let (result, joined) = self
            .exact
            .run(&(since, range.clone()), || {
                let (object, range) = (self.clone(), range.clone());
                async move {
                    let result = object.read_once(range).await;
                    result.inspect_err(|error| object.note(error))
                }
            })
            .await;
        result.map(|bytes| (bytes, joined))
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("place", &self.source.name)
            .field("path", &self.path)
            .field("meta", &self.meta)
            .finish_non_exhaustive()
    }
}
