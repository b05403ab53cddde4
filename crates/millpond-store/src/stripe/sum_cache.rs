//! Checksums of striped objects, read from their stores when a unit is read, and kept in memory.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

use super::group_store::GroupStore;
use super::map::{StripeMap, SumRoot, sums_path};
use super::part::StoredObject;
use super::sums::{SumHead, SumPage, UnitSums};
use crate::error::{At, OriginError, Phase};
use crate::memory::cache::Cache;
use crate::single_flight::SingleFlight;

/// Memory of a place for heads, in bytes. The longest head has 128 KiB.
const HEADS: u64 = 4 << 20;
/// Memory of a place for pages, in bytes: 64 KiB for each GiB of the objects that are read.
const PAGES: u64 = 16 << 20;
/// Bytes that an entry takes besides its checksums.
const ENTRY: u64 = 256;

/// A page of checksums. Maps with the same root have the same pages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PageKey {
    root: SumRoot,
    page: u64,
}

/// Verified checksums in memory.
#[derive(Debug)]
pub(super) struct SumCache {
    kept: Kept,
    flights: SingleFlight<PageKey, Result<SumPage, OriginError>>,
}

/// Heads (of page 0) and pages.
#[derive(Clone, Debug)]
struct Kept {
    heads: Cache<PageKey, SumHead>,
    pages: Cache<PageKey, SumPage>,
}

impl SumCache {
    pub(super) fn new() -> Self {
        Self { kept: Kept { heads: Cache::new(HEADS), pages: Cache::new(PAGES) }, flights: SingleFlight::new() }
    }

    /// Returns the checksums of a unit; `None` for a map without checksums. `stores` are those of the map. Each has all
    /// checksums, so one sound store suffices.
    ///
    /// # Errors
    ///
    /// No store has the map's checksums.
    pub(super) async fn unit(
        &self,
        map: &Arc<StripeMap>,
        unit: u64,
        stores: impl FnOnce() -> Vec<Arc<GroupStore>>,
        patience: Duration,
    ) -> Result<Option<UnitSums>, OriginError> {
        let Some(root) = map.sum_root() else { return Ok(None) };
        let key = PageKey { page: root.table.page_of(unit), root: root.clone() };
        let page = match self.kept.pages.get(&key) {
            Some(page) => page,
            None => {
                let start = || load(self.kept.clone(), key.clone(), map.clone(), stores(), patience);
                self.flights.run(&key, start).await.0?
            }
        };
        let none = || OriginError::NotFound { at: At::new(map.id(), "sums") };
        page.unit(unit).map(Some).ok_or_else(none)
    }
}

/// Reads a page from the first store that has it.
async fn load(
    kept: Kept,
    key: PageKey,
    map: Arc<StripeMap>,
    stores: Vec<Arc<GroupStore>>,
    patience: Duration,
) -> Result<SumPage, OriginError> {
    let mut last = None;
    for (index, store) in stores.iter().enumerate() {
        let is_last = index + 1 == stores.len();
        match page_of(&kept, &key, &map, store, (!is_last).then_some(patience)).await {
            Ok(page) => {
                kept.pages.insert(key, page.clone(), page.length() + ENTRY);
                return Ok(page);
            }
            Err(error) => {
                store.counters.failures.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(id = map.id(), store = %store.name, %error, "checksums of units cannot be read here");
                if error.may_pass() && stores.len() > 1 {
                    store.failed();
                }
                last = Some(error);
            }
        }
    }
    Err(last.unwrap_or_else(|| OriginError::NotFound { at: At::new(map.id(), "sums") }))
}

/// Reads a page of one store, and the head before it if that is not in memory.
async fn page_of(
    kept: &Kept,
    key: &PageKey,
    map: &StripeMap,
    store: &GroupStore,
    patience: Option<Duration>,
) -> Result<SumPage, OriginError> {
    let of_head = PageKey { page: 0, ..key.clone() };
    let head = match kept.heads.get(&of_head) {
        Some(head) => head,
        None => {
            let bytes = read(map, store, &key.root, 0..key.root.table.head_length(), patience).await?;
            let head = key
                .root
                .table
                .head(bytes, &key.root.sha256)
                .map_err(|error| damaged(map, store, &error.to_string()))?;
            kept.heads.insert(of_head, head.clone(), head.length() + ENTRY);
            head
        }
    };
    let bytes = read(map, store, &key.root, key.root.table.page_range(key.page), patience).await?;
    head.page(key.page, bytes).map_err(|error| damaged(map, store, &error.to_string()))
}

/// Reads a part of the checksums: with retries, or without them and for at most `patience`.
async fn read(
    map: &StripeMap,
    store: &GroupStore,
    root: &SumRoot,
    range: std::ops::Range<u64>,
    patience: Option<Duration>,
) -> Result<Bytes, OriginError> {
    let Some(path) = sums_path(map.id()) else { return Ok(Bytes::new()) };
    let object = StoredObject::sums(&path, root.table.length());
    store.counters.requests.fetch_add(1, Ordering::Relaxed);
    let bytes = match patience {
        None => object.read(&*store.patient, range).await?,
        Some(after) => timeout(after, object.read(&*store.plain, range)).await.unwrap_or_else(|_| {
            let at = At::new(&store.plain.describe(), path.as_str());
            Err(OriginError::Timeout { at, phase: Phase::Stalled, after })
        })?,
    };
    store.counters.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    Ok(bytes)
}

/// Counts and tells checksums that are damaged at a store.
fn damaged(map: &StripeMap, store: &GroupStore, fault: &str) -> OriginError {
    let path = sums_path(map.id()).map_or_else(String::new, |path| path.to_string());
    if store.found_damaged(&path) {
        let object = &map.source().location;
        tracing::warn!(object, sums = path, store = %store.name, fault, "checksums of a striped file are damaged at a store");
    }
    let at = At::new(&store.plain.describe(), &path);
    OriginError::BadReply { at, expected: "the checksums of the map".into(), found: fault.to_owned() }
}
