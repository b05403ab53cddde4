//! Striped objects over stores in memory, of which some fail.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::Semaphore;

use super::group::{GroupStore, StripeGroup};
use super::map::{StripeMap, StripeSource};
use super::origin::StripedOrigin;
use super::sink::{MapTarget, StripeError};
use super::writing::{StripePlan, stripe};
use super::{remove_striped, unstripe};
use crate::error::{At, OriginError};
use crate::layout::Layout;
use crate::location::OriginLocation;
use crate::origin::memory::MemoryOrigin;
use crate::origin::retry::{RetryOrigin, RetryPolicy};
use crate::origin::{BoxFuture, Fetched, Listing, ObjectMeta, Origin, RemoteOptions};
use crate::path::ObjectPath;
use crate::striping::StripeStore;

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
    fn new(copies: usize, batch: usize) -> Self {
        let stores: Vec<_> = ["a", "b", "c", "d"].map(Store::new).into();
        let place = MemoryOrigin::new("place");
        let layout = Layout::new(film().len() as u64, UNIT, 4, copies).unwrap();
        let map = map(layout, &["a", "b", "c", "d"]);
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
            GroupStore::new(name.into(), store.clone(), patient)
        });
        let group = StripeGroup::new(named, Duration::from_secs(1));
        let origin = StripedOrigin::over(Arc::new(place.clone()), group, batch, Duration::from_secs(5));
        Self { stores, place, origin }
    }

    async fn read(&self, range: Range<u64>) -> Result<Vec<u8>, OriginError> {
        read(&self.origin, "films/a.mp4", range).await
    }
}

fn map(layout: Layout, stores: &[&str]) -> StripeMap {
    let source = StripeSource { location: "test".into(), version: "1".into() };
    let stores = stores.iter().map(|name| (*name).to_owned()).collect();
    StripeMap::new("0".repeat(32), layout, stores, "0".repeat(64), source).unwrap()
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

/// Folders for three stores, and one for the source and the map.
struct Folders(tempfile::TempDir);

impl Folders {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c", "media"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        std::fs::write(dir.path().join("media/film.mp4"), film()).unwrap();
        Self(dir)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn plan(&self, copies: usize) -> StripePlan {
        let store = |name| StripeStore::new(name, OriginLocation::Folder(self.path().join(name)));
        StripePlan { stores: ["a", "b", "c"].map(store).into(), factor: None, unit: UNIT, copies }
    }

    fn target(&self) -> MapTarget {
        MapTarget::new(OriginLocation::Folder(self.path().join("media")), path("film.mp4"))
    }

    fn source(&self) -> Arc<dyn Origin> {
        Arc::new(crate::DiskOrigin::new(&self.path().join("media")).unwrap())
    }

    async fn stripe(&self, copies: usize) -> Result<super::Striped, StripeError> {
        let options = RemoteOptions::default();
        stripe(&self.source(), &path("film.mp4"), &self.target(), &self.plan(copies), &options, |_| {}).await
    }

    async fn unstripe(&self) -> Result<Vec<u8>, StripeError> {
        let (mut read, stores) = (Vec::new(), self.plan(1).stores);
        let out = |bytes: &[u8]| {
            read.extend_from_slice(bytes);
            Ok(())
        };
        unstripe(&self.target(), &stores, &RemoteOptions::default(), out).await?;
        Ok(read)
    }

    /// Returns the number of files below a folder.
    fn files(&self, folder: &str) -> usize {
        let entries = std::fs::read_dir(self.path().join(folder)).unwrap().map(Result::unwrap);
        let files = |entry: std::fs::DirEntry| match entry.file_type().unwrap().is_dir() {
            true => std::fs::read_dir(entry.path()).unwrap().count(),
            false => 1,
        };
        entries.map(files).sum()
    }
}

#[tokio::test]
async fn an_object_is_striped_and_read_back() {
    for copies in [1, 2, 3] {
        let folders = Folders::new();
        let striped = folders.stripe(copies).await.unwrap();
        assert!(striped.former.is_none());
        assert_eq!(striped.map.layout().units(), 16);
        assert_eq!(["a", "b", "c"].map(|name| folders.files(name)).iter().sum::<usize>(), 16 * copies);
        assert_eq!(folders.files("media"), 2, "no note is left");
        std::fs::remove_file(folders.path().join("media/film.mp4")).unwrap();
        assert_eq!(folders.unstripe().await.unwrap(), film());
        let (target, stores) = (folders.target(), folders.plan(1).stores);
        remove_striped(&target, &striped.map, &stores, &RemoteOptions::default()).await.unwrap();
        assert_eq!(folders.files("media"), 0);
        assert_eq!(["a", "b", "c"].map(|name| std::fs::read_dir(folders.path().join(name)).unwrap().count()), [0; 3]);
    }
}

#[tokio::test]
async fn damaged_units_do_not_pass_the_checksum() {
    let folders = Folders::new();
    let striped = folders.stripe(1).await.unwrap();
    let unit = striped.map.unit_path(4).unwrap();
    let name = &striped.map.stores()[1];
    std::fs::write(folders.path().join(name).join(unit.as_str()), vec![0; UNIT as usize]).unwrap();
    assert!(matches!(folders.unstripe().await, Err(StripeError::Checksum { .. })));
}

/// Drops a run where it has read half of the object, as if its process had ended.
fn interrupt(folders: &Folders) {
    // The end of this runtime waits for the writes that have begun.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let options = RemoteOptions::default();
    let (plan, target, source) = (folders.plan(1), folders.target(), folders.source());
    let film_path = path("film.mp4");
    let (tell, told) = tokio::sync::oneshot::channel();
    let mut tell = Some(tell);
    let progress = |bytes| {
        if bytes > 500_000 {
            tell.take().map(|tell| tell.send(()));
        }
    };
    let run = stripe(&source, &film_path, &target, &plan, &options, progress);
    runtime.block_on(async {
        tokio::select! {
            biased;
            _ = told => {}
            _ = run => panic!("it ended first"),
        }
    });
}

#[tokio::test]
async fn an_interrupted_run_leaves_no_map_and_is_cleaned_up_by_the_next() {
    let folders = Arc::new(Folders::new());
    let interrupted = folders.clone();
    tokio::task::spawn_blocking(move || interrupt(&interrupted)).await.unwrap();
    let left = ["a", "b", "c"].map(|name| folders.files(name)).iter().sum::<usize>();
    assert!(left > 0, "units of the interrupted run");
    assert!(!folders.path().join("media/film.mp4.stripe").exists());
    assert!(folders.unstripe().await.is_err());
    let first = folders.stripe(1).await.unwrap();
    assert_eq!(["a", "b", "c"].map(|name| folders.files(name)).iter().sum::<usize>(), 16, "only those of this run");
    // Another run leaves the units of the first map alone.
    let second = folders.stripe(1).await.unwrap();
    assert_eq!(second.former.unwrap().id(), first.map.id());
    assert_eq!(["a", "b", "c"].map(|name| folders.files(name)).iter().sum::<usize>(), 32);
    assert_eq!(folders.unstripe().await.unwrap(), film());
}

#[tokio::test]
async fn a_source_that_changes_is_not_striped() {
    let folders = Folders::new();
    let options = RemoteOptions::default();
    let file = folders.path().join("media/film.mp4");
    let (plan, target, source) = (folders.plan(1), folders.target(), folders.source());
    let mut changed = false;
    let progress = |bytes| {
        if bytes > 300_000 && !std::mem::replace(&mut changed, true) {
            let mut other = film();
            other[999_999] ^= 1;
            std::fs::write(&file, other).unwrap();
        }
    };
    let error = stripe(&source, &path("film.mp4"), &target, &plan, &options, progress).await.unwrap_err();
    assert!(error.to_string().contains("changed"), "{error}");
    assert!(!folders.path().join("media/film.mp4.stripe").exists());
    assert_eq!(["a", "b", "c"].map(|name| folders.files(name)), [0; 3], "its units are removed");
    assert_eq!(folders.files("media"), 1);
}

#[tokio::test]
async fn two_runs_at_the_same_time_make_one_map() {
    let folders = Folders::new();
    let (first, second) = tokio::join!(folders.stripe(1), folders.stripe(1));
    assert!(first.is_ok() || second.is_ok());
    assert_eq!(folders.unstripe().await.unwrap(), film());
}

#[tokio::test]
async fn plans_and_targets_are_checked() {
    let folders = Folders::new();
    let mut plan = folders.plan(1);
    plan.stores.push(plan.stores[0].clone());
    let options = RemoteOptions::default();
    let run = |plan: StripePlan| {
        let (folders, options) = (&folders, &options);
        async move {
            let (source, target, film) = (folders.source(), folders.target(), path("film.mp4"));
            stripe(&source, &film, &target, &plan, options, |_| {}).await.unwrap_err().to_string()
        }
    };
    assert!(run(plan).await.contains("named twice"));
    let mut plan = folders.plan(4);
    assert!(run(plan.clone()).await.contains("copies is 4, expected 1 to 3"));
    plan.factor = Some(4);
    assert!(run(plan.clone()).await.contains("factor is 4, expected 1 to 3"));
    plan = folders.plan(1);
    plan.stores[1] = StripeStore::new("b", OriginLocation::Folder("/no/such/folder".into()));
    assert!(run(plan.clone()).await.contains("does not exist"));
    plan.stores[1] = StripeStore::new("b", OriginLocation::Http("http://127.0.0.1:1/".parse().unwrap()));
    assert!(run(plan).await.contains("folders and buckets only"));
}

#[test]
fn stores_have_their_own_endpoint_and_region() {
    let location = OriginLocation::Folder("/data".into());
    let store = StripeStore::new("a", location.clone()).with_endpoint("http://10.0.0.7:9000".to_owned());
    let mut options = RemoteOptions::default();
    options.bucket.endpoint = Some("http://minio:9000".to_owned());
    options.bucket.region = Some("eu".to_owned());
    let own = store.with_region("us".to_owned()).remote(&options).bucket;
    assert_eq!((own.endpoint.as_deref(), own.region.as_deref()), (Some("http://10.0.0.7:9000"), Some("us")));
    assert_eq!(StripeStore::new("b", location).remote(&options), options);
}
