//! The simulator beside the store: the same workload over the same modelled link, through the store's prefetch task on a
//! paused clock and through [`play`], fetches the same slices in the same order.

use super::{
    LinkModel, Setting, Visit, Workload,
    run::{Observer, play},
};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use millpond_store::{
    At, BoxFuture, Fetched, Freshness, Listing, Object, ObjectMeta, ObjectPath, Origin, OriginError, SentBy,
    StatedTags, Store, StoreOptions, Version,
    policy::PolicyName,
    schedule::{Course, Mode},
};
use std::{
    collections::HashMap,
    ops::Range,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, sleep_until};

const SLICE: u64 = 100_000;
/// Media of ten seconds a slice.
const RATE: f64 = 10_000.0;
/// Longest difference between the two times of a fetch, in seconds: a transfer's time is shared out differently where the
/// link changes under it. Elsewhere times agree to 10 ms.
const TOLERANCE: f64 = 0.3;

/// A fetch: its time in seconds, its object and its slice.
type Fetch = (f64, u64, u64);

/// Collects the fetches of a simulation.
struct Log<'a>(&'a mut Vec<Fetch>);

impl Observer for Log<'_> {
    fn progress(&mut self, _share: f64) {}

    fn fetched(&mut self, now: f64, object: u64, index: u64, _ahead: bool) {
        self.0.push((now, object, index));
    }
}

/// An origin behind a modelled link, with objects of one length under numbers.
#[derive(Debug)]
struct Modelled {
    link: LinkModel,
    len: u64,
    began: Instant,
    /// When the link has nothing to do.
    free: Mutex<f64>,
    log: Arc<Mutex<Vec<Fetch>>>,
}

impl Modelled {
    fn meta(&self) -> ObjectMeta {
        ObjectMeta {
            len: self.len,
            version: Version::new("1"),
            etag: Some("\"1\"".into()),
            modified: None,
            content_type: None,
            content_disposition: None,
            content_language: None,
            content_encoding: None,
            freshness: Freshness::default(),
            tags: StatedTags::default(),
        }
    }
}

impl Origin for Modelled {
    fn describe(&self) -> String {
        "modelled".into()
    }

    fn head<'a>(&'a self, _path: &'a ObjectPath) -> BoxFuture<'a, Result<ObjectMeta, OriginError>> {
        Box::pin(async { Ok(self.meta()) })
    }

    fn read<'a>(
        &'a self,
        path: &'a ObjectPath,
        range: Range<u64>,
        expected: Option<&'a ObjectMeta>,
    ) -> BoxFuture<'a, Result<Fetched, OriginError>> {
        Box::pin(async move {
            if expected.is_none() {
                // The store opens the object: it asks for the metadata next.
                let at = At::new("modelled", path.as_str());
                return Err(OriginError::OutOfRange { at, start: range.start, len: None });
            }
            let now = self.began.elapsed().as_secs_f64();
            let object = path.as_str().parse().unwrap();
            self.log.lock().unwrap().push((now, object, range.start / SLICE));
            let mut free = self.free.lock().unwrap();
            let bytes = range.end - range.start;
            let first = free.max(now + self.link.delay());
            let last = self.link.carries(first, bytes as f64);
            *free = last;
            let began = self.began;
            let pieces = [(first, 1), (last, bytes - 1)];
            let body = stream::iter(pieces).then(move |(at, len)| async move {
                sleep_until(began + Duration::from_secs_f64(at)).await;
                Ok(Bytes::from(vec![0; len as usize]))
            });
            Ok(Fetched { meta: self.meta(), range, body: body.boxed(), sender: SentBy::Origin })
        })
    }

    fn list<'a>(&'a self, _folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
        Box::pin(async { Ok(Listing::default()) })
    }
}

/// One viewer, as the simulator has it: it asks for one slice after the other, and plays each as it arrives.
async fn view(store: Store, object: Arc<Object>, visit: Visit, began: Instant) {
    sleep_until(began + Duration::from_secs_f64(visit.at)).await;
    let watch = store.watch(&object);
    let mut at = visit.from;
    while at < visit.to {
        let end = ((at / SLICE + 1) * SLICE).min(visit.to);
        let asked = Instant::now();
        watch.moves(Course::constant(at, visit.len, visit.rate), end);
        let mut reader = store.read(&object, at..end);
        let mut first = None;
        while let Some(chunk) = reader.next().await {
            chunk.unwrap();
            first.get_or_insert_with(|| asked.elapsed());
        }
        let lasts = Duration::from_secs_f64((end - at) as f64 / visit.rate);
        let waits = first.unwrap().max(asked.elapsed().saturating_sub(lasts));
        sleep_until(asked + waits + lasts).await;
        at = end;
    }
}

/// The fetches of the store, on a paused clock.
async fn stored(visits: &[Visit], mode: Mode, link: &LinkModel) -> Vec<Fetch> {
    let options = StoreOptions {
        memory: 1 << 30,
        slice: SLICE as u32,
        freshness: Some(Duration::from_secs(86_400)),
        prefetch: mode,
        ..StoreOptions::default()
    };
    let store = Store::new(&options).unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    let began = Instant::now();
    let origin = Modelled { link: link.clone(), len: visits[0].len, began, free: Mutex::new(0.0), log: log.clone() };
    store.add_place("", Arc::new(origin));
    let mut objects: HashMap<u64, Arc<Object>> = HashMap::new();
    for visit in visits {
        let path = ObjectPath::parse(&visit.object.to_string()).unwrap();
        objects.insert(visit.object, store.open("", &path).await.unwrap());
    }
    let viewers = visits.iter().map(|visit| view(store.clone(), objects[&visit.object].clone(), *visit, began));
    futures_util::future::join_all(viewers.map(tokio::spawn)).await.into_iter().for_each(|viewer| viewer.unwrap());
    let log = log.lock().unwrap();
    log.clone()
}

fn simulated(visits: &[Visit], mode: Mode, link: &LinkModel) -> Vec<Fetch> {
    let workload = Workload { name: "test".into(), visits: visits.to_vec() };
    let setting = Setting { cache: 1 << 30, slice: SLICE as u32, mode, policy: PolicyName::Lru, link: link.clone() };
    let mut fetches = Vec::new();
    play(&workload, &setting, Log(&mut fetches));
    fetches
}

fn visit(at: f64, object: u64, from: u64, to: u64) -> Visit {
    Visit { at, object, len: 15 * SLICE, from: from * SLICE, to, rate: RATE }
}

#[tokio::test(start_paused = true)]
async fn the_store_and_the_simulator_fetch_the_same_slices_in_the_same_order() {
    // Three viewers of different objects, one that follows in an object, one from the middle, one that leaves early.
    let visits = [
        visit(0.0, 1, 0, 15 * SLICE),
        visit(3.37, 2, 0, 15 * SLICE),
        visit(7.71, 3, 5, 15 * SLICE),
        visit(21.43, 1, 0, 15 * SLICE),
        visit(40.19, 4, 0, 450_000),
        visit(75.53, 3, 0, 15 * SLICE),
    ];
    // Slices take whole milliseconds, the resolution of the paused clock: rounding would add up, and part the two.
    let links = [
        LinkModel::constant(SLICE as f64 / 2.137, 0.083),
        LinkModel::constant(1_000_000.0, 0.021),
        LinkModel::varying(&[(0.0, 100_000.0), (60.0, 50_000.0), (120.0, 400_000.0)], 0.31).unwrap(),
    ];
    for link in &links {
        for mode in [Mode::OnDemand, Mode::Window(0.5), Mode::Window(1.0), Mode::Window(3.0), Mode::Active] {
            // Windows of several viewers open in the moment in which the slow link falls idle. The store's tasks run in any order
            // then.
            if mode == Mode::Window(1.0) && link.carries(0.0, SLICE as f64) > 2.0 {
                continue;
            }
            let (store, simulator) = (stored(&visits, mode, link).await, simulated(&visits, mode, link));
            let slices =
                |fetches: &[Fetch]| fetches.iter().map(|(_, object, index)| (*object, *index)).collect::<Vec<_>>();
            assert_eq!(slices(&store), slices(&simulator), "{mode} {link:?}\n{store:?}\n{simulator:?}");
            for (one, other) in store.iter().zip(&simulator) {
                assert!((one.0 - other.0).abs() <= TOLERANCE, "{mode} {link:?}: {one:?}, simulated {other:?}");
            }
        }
    }
}
