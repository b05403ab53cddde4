#![allow(clippy::single_range_in_vec_init, reason = "lists of ranges with one entry are what is compared")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::StreamExt;
use tokio::sync::Semaphore;

use super::place::{ABSENT, STALE_STEP};
use super::*;
use crate::disk::chunk::Chunk;
use crate::error::{At, ErrorKind};
use crate::freshness::{Freshness, Storage};
use crate::origin::ObjectMeta;
use crate::origin::memory::MemoryOrigin;
use crate::origin::{BoxFuture, Fetched};

mod disk;
mod flights;
mod parts;
mod purges;
mod tags;

const SLICE: u64 = 64 * 1024;

/// An origin that notes what is asked of it, and lets bodies go as far as it is told.
#[derive(Debug)]
struct Watched {
    inner: MemoryOrigin,
    reads: Mutex<Vec<Range<u64>>>,
    heads: AtomicU64,
    /// Pieces of 16 KiB that bodies may still give, where gated.
    gate: Option<Semaphore>,
    given: AtomicU64,
    broken: AtomicBool,
    down: AtomicBool,
    /// Its Cache-Control.
    said: Mutex<Freshness>,
}

impl Watched {
    fn new(gated: bool) -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryOrigin::new("watched"),
            reads: Mutex::default(),
            heads: AtomicU64::new(0),
            gate: gated.then(|| Semaphore::new(0)),
            given: AtomicU64::new(0),
            broken: AtomicBool::new(false),
            down: AtomicBool::new(false),
            said: Mutex::default(),
        })
    }

    fn reads(&self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.reads.lock().unwrap())
    }

    fn let_go(&self, pieces: usize) {
        self.gate.as_ref().unwrap().add_permits(pieces);
    }

    fn given(&self) -> u64 {
        self.given.load(Ordering::SeqCst)
    }

    async fn pass(&self) -> Result<(), OriginError> {
        match &self.gate {
            Some(gate) => gate.acquire().await.unwrap().forget(),
            None => tokio::task::yield_now().await,
        }
        self.given.fetch_add(1, Ordering::SeqCst);
        if self.broken.load(Ordering::SeqCst) {
            return Err(OriginError::Truncated {
                at: At::new("watched", "a"),
                expected: 2,
                received: 1,
                detail: "broken".into(),
            });
        }
        Ok(())
    }
}

/// The trait is for the origin, and bodies outlive the call: so it is on the shared one.
#[derive(Debug, Clone)]
struct Handle(Arc<Watched>);

impl Origin for Handle {
    fn describe(&self) -> String {
        "watched".into()
    }

    fn head<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<ObjectMeta, OriginError>> {
        self.0.heads.fetch_add(1, Ordering::SeqCst);
        if self.0.down.load(Ordering::SeqCst) {
            let at = At::new("watched", path.as_str());
            return Box::pin(async { Err(OriginError::Status { at, code: 503, detail: "down".into() }) });
        }
        Box::pin(async {
            let meta = self.0.inner.head(path).await?;
            Ok(ObjectMeta { freshness: *self.0.said.lock().unwrap(), ..meta })
        })
    }

    fn read<'a>(
        &'a self,
        path: &'a ObjectPath,
        range: Range<u64>,
        expected: Option<&'a ObjectMeta>,
    ) -> BoxFuture<'a, Result<Fetched, OriginError>> {
        self.0.reads.lock().unwrap().push(range.clone());
        Box::pin(async move {
            // A wait that takes more than one poll, so that others come while it lasts.
            tokio::time::sleep(Duration::from_millis(1)).await;
            let fetched = self.0.inner.read(path, range, expected).await?;
            let watched = self.0.clone();
            let body = fetched.body.then(move |item| {
                let watched = watched.clone();
                async move {
                    watched.pass().await?;
                    item
                }
            });
            let meta = ObjectMeta { freshness: *self.0.said.lock().unwrap(), ..fetched.meta };
            Ok(Fetched { meta, range: fetched.range, body: body.boxed(), sender: fetched.sender })
        })
    }

    fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
        self.0.inner.list(folder)
    }
}

fn bytes(len: u64) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(len);
    (0..len).map(|_| rng.u8(..)).collect()
}

fn path() -> ObjectPath {
    ObjectPath::parse("a").unwrap()
}

struct Rig {
    store: Store,
    origin: Arc<Watched>,
    content: Vec<u8>,
}

impl Rig {
    fn new(len: u64, gated: bool, options: StoreOptions) -> Self {
        let origin = Watched::new(gated);
        let content = bytes(len);
        origin.inner.put("a", content.clone());
        let store = Store::new(&options).unwrap();
        store.add_place("p", Arc::new(Handle(origin.clone())));
        Self { store, origin, content }
    }

    async fn open(&self) -> Arc<Object> {
        self.store.open("p", &path()).await.unwrap()
    }

    fn stats(&self) -> crate::stats::PlaceStats {
        self.store.stats().places.remove(0)
    }
}

fn options() -> StoreOptions {
    StoreOptions { memory: 64 * SLICE, slice: SLICE as u32, run: 8 * SLICE, ..StoreOptions::default() }
}

async fn read(store: &Store, object: &Arc<Object>, range: Range<u64>) -> Result<Vec<u8>, OriginError> {
    let mut reader = store.read(object, range);
    let mut whole = Vec::new();
    while let Some(chunk) = reader.next().await {
        match chunk? {
            Chunk::Bytes(bytes) => whole.extend_from_slice(&bytes),
            Chunk::File { file, range, pin: _pin } => {
                whole.extend_from_slice(&crate::origin::disk::read_at(&file, range).unwrap());
            }
        }
    }
    Ok(whole)
}

/// Lets all tasks do what they can do.
async fn settle() {
    for _ in 0..2000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn one_open_for_all_brings_the_first_slice() {
    let rig = Rig::new(SLICE * 3, false, options());
    let opens = (0..100).map(|_| rig.open());
    let objects = futures_util::future::join_all(opens).await;
    assert!(objects.iter().all(|object| Arc::ptr_eq(object, &objects[0])));
    let head = rig.store.read_all(&objects[0], 0..1000).await.unwrap();
    assert_eq!(head, rig.content[..1000]);
    assert_eq!(read(&rig.store, &objects[0], 0..SLICE).await.unwrap(), rig.content[..SLICE as usize]);
    assert_eq!(rig.origin.reads(), [0..SLICE]);
    // The reads join the flight that the open began where it is still under way.
    assert!((99..=101).contains(&rig.stats().collapsed), "{}", rig.stats().collapsed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_byte_is_asked_for_once_however_many_read() {
    let len = SLICE * 40 + 12_345;
    let rig = Arc::new(Rig::new(len, false, options()));
    let object = rig.open().await;
    let tasks: Vec<_> = (0..100_u64)
        .map(|number| {
            let (rig, object) = (rig.clone(), object.clone());
            tokio::spawn(async move {
                let start = number * 7919 % (SLICE * 4);
                let got = read(&rig.store, &object, start..len).await.unwrap();
                assert!(got == rig.content[start as usize..], "reader {number}");
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let mut reads = rig.origin.reads();
    reads.sort_by_key(|range| range.start);
    let mut end = 0;
    for range in &reads {
        assert_eq!(range.start, end, "no gap and no overlap: {reads:?}");
        end = range.end;
    }
    assert_eq!(end, len);
    assert!(reads.len() <= 6, "one request to the end, and one a place where readers began before it: {reads:?}");
    assert_eq!(rig.stats().origin_bytes, len);
    assert_eq!(rig.stats().in_flight, 0);
}

#[tokio::test]
async fn bytes_come_as_they_arrive() {
    let rig = Rig::new(SLICE * 2, true, options());
    let object = rig.open().await;
    let mut reader = rig.store.read(&object, 10..SLICE * 2);
    rig.origin.let_go(1);
    let chunk = reader.next().await.unwrap().unwrap();
    assert_eq!(chunk.len(), 16 * 1024 - 10, "one piece of a slice of four");
    let waiting = tokio::time::timeout(Duration::from_millis(20), reader.next()).await;
    assert!(waiting.is_err());
    rig.origin.let_go(1);
    assert_eq!(reader.next().await.unwrap().unwrap().len(), 16 * 1024);
    assert_eq!(reader.remaining(), 32 * 1024..SLICE * 2);
}

#[tokio::test]
async fn a_fetch_that_nobody_wants_stops_and_keeps_what_is_complete() {
    let rig = Rig::new(SLICE * 20, true, options());
    let object = rig.open().await;
    rig.origin.let_go(4);
    settle().await;
    rig.origin.reads();
    let mut first = rig.store.read(&object, SLICE..SLICE * 9);
    let mut second = rig.store.read(&object, SLICE..SLICE * 9);
    rig.origin.let_go(10);
    for _ in 0..2 {
        first.next().await.unwrap().unwrap();
        second.next().await.unwrap().unwrap();
    }
    settle().await;
    drop(first);
    settle().await;
    assert_eq!(rig.stats().in_flight, 1, "the second still wants it");
    drop(second);
    settle().await;
    let given = rig.origin.given();
    rig.origin.let_go(100);
    settle().await;
    assert_eq!(rig.stats().in_flight, 0);
    assert_eq!(rig.origin.given(), given + 2, "the slice begun is finished, nothing more is taken");
    assert_eq!(rig.origin.reads().len(), 1);
    assert_eq!(rig.store.stats().cache.entries, 4, "slice 0, and ten pieces and two");
    assert_eq!(rig.store.stats().memory_used, 4 * SLICE, "and no room kept");
    let again = read(&rig.store, &object, SLICE..SLICE * 5).await.unwrap();
    assert!(again == rig.content[SLICE as usize..5 * SLICE as usize]);
    assert_eq!(rig.origin.reads(), [4 * SLICE..5 * SLICE]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_stays_in_its_bounds_and_readers_go_on() {
    let small = StoreOptions { memory: 4 * SLICE, ..options() };
    let len = SLICE * 50;
    let rig = Arc::new(Rig::new(len, false, small));
    let object = rig.open().await;
    let tasks: Vec<_> = (0..20_u64)
        .map(|number| {
            let (rig, object) = (rig.clone(), object.clone());
            tokio::spawn(async move {
                let start = number * SLICE * 2;
                let got = read(&rig.store, &object, start..len).await.unwrap();
                assert!(got == rig.content[start as usize..], "reader {number}");
            })
        })
        .collect();
    for task in tasks {
        assert!(rig.store.stats().memory_used <= 4 * SLICE);
        task.await.unwrap();
    }
    assert!(rig.store.stats().memory_used <= 4 * SLICE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_ranges_read_right() {
    let small = StoreOptions { memory: 12 * SLICE, run: 3 * SLICE, ..options() };
    let len = SLICE * 30 + 777;
    let rig = Arc::new(Rig::new(len, false, small));
    let object = rig.open().await;
    let tasks: Vec<_> = (0..16_u64)
        .map(|seed| {
            let (rig, object) = (rig.clone(), object.clone());
            tokio::spawn(async move {
                let mut rng = fastrand::Rng::with_seed(seed);
                for _ in 0..30 {
                    let start = rng.u64(0..=len);
                    let end = rng.u64(start..=len + 10);
                    let wanted = &rig.content[start as usize..end.min(len) as usize];
                    match rng.u8(0..4) {
                        0 => {
                            let end = end.min(len);
                            let got = rig.store.read_all(&object, start..end).await.unwrap();
                            assert!(got == wanted, "{start}..{end}");
                        }
                        1 => rig.store.prefetch(&object, start..end),
                        2 => {
                            let mut reader = rig.store.read(&object, start..end);
                            reader.next().await.transpose().unwrap();
                        }
                        _ => {
                            let got = read(&rig.store, &object, start..end).await.unwrap();
                            assert!(got == wanted, "{start}..{end}");
                        }
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert!(object.flights().len() <= 16);
}

#[tokio::test]
async fn a_failed_fetch_fails_its_waiters_and_leaves_nothing() {
    let rig = Rig::new(SLICE * 4, false, options());
    let object = rig.open().await;
    settle().await;
    rig.origin.broken.store(true, Ordering::SeqCst);
    let waiters = (0..5).map(|_| read(&rig.store, &object, SLICE..SLICE * 3));
    for result in futures_util::future::join_all(waiters).await {
        assert!(matches!(result, Err(OriginError::Truncated { .. })));
    }
    assert_eq!(rig.stats().errors, [(ErrorKind::Truncated, 1)]);
    rig.origin.broken.store(false, Ordering::SeqCst);
    let got = read(&rig.store, &object, SLICE..SLICE * 3).await.unwrap();
    assert!(got == rig.content[SLICE as usize..3 * SLICE as usize]);
    assert_eq!(rig.store.stats().memory_used, 3 * SLICE);
}

#[tokio::test]
async fn a_reader_gives_nothing_after_an_error() {
    let rig = Rig::new(SLICE * 4, false, options());
    let object = rig.open().await;
    settle().await;
    rig.origin.broken.store(true, Ordering::SeqCst);
    let mut reader = rig.store.read(&object, SLICE..SLICE * 3);
    assert!(reader.next().await.unwrap().is_err());
    assert!(reader.next().await.is_none());
}

#[tokio::test]
async fn a_changed_object_is_never_mixed() {
    let rig = Rig::new(SLICE * 20, false, options());
    let old = rig.open().await;
    settle().await;
    let other = bytes(SLICE * 20 + 1);
    rig.origin.inner.put("a", other.clone());
    assert!(Arc::ptr_eq(&old, &rig.open().await), "trusted while fresh");
    let error = read(&rig.store, &old, SLICE..SLICE * 3).await.unwrap_err();
    assert!(error.is_changed());
    let new = rig.open().await;
    assert!(!Arc::ptr_eq(&old, &new));
    assert_eq!(new.meta().len, SLICE * 20 + 1);
    assert!(read(&rig.store, &new, 0..u64::MAX).await.unwrap() == other);
}

#[tokio::test(start_paused = true)]
async fn metadata_is_asked_for_again_when_old() {
    let rig = Rig::new(SLICE, false, options());
    let first = rig.open().await;
    tokio::time::advance(Duration::from_secs(9)).await;
    rig.open().await;
    assert_eq!(rig.origin.heads.load(Ordering::SeqCst), 0);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(Arc::ptr_eq(&first, &rig.open().await), "the same version");
    assert_eq!(rig.origin.heads.load(Ordering::SeqCst), 1);
    tokio::time::advance(Duration::from_secs(11)).await;
    rig.origin.inner.put("a", "new");
    assert_eq!(rig.open().await.meta().len, 3);
    tokio::time::advance(Duration::from_secs(11)).await;
    rig.origin.inner.remove("a");
    assert!(rig.store.open("p", &path()).await.unwrap_err().is_not_found());
    rig.origin.inner.put("a", "newer");
    tokio::time::advance(ABSENT).await;
    assert_eq!(rig.open().await.meta().len, 5, "a failure is not remembered for long");
}

#[tokio::test]
async fn metadata_reads_are_exact_and_collapsed() {
    let rig = Rig::new(SLICE * 10, false, options());
    let object = rig.open().await;
    settle().await;
    rig.origin.reads();
    let range = SLICE * 5 + 3..SLICE * 5 + 1003;
    let reads = (0..20).map(|_| rig.store.read_all(&object, range.clone()));
    for result in futures_util::future::join_all(reads).await {
        assert_eq!(result.unwrap(), rig.content[range.start as usize..range.end as usize]);
    }
    assert_eq!(rig.origin.reads(), std::slice::from_ref(&range));
    read(&rig.store, &object, SLICE * 5..SLICE * 6).await.unwrap();
    rig.origin.reads();
    rig.store.read_all(&object, range).await.unwrap();
    assert!(rig.origin.reads().is_empty(), "it is in a slice");
    let len = SLICE * 10;
    assert!(matches!(rig.store.read_all(&object, len - 1..len + 1).await, Err(OriginError::OutOfRange { .. })));
    assert!(rig.store.read_all(&object, len..len).await.unwrap().is_empty());
}

#[tokio::test]
async fn prefetch_asks_for_what_is_missing_and_holds_it() {
    let rig = Rig::new(SLICE * 20, false, options());
    let object = rig.open().await;
    read(&rig.store, &object, SLICE * 3..SLICE * 4).await.unwrap();
    rig.origin.reads();
    rig.store.prefetch(&object, 0..SLICE * 6);
    settle().await;
    let mut asked = rig.origin.reads();
    asked.sort_by_key(|range| range.start);
    assert_eq!(asked, [SLICE..SLICE * 3, SLICE * 4..SLICE * 6]);
    let got = read(&rig.store, &object, 0..SLICE * 6).await.unwrap();
    assert!(got == rig.content[..6 * SLICE as usize]);
    assert!(rig.origin.reads().is_empty());
    rig.store.prefetch(&object, 0..u64::MAX);
    settle().await;
    assert!(rig.origin.reads().iter().all(|range| range.end <= 8 * SLICE), "one run at most");
}

#[tokio::test]
async fn empty_objects_and_ranges() {
    let rig = Rig::new(0, false, options());
    let object = rig.open().await;
    assert_eq!(object.meta().len, 0);
    assert!(read(&rig.store, &object, 0..100).await.unwrap().is_empty());
    assert!(rig.store.read_all(&object, 0..0).await.unwrap().is_empty());
    rig.store.prefetch(&object, 0..100);
    let rig = Rig::new(SLICE, false, options());
    let object = rig.open().await;
    #[expect(clippy::reversed_empty_ranges, reason = "nobody should ask so, and nothing may break")]
    let reversed = 10..5;
    assert!(read(&rig.store, &object, reversed.clone()).await.unwrap().is_empty());
    assert!(rig.store.read_all(&object, reversed.clone()).await.is_err());
    rig.store.prefetch(&object, reversed);
    assert!(read(&rig.store, &object, SLICE * 5..SLICE * 6).await.unwrap().is_empty());
}

#[tokio::test]
async fn places_have_names() {
    let rig = Rig::new(10, false, options());
    let error = rig.store.open("q", &path()).await.unwrap_err();
    assert_eq!((error.status(), error.to_string()), (404, "no place is called \"q\"".into()));
    let object = rig.open().await;
    assert_eq!((object.place(), object.path().as_str()), ("p", "a"));
    let places: Vec<_> = rig.store.places().collect();
    assert_eq!(places, [("p".to_owned(), "watched".to_owned())]);
    assert_eq!(read(&rig.store, &object, 0..10).await.unwrap(), rig.content);
}

mod disk_objects {
    use super::*;
    use crate::origin::disk::DiskOrigin;

    fn rig() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "0123456789").unwrap();
        let store = Store::new(&options()).unwrap();
        store.add_place("", Arc::new(DiskOrigin::new(dir.path()).unwrap()));
        (dir, store)
    }

    #[tokio::test]
    async fn are_handed_out_as_files() {
        let (_dir, store) = rig();
        let object = store.open("", &path()).await.unwrap();
        assert!(Arc::ptr_eq(&object, &store.open("", &path()).await.unwrap()));
        let mut reader = store.read(&object, 2..100);
        let Chunk::File { file, range, .. } = reader.next().await.unwrap().unwrap() else {
            panic!("bytes");
        };
        assert!(Arc::ptr_eq(&file, object.file().unwrap()));
        assert_eq!(range, 2..10);
        assert!(reader.next().await.is_none());
        assert_eq!(store.read_all(&object, 3..6).await.unwrap(), "345");
        assert_eq!(store.stats().places[0].file_bytes, 8 + 3);
        assert_eq!(store.stats().places[0].origin_requests, 1);
    }

    #[tokio::test]
    async fn written_in_place_are_changed() {
        let (dir, store) = rig();
        let object = store.open("", &path()).await.unwrap();
        std::fs::write(dir.path().join("a"), "0123").unwrap();
        let error = store.read(&object, 0..4).next().await.unwrap().unwrap_err();
        assert!(error.is_changed());
        assert!(store.read_all(&object, 0..10).await.unwrap_err().is_changed());
        let new = store.open("", &path()).await.unwrap();
        assert_eq!(store.read_all(&new, 0..4).await.unwrap(), "0123");
    }

    #[tokio::test]
    async fn replaced_by_name_stay_what_they_were() {
        let (dir, store) = rig();
        let old = store.open("", &path()).await.unwrap();
        std::fs::write(dir.path().join("b"), "abc").unwrap();
        std::fs::rename(dir.path().join("b"), dir.path().join("a")).unwrap();
        assert_eq!(store.read_all(&old, 0..3).await.unwrap(), "012");
        tokio::time::sleep(Duration::from_millis(1050)).await;
        let new = store.open("", &path()).await.unwrap();
        assert_eq!(store.read_all(&new, 0..3).await.unwrap(), "abc");
    }
}

#[tokio::test]
async fn absence_is_remembered_for_a_moment() {
    let rig = Rig::new(SLICE, false, options());
    for _ in 0..3 {
        assert!(rig.store.open("p", &ObjectPath::parse("none").unwrap()).await.unwrap_err().is_not_found());
    }
    assert_eq!(rig.origin.reads().len(), 1);
}

#[tokio::test]
async fn an_object_stands_in_for_itself_while_its_origin_fails() {
    let rig = Rig::new(SLICE, false, StoreOptions { freshness: Some(Duration::ZERO), ..options() });
    let object = rig.open().await;
    read(&rig.store, &object, 0..SLICE).await.unwrap();
    rig.origin.down.store(true, Ordering::SeqCst);
    let again = rig.open().await;
    assert!(Arc::ptr_eq(&object, &again));
    assert_eq!(read(&rig.store, &again, 0..SLICE).await.unwrap(), rig.content);
    assert_eq!(rig.stats().stale, 1);
    rig.origin.down.store(false, Ordering::SeqCst);
    rig.origin.inner.put("a", bytes(SLICE * 2));
    tokio::time::sleep(STALE_STEP + Duration::from_millis(50)).await;
    assert_eq!(rig.open().await.meta().len, SLICE * 2);
}
