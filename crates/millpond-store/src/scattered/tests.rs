#![allow(clippy::single_range_in_vec_init, reason = "batches of one range are what is read")]

use std::sync::Mutex;

use super::*;
use crate::origin::memory::MemoryOrigin;
use crate::origin::{BoxFuture, Fetched, Listing, ObjectMeta, Origin};
use crate::path::ObjectPath;
use crate::store::StoreOptions;

const SLICE: u64 = 64 * 1024;
const LEN: u64 = 64 * SLICE;
/// A slice takes less than a request's delay.
const FAST: LinkEstimate = LinkEstimate { bandwidth: 1e9, delay: 0.02 };
/// A slice takes much longer than a request's delay.
const THIN: LinkEstimate = LinkEstimate { bandwidth: 1e4, delay: 0.02 };

/// An origin that notes the ranges that are requested.
#[derive(Debug)]
struct Noting {
    inner: MemoryOrigin,
    reads: Mutex<Vec<Range<u64>>>,
}

impl Origin for Noting {
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
        self.reads.lock().unwrap().push(range.start..range.end.min(LEN));
        self.inner.read(path, range, expected)
    }

    fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
        self.inner.list(folder)
    }
}

/// Byte at an offset of the object.
fn byte(offset: u64) -> u8 {
    (offset % 251) as u8
}

struct Case {
    origin: Arc<Noting>,
    reads: Scattered,
}

impl Case {
    async fn new(memory: u64, link: LinkEstimate) -> Self {
        let options = StoreOptions { memory, slice: SLICE as u32, run: 16 * SLICE, ..StoreOptions::default() };
        let store = Store::new(&options).unwrap();
        let origin = Arc::new(Noting { inner: MemoryOrigin::new("films"), reads: Mutex::default() });
        origin.inner.put("a", (0..LEN).map(byte).collect::<Vec<u8>>());
        store.add_place("", origin.clone());
        let object = store.open("", &ObjectPath::parse("a").unwrap()).await.unwrap();
        // The first slice, which opened it.
        store.read_all(&object, 0..SLICE).await.unwrap();
        let mut reads = store.scattered(&object);
        reads.link = Some(link);
        reads.read(vec![0..100]).await.unwrap();
        origin.reads.lock().unwrap().clear();
        Self { origin, reads }
    }

    /// Reads headers of 100 bytes, one after the other, `gap` bytes apart.
    async fn hop(&mut self, count: u64, gap: u64) {
        for place in 1..=count {
            self.batch([place * gap..place * gap + 100]).await;
        }
    }

    async fn batch(&mut self, ranges: impl IntoIterator<Item = Range<u64>>) {
        let mut ranges: Vec<_> = ranges.into_iter().collect();
        let mut read = self.reads.walk(ranges.clone()).await.unwrap();
        read.sort_by_key(|(range, _)| range.start);
        ranges.sort_by_key(|range| range.start);
        assert_eq!(read.iter().map(|(range, _)| range.clone()).collect::<Vec<_>>(), ranges);
        for (range, bytes) in read {
            assert!(bytes.iter().copied().eq(range.clone().map(byte)), "{range:?}");
        }
    }

    /// Returns the requests in order of their positions.
    fn requests(&self) -> Vec<Range<u64>> {
        let mut reads = self.origin.reads.lock().unwrap().clone();
        reads.sort_by_key(|range| range.start);
        reads
    }
}

fn assert_disjoint(requests: &[Range<u64>]) {
    for pair in requests.windows(2) {
        assert!(pair[0].end <= pair[1].start, "{pair:?}");
    }
}

#[tokio::test]
async fn a_walk_over_near_ranges_takes_runs_that_double() {
    let mut case = Case::new(64 << 20, FAST).await;
    case.hop(62, SLICE).await;
    let requests = case.requests();
    assert_disjoint(&requests);
    let lengths: Vec<u64> = requests.iter().map(|range| (range.end - range.start) / SLICE).collect();
    assert!((62..64).contains(&lengths.iter().sum::<u64>()), "{lengths:?}");
    assert!(lengths.len() <= 8 && lengths[0] <= FIRST + 1, "{lengths:?}");
}

#[tokio::test]
async fn a_walk_over_far_ranges_reads_nothing_else() {
    for (link, gap) in [(FAST, SLICE * 5), (THIN, SLICE)] {
        let mut case = Case::new(64 << 20, link).await;
        case.hop(12, gap).await;
        assert_eq!(case.requests(), (1..=12).map(|place| place * gap..place * gap + 100).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn known_near_ranges_share_runs_and_known_far_ones_do_not() {
    let near = (1..128).map(|place| place * SLICE / 2..place * SLICE / 2 + SLICE / 4);
    let mut case = Case::new(64 << 20, FAST).await;
    case.batch(near).await;
    let requests = case.requests();
    assert_disjoint(&requests);
    assert!(requests.len() <= 5, "{requests:?}");
    let headers = |gap: u64| (1..LEN / gap).map(move |place| place * gap..place * gap + 100);
    for (link, gap) in [(FAST, SLICE), (FAST, SLICE * 3), (THIN, SLICE)] {
        let mut case = Case::new(64 << 20, link).await;
        case.batch(headers(gap)).await;
        assert_eq!(case.requests(), headers(gap).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn runs_leave_half_of_the_cache() {
    let mut case = Case::new(32 * SLICE, FAST).await;
    case.hop(62, SLICE).await;
    let (runs, exact): (Vec<_>, Vec<_>) = case.requests().into_iter().partition(|range| range.end - range.start > 100);
    let read: u64 = runs.iter().map(|range| range.end - range.start).sum();
    assert!(read <= 17 * SLICE && exact.len() > 40, "{runs:?}");
}

#[tokio::test]
async fn an_end_that_a_walk_will_reach_is_read_once() {
    let mut case = Case::new(64 << 20, FAST).await;
    case.batch([SLICE..SLICE + 100, LEN - 1000..LEN]).await;
    for place in 2..64 {
        case.batch([place * SLICE..place * SLICE + 100]).await;
    }
    let requests = case.requests();
    assert_disjoint(&requests);
    assert!(requests.len() <= 9, "{requests:?}");
}
