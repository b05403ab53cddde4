//! Striped objects over stores in memory, of which some fail.

mod folders;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::Semaphore;

use super::group::StripeGroup;
use super::group_store::GroupStore;
use super::map::{StripeMap, StripeSource};
use super::origin::StripedOrigin;
use super::sink::{MapTarget, StripeError};
use super::sums::{SumTable, SumWriter};
use super::writing::{StripePlan, stripe};
use super::{ScrubOutcome, Scrubbed, remove_striped, scrub, unstripe};
use crate::error::{At, OriginError};
use crate::layout::Layout;
use crate::location::OriginLocation;
use crate::origin::memory::MemoryOrigin;
use crate::origin::retry::{RetryOrigin, RetryPolicy};
use crate::origin::{BoxFuture, Fetched, Listing, ObjectMeta, Origin, RemoteOptions};
use crate::path::ObjectPath;
use crate::striping::{StripeStore, StripingOptions};

const UNIT: u64 = 64 << 10;

fn path(text: &str) -> ObjectPath {
    ObjectPath::parse(text).unwrap()
}

fn film() -> Vec<u8> {
    (0..1_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// A store that may be dead, silent, or wait until it is let go on.
#[derive(Debug)]
struct Store {
    inner: MemoryOrigin,
    is_dead: AtomicBool,
    is_silent: AtomicBool,
    gate: Semaphore,
    under_way: AtomicUsize,
    asked: AtomicUsize,
}

impl Store {
    fn new(name: &str) -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryOrigin::new(name),
            is_dead: AtomicBool::new(false),
            is_silent: AtomicBool::new(false),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
            under_way: AtomicUsize::new(0),
            asked: AtomicUsize::new(0),
        })
    }
}

impl Origin for Store {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn head<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<ObjectMeta, OriginError>> {
        self.inner.head(path)
    }

    fn read<'a>(
        &'a self,
        path: &'a ObjectPath,
        range: Range<u64>,
        expected: Option<&'a ObjectMeta>,
    ) -> BoxFuture<'a, Result<Fetched, OriginError>> {
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::Relaxed);
            self.under_way.fetch_add(1, Ordering::Relaxed);
            let _turn = self.gate.acquire().await;
            self.under_way.fetch_sub(1, Ordering::Relaxed);
            if self.is_silent.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            if self.is_dead.load(Ordering::Relaxed) {
                let at = At::new(&self.describe(), path.as_str());
                return Err(OriginError::Connect { at, detail: "connection refused".into() });
            }
            self.inner.read(path, range, expected).await
        })
    }

    fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
        self.inner.list(folder)
    }
}

/// Four stores with a striped object `films/a.mp4`, and the place of its map.
struct Group {
    stores: Vec<Arc<Store>>,
    place: MemoryOrigin,
    origin: StripedOrigin,
}

impl Group {
    /// With a map of the first format.
    fn new(copies: usize, batch: usize) -> Self {
        Self::of_format(copies, batch, false)
    }

    /// With checksums on each store.
    fn summed(copies: usize) -> Self {
        Self::of_format(copies, 0, true)
    }

    fn of_format(copies: usize, batch: usize, has_sums: bool) -> Self {
        let stores: Vec<_> = ["a", "b", "c", "d"].map(Store::new).into();
        let place = MemoryOrigin::new("place");
        let layout = Layout::new(film().len() as u64, UNIT, 4, copies).unwrap();
        let (sums, root) = sums(layout);
        let map = map_with(layout, &["a", "b", "c", "d"], has_sums.then_some(root));
        for store in stores.iter().filter(|_| has_sums) {
            store.inner.put(SUMS, sums.clone());
        }
        for unit in 0..layout.units() {
            let range = layout.bytes(unit);
            let bytes = Bytes::from(film()[range.start as usize..range.end as usize].to_vec());
            for store in layout.stores_of(unit) {
                stores[store].inner.put(map.unit_path(unit).unwrap().as_str(), bytes.clone());
            }
        }
        place.put("films/a.mp4.stripe", map.write());
        let policy = RetryPolicy { tries: 2, base: Duration::from_millis(1) };
        let named = stores.iter().zip(["a", "b", "c", "d"]).map(|(store, name)| {
            let patient = Arc::new(RetryOrigin::new(store.clone(), policy));
            GroupStore::new(name.into(), store.clone(), patient, None)
        });
        let group = StripeGroup::new(named, Duration::from_secs(1));
        let origin = StripedOrigin::over(Arc::new(place.clone()), group, batch, Duration::from_secs(5));
        Self { stores, place, origin }
    }

    /// Flips a bit of a unit at its store with this copy.
    async fn hurt(&self, unit: u64, copy: usize, at: usize) {
        let store = Layout::new(film().len() as u64, UNIT, 4, 2).unwrap().stores_of(unit).nth(copy).unwrap();
        self.hurt_object(store, &format!("stripe-{}/{unit:010}", "0".repeat(32)), at).await;
    }

    async fn hurt_object(&self, store: usize, name: &str, at: usize) {
        let inner = &self.stores[store].inner;
        let mut bytes = read(inner, name, 0..u64::MAX).await.unwrap();
        bytes[at] ^= 1;
        inner.put(name, bytes);
    }

    /// Returns the damaged reads of all stores.
    fn damaged(&self) -> u64 {
        self.origin.counts().stripes.iter().map(|store| store.damaged_reads).sum()
    }

    async fn read(&self, range: Range<u64>) -> Result<Vec<u8>, OriginError> {
        read(&self.origin, "films/a.mp4", range).await
    }
}

fn map(layout: Layout, stores: &[&str]) -> StripeMap {
    map_with(layout, stores, None)
}

/// The path of the checksums on each store.
const SUMS: &str = "stripe-00000000000000000000000000000000/sums";

/// The checksums of the film, and the hash of their head.
fn sums(layout: Layout) -> (Bytes, String) {
    let mut writer = SumWriter::new(SumTable::new(layout).unwrap());
    film().chunks(layout.unit() as usize).for_each(|unit| writer.add(unit));
    writer.finish()
}

fn map_with(layout: Layout, stores: &[&str], sums: Option<String>) -> StripeMap {
    let source = StripeSource { location: "test".into(), version: "1".into() };
    let stores = stores.iter().map(|name| (*name).to_owned()).collect();
    StripeMap::new("0".repeat(32), layout, stores, "0".repeat(64), sums, source).unwrap()
}

async fn read(origin: &dyn Origin, name: &str, range: Range<u64>) -> Result<Vec<u8>, OriginError> {
    let mut body = origin.read(&path(name), range, None).await?.body;
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await {
        bytes.extend_from_slice(&piece?);
    }
    Ok(bytes)
}

#[tokio::test]
async fn a_striped_object_is_like_others() {
    let group = Group::new(1, 0);
    group.place.put("films/b.mp4", "plain");
    assert_eq!(group.read(0..u64::MAX).await.unwrap(), film());
    for (start, end) in [(0, 1), (65_535, 65_537), (100_000, 400_000), (999_999, 2_000_000), (1_000_000, 1_000_001)] {
        let expected = &film()[start as usize..(end as usize).min(film().len())];
        assert_eq!(group.read(start..end).await.unwrap(), expected);
    }
    assert!(matches!(group.read(1_000_001..1_000_002).await, Err(OriginError::OutOfRange { .. })));
    let meta = group.origin.head(&path("films/a.mp4")).await.unwrap();
    assert_eq!(meta.len, 1_000_000);
    assert!(meta.etag.as_deref().is_some_and(|etag| etag.starts_with("\"stripe-")));
    assert_eq!(read(&group.origin, "films/b.mp4", 0..10).await.unwrap(), b"plain");
    let names = group.origin.list(&path("films")).await.unwrap().entries;
    assert_eq!(names.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["a.mp4", "b.mp4"]);
    for hidden in ["films/a.mp4.stripe", "films/none.mp4"] {
        assert!(group.origin.head(&path(hidden)).await.unwrap_err().is_not_found());
        assert!(read(&group.origin, hidden, 0..1).await.unwrap_err().is_not_found());
    }
    // Another map is another version.
    let layout = Layout::new(500_000, UNIT, 3, 1).unwrap();
    group.place.put("films/a.mp4.stripe", map(layout, &["a", "b", "c"]).write());
    let changed = group.origin.head(&path("films/a.mp4")).await.unwrap();
    assert_ne!(changed.version, meta.version);
    let error = group.origin.read(&path("films/a.mp4"), 0..1, Some(&meta)).await.unwrap_err();
    assert!(error.is_changed(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn units_of_all_stores_are_read_at_the_same_time() {
    for (batch, at_once) in [(0, [2, 2, 2, 2]), (4, [1, 1, 1, 1]), (1, [1, 0, 0, 0])] {
        let group = Group::new(1, batch);
        for store in &group.stores {
            store.gate.forget_permits(Semaphore::MAX_PERMITS);
        }
        let reading = group.read(0..600_000);
        tokio::pin!(reading);
        assert!(tokio::time::timeout(Duration::from_secs(1), &mut reading).await.is_err());
        let under_way: Vec<_> = group.stores.iter().map(|store| store.under_way.load(Ordering::Relaxed)).collect();
        assert_eq!(under_way, at_once, "batch {batch}");
        group.stores.iter().for_each(|store| store.gate.add_permits(1000));
        assert_eq!(reading.await.unwrap(), film()[..600_000]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_leaves_ends_its_requests() {
    let group = Group::new(1, 0);
    group.stores.iter().for_each(|store| store.is_silent.store(true, Ordering::Relaxed));
    assert!(tokio::time::timeout(Duration::from_secs(1), group.read(0..600_000)).await.is_err());
    tokio::task::yield_now().await;
    let in_flight: u64 = group.origin.counts().stripes.iter().map(|store| store.in_flight).sum();
    assert_eq!(in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_dead_store_is_an_error_that_names_the_unit_and_the_store() {
    let group = Group::new(1, 0);
    group.stores[2].is_dead.store(true, Ordering::Relaxed);
    assert_eq!(group.read(0..2 * UNIT).await.unwrap().len() as u64, 2 * UNIT, "units of other stores");
    let error = group.read(0..1_000_000).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, OriginError::Unit { unit: 2, .. }), "{text}");
    assert!(text.contains("films/a.mp4") && text.contains("unit 2") && text.contains("memory:c"), "{text}");
    assert_eq!(error.status(), 502);
    group.stores[2].is_dead.store(false, Ordering::Relaxed);
    assert_eq!(group.read(0..1_000_000).await.unwrap(), film(), "it is back at once");
}

#[tokio::test(start_paused = true)]
async fn the_other_copy_is_read_and_a_dead_store_is_left_alone() {
    for fault in ["dead", "silent"] {
        let group = Group::new(2, 0);
        let bad = &group.stores[2];
        let broken = if fault == "dead" { &bad.is_dead } else { &bad.is_silent };
        broken.store(true, Ordering::Relaxed);
        assert_eq!(group.read(0..1_000_000).await.unwrap(), film(), "{fault}");
        let asked = bad.asked.load(Ordering::Relaxed);
        assert!((1..=4).contains(&asked), "{fault}: {asked}");
        let stats = group.origin.counts().stripes;
        assert!(stats[2].is_resting && stats[2].failures > 0, "{fault}");
        if fault == "dead" {
            assert_eq!(group.read(0..1_000_000).await.unwrap(), film());
            assert_eq!(bad.asked.load(Ordering::Relaxed), asked, "left alone");
        }
        broken.store(false, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(40)).await;
        assert_eq!(group.read(0..1_000_000).await.unwrap(), film());
        assert!(
            bad.asked.load(Ordering::Relaxed) > asked && !group.origin.counts().stripes[2].is_resting,
            "{fault}: back"
        );
    }
}

#[tokio::test]
async fn units_of_another_length_and_missing_ones_are_errors_or_read_elsewhere() {
    for copies in [1, 2] {
        let group = Group::new(copies, 0);
        let first = map(Layout::new(1, UNIT, 1, 1).unwrap(), &["a"]).unit_path(1).unwrap();
        group.stores[1].inner.put(first.as_str(), "short");
        let read = group.read(0..1_000_000).await;
        match copies {
            1 => assert!(read.unwrap_err().to_string().contains("expected a unit of 65536 bytes, found 5 bytes")),
            _ => assert_eq!(read.unwrap(), film()),
        }
        group.stores[1].inner.remove(first.as_str());
        let read = group.read(0..1_000_000).await;
        match copies {
            1 => assert!(matches!(read, Err(OriginError::Unit { unit: 1, .. }))),
            _ => assert_eq!(read.unwrap(), film()),
        }
    }
}

#[tokio::test]
async fn a_damaged_block_is_read_from_the_other_copy_or_is_an_error() {
    for (unit, copy, at) in [(0, 0, 0), (2, 1, 65_535), (5, 0, 30_000), (15, 0, 16_959)] {
        let group = Group::summed(2);
        group.hurt(unit, copy, at).await;
        for _ in 0..3 {
            assert_eq!(group.read(0..1_000_000).await.unwrap(), film(), "unit {unit}");
        }
        assert!(group.damaged() <= 1, "a damaged copy is read last");
        group.hurt(unit, 1 - copy, at).await;
        let error = group.read(0..1_000_000).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, OriginError::Unit { .. }) && text.contains(&format!("unit {unit}")), "{text}");
        assert!(text.contains("block 0 with the CRC32C"), "{text}");
        assert_eq!(error.status(), 502);
        assert!(group.damaged() >= 2);
        let counts = group.origin.counts();
        assert!(counts.unchecked_maps == 0 && counts.stripes.iter().all(|store| !store.is_resting));
        // Other units are read.
        let other = (unit + 1) % 15 * UNIT;
        assert_eq!(group.read(other..other + UNIT).await.unwrap(), film()[other as usize..(other + UNIT) as usize]);
    }
}

#[tokio::test]
async fn no_byte_of_a_damaged_block_is_handed_out() {
    let group = Group::summed(1);
    group.hurt(3, 0, 40_000).await;
    let wrong = 3 * UNIT;
    for range in [0..1_000_000, wrong..wrong + 1, wrong + 10..wrong + UNIT, wrong + UNIT - 1..wrong + UNIT + 1] {
        let mut body = group.origin.read(&path("films/a.mp4"), range.clone(), None).await.unwrap().body;
        let (mut at, mut error) = (range.start, None);
        while let Some(piece) = body.next().await {
            match piece {
                Ok(bytes) => {
                    assert_eq!(bytes, film()[at as usize..at as usize + bytes.len()]);
                    at += bytes.len() as u64;
                }
                Err(failure) => {
                    error = Some(failure);
                    break;
                }
            }
        }
        assert!(at <= wrong.max(range.start), "{range:?}: {at}");
        assert!(matches!(error, Some(OriginError::Unit { unit: 3, .. })), "{range:?}: {error:?}");
    }
}

#[tokio::test]
async fn damaged_checksums_are_read_from_another_store() {
    let length = read(&Group::summed(1).stores[0].inner, SUMS, 0..u64::MAX).await.unwrap().len();
    for fault in ["head", "page", "short", "missing", "dead"] {
        let group = Group::summed(1);
        for store in 0..3 {
            match fault {
                "head" => group.hurt_object(store, SUMS, 3).await,
                "page" => group.hurt_object(store, SUMS, length - 1).await,
                "short" => group.stores[store].inner.put(SUMS, vec![0; length - 1]),
                "missing" => assert!(group.stores[store].inner.remove(SUMS)),
                _ => {}
            }
        }
        if fault == "dead" {
            group.stores[0].is_dead.store(true, Ordering::Relaxed);
            let error = group.read(0..1_000_000).await.unwrap_err();
            assert!(error.to_string().contains("unit 0: "), "the only copy, not the checksums: {error}");
            continue;
        }
        assert_eq!(group.read(0..1_000_000).await.unwrap(), film(), "{fault}");
        let counted = if matches!(fault, "head" | "page") { 3 } else { 0 };
        assert_eq!(group.damaged(), counted, "{fault}: once, for all units");
        // No store has sound ones.
        let group = Group::summed(2);
        for store in 0..4 {
            group.hurt_object(store, SUMS, if fault == "head" { 0 } else { length - 1 }).await;
        }
        let error = group.read(70_000..70_001).await.unwrap_err();
        assert!(error.to_string().contains("the checksums of the map"), "{error}");
        assert_eq!(error.status(), 502);
    }
}

#[tokio::test]
async fn a_map_of_a_stranger_gets_no_checksums_of_another_object() {
    let group = Group::summed(1);
    assert_eq!(group.read(0..1_000_000).await.unwrap(), film());
    // The checksums of this map are in memory, but those of its other layout and root are not on the stores.
    let layout = Layout::new(500_000, UNIT, 4, 1).unwrap();
    for root in [sums(Layout::new(film().len() as u64, UNIT, 4, 1).unwrap()).1, "1".repeat(64)] {
        group.place.put("films/b.mp4.stripe", map_with(layout, &["a", "b", "c", "d"], Some(root)).write());
        let error = read(&group.origin, "films/b.mp4", 0..1).await.unwrap_err();
        assert_eq!(error.status(), 502, "{error}");
    }
}

#[tokio::test]
async fn a_map_without_checksums_is_served_unchecked_and_counted() {
    let group = Group::new(1, 0);
    group.hurt(1, 0, 0).await;
    let mut wrong = film();
    wrong[UNIT as usize] ^= 1;
    assert_eq!(group.read(0..1_000_000).await.unwrap(), wrong);
    assert!(group.damaged() == 0 && group.origin.counts().unchecked_maps > 0);
}

#[tokio::test]
async fn a_map_reaches_no_other_store() {
    let group = Group::new(1, 0);
    let layout = Layout::new(1_000_000, UNIT, 2, 1).unwrap();
    for store in ["http://127.0.0.1/", "/etc", "e"] {
        group.place.put("films/a.mp4.stripe", map(layout, &["a", store]).write());
        let error = group.read(0..1).await.unwrap_err();
        assert!(error.to_string().contains("which stripe-over does not have"), "{error}");
        assert_eq!(error.status(), 502);
    }
    for text in ["", "{}", "[[[[[[", &"x".repeat(1 << 20)] {
        group.place.put("films/a.mp4.stripe", text.to_owned());
        let error = group.read(0..1).await.unwrap_err();
        assert!(matches!(error, OriginError::BadReply { .. }), "{error}");
    }
}
