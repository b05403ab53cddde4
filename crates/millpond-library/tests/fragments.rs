//! Requests to an origin 50 ms away for the first playlist of a fragmented film.

use bytes::Bytes;
use millpond_library::{
    Asset, Detail, Library, LibraryOptions, Purpose,
    work::{PoolOptions, WorkPool},
};
use millpond_media::ByteRange;
use millpond_package::{Plan, PlanItem, fmp4};
use millpond_store::{
    BoxFuture, Fetched, Listing, MemoryOrigin, ObjectMeta, ObjectPath, Origin, OriginError, Store, StoreOptions,
};
use std::{
    collections::HashMap,
    ops::Range,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// Time from a request to its reply. With this delay a walk reads gaps of 250 kB, if the link carries 2.5 MB/s or more.
const DELAY: Duration = Duration::from_millis(50);
/// Samples in a fragment: two seconds.
const SAMPLES: u32 = 50;
/// Ticks of a sample, of 1000 in a second.
const TICKS: u32 = 40;
/// An `avc1` sample entry: 320x180, lengths of four bytes.
const AVC: &str = "000000af61766331000000000000000100000000000000000000000000000000014000b40048000000480000000000000001154c61766335392e33372e313030206c696278323634000000000000000000000018ffff00000035617663430164000cffe1001a6764000cacd941419f9f011000000300100000030320f142996001000468ef8fcbfdf8f800000000107061737000000001000000010000001462747274000000000003bb580003bb58";

/// An origin that answers late and notes the ranges that are requested.
#[derive(Debug)]
struct Far {
    inner: MemoryOrigin,
    reads: Mutex<Vec<Range<u64>>>,
}

impl Origin for Far {
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
            tokio::time::sleep(DELAY).await;
            let fetched = self.inner.read(path, range, expected).await?;
            self.reads.lock().unwrap().push(fetched.range.clone());
            Ok(fetched)
        })
    }

    fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
        self.inner.list(folder)
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn bx(kind: &[u8; 4], parts: &[&[u8]]) -> Vec<u8> {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    [&words(&[len as u32 + 8])[..], kind, &parts.concat()].concat()
}

fn movie() -> Vec<u8> {
    let entry: Vec<u8> =
        (0..AVC.len()).step_by(2).map(|at| u8::from_str_radix(&AVC[at..at + 2], 16).unwrap()).collect();
    header(b"vide", 1000, &entry)
}

/// A `moov` of one track with this sample entry.
fn header(handler: &[u8; 4], timescale: u32, entry: &[u8]) -> Vec<u8> {
    let tkhd = words(&[7, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000, 0, 0]);
    let empty = |kind| bx(kind, &[&words(&[0, 0])]);
    let stsz = bx(b"stsz", &[&words(&[0, 0, 0])]);
    let stsd = bx(b"stsd", &[&words(&[0, 1]), entry]);
    let stbl = bx(b"stbl", &[&stsd, &empty(b"stts"), &empty(b"stsc"), &stsz, &empty(b"stco")]);
    let mdhd = bx(b"mdhd", &[&words(&[0, 0, 0, timescale, 0, 0x15c7_0000])]);
    let hdlr = bx(b"hdlr", &[&words(&[0, 0]), handler, &[0; 13]]);
    let mdia = bx(b"mdia", &[&mdhd, &hdlr, &bx(b"minf", &[&stbl])]);
    let trak = bx(b"trak", &[&bx(b"tkhd", &[&tkhd]), &mdia]);
    let mvhd = bx(b"mvhd", &[&words(&[0, 0, 0, 1000, 0]), &[0; 80]]);
    let mvex = bx(b"mvex", &[&bx(b"trex", &[&words(&[0, 1, 1, TICKS, 0, 0x0101_0000])])]);
    bx(b"moov", &[&mvhd, &trak, &mvex])
}

/// A `moof` of samples of `size` bytes, and their `mdat`.
fn fragment(number: u32, size: u32) -> Vec<u8> {
    let moof = |offset: u32| {
        let mfhd = bx(b"mfhd", &[&words(&[0, number + 1])]);
        let tfhd = bx(b"tfhd", &[&words(&[0x2_0010, 1, size])]);
        let tfdt = bx(b"tfdt", &[&words(&[0, number * SAMPLES * TICKS])]);
        let trun = bx(b"trun", &[&words(&[5, SAMPLES, offset, 0x0200_0000])]);
        bx(b"moof", &[&mfhd, &bx(b"traf", &[&tfhd, &tfdt, &trun])])
    };
    let mut media = vec![0; (SAMPLES * size) as usize];
    for (index, sample) in media.chunks_mut(size as usize).enumerate() {
        sample[..4].copy_from_slice(&(size - 4).to_be_bytes());
        // A NAL unit of a key frame, or of another one.
        sample[4] = if index == 0 { 0x65 } else { 0x41 };
    }
    let head = moof(0).len() as u32 + 8;
    [moof(head), bx(b"mdat", &[&media])].concat()
}

/// Where a film names its fragments.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Named {
    Nowhere,
    /// In a `sidx` before them.
    First,
    /// In an `mfra` behind them.
    Last,
}

fn film(named: Named, count: u32, size: u32) -> Vec<u8> {
    let mut film = [bx(b"ftyp", &[b"isom\0\0\0\0"]), movie()].concat();
    let fragments: Vec<Vec<u8>> = (0..count).map(|number| fragment(number, size)).collect();
    if named == Named::First {
        let mut fields = vec![0, 1, 1000, 0, 0, count];
        for fragment in &fragments {
            fields.extend([fragment.len() as u32, SAMPLES * TICKS, 0x9000_0000]);
        }
        film.extend(bx(b"sidx", &[&words(&fields)]));
    }
    let mut entries = Vec::new();
    for (number, fragment) in fragments.iter().enumerate() {
        entries.extend(words(&[number as u32 * SAMPLES * TICKS, film.len() as u32]));
        entries.extend([1, 1, 1]);
        film.extend(fragment);
    }
    if named == Named::Last {
        let tfra = bx(b"tfra", &[&words(&[0, 1, 0, count]), &entries]);
        film.extend(bx(b"mfra", &[&tfra, &bx(b"mfro", &[&words(&[0, tfra.len() as u32 + 24])])]));
    }
    film
}

/// A film that lies far away.
struct Case {
    library: Arc<Library>,
    origin: Arc<Far>,
}

fn case(bytes: Vec<u8>) -> Case {
    let store = Store::new(&StoreOptions::default()).unwrap();
    let origin = Arc::new(Far { inner: MemoryOrigin::new("films"), reads: Mutex::default() });
    origin.inner.put("film.mp4", Bytes::from(bytes));
    store.add_place("films", origin.clone());
    let pool = Arc::new(WorkPool::new(PoolOptions { threads: 2 }, store.memory()).unwrap());
    let options = LibraryOptions {
        segment_duration: Duration::from_secs(4),
        index_folder: None,
        cache_size: 0,
        lists_thumbnails: false,
        places: HashMap::new(),
    };
    Case { library: Arc::new(Library::new(store, pool, options)), origin }
}

impl Case {
    async fn open(&self, purpose: Purpose, detail: Detail) -> Arc<Asset> {
        self.library.open_for(&"films".into(), "film.mp4", purpose, detail).await.unwrap()
    }
}

/// Opens a film with all samples. Returns the requests in order of their positions.
async fn requests(purpose: Purpose, named: Named, count: u32, size: u32) -> Vec<Range<u64>> {
    requests_for(purpose, Detail::Samples, named, count, size).await
}

/// Opens a film. Returns the requests in order of their positions.
async fn requests_for(purpose: Purpose, detail: Detail, named: Named, count: u32, size: u32) -> Vec<Range<u64>> {
    let case = case(film(named, count, size));
    let started = Instant::now();
    let asset = case.open(purpose, detail).await;
    let origin = &case.origin;
    let took = started.elapsed();
    let mut reads = origin.reads.lock().unwrap().clone();
    let bytes: u64 = reads.iter().map(|range| range.end - range.start).sum();
    println!(
        "{purpose:?}, {detail:?}, {named:?}, {count} fragments: {} requests, {bytes} bytes, {took:?}",
        reads.len()
    );
    assert_eq!(asset.presentation.warnings().len(), 0, "{:?}", asset.presentation.warnings());
    reads.sort_by_key(|range| range.start);
    reads
}

/// Byte ranges of a plan, joined where they follow each other.
fn ranges(plan: Plan) -> Vec<ByteRange> {
    let Plan::Items(items) = plan else { panic!("a plan of ranges") };
    let mut ranges: Vec<ByteRange> = Vec::new();
    for item in items {
        let PlanItem::Object(object) = item else { continue };
        match ranges.last_mut() {
            Some(last) if last.end == object.range.start => last.end = object.range.end,
            _ => ranges.push(object.range),
        }
    }
    ranges
}

#[tokio::test(flavor = "multi_thread")]
async fn a_film_with_an_index_of_fragments_takes_few_requests() {
    for (named, most) in [(Named::First, 4), (Named::Last, 5)] {
        for size in [500, 40_000] {
            let known = requests_for(Purpose::Playback, Detail::Outline, named, 100, size).await;
            let bytes: u64 = known.iter().map(|range| range.end - range.start).sum();
            assert!(known.len() <= most && bytes < 128 << 10, "{named:?}: {bytes}: {known:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_without_an_index_takes_twenty_requests() {
    for detail in [Detail::Outline, Detail::Samples] {
        let walked = requests_for(Purpose::Playback, detail, Named::Nowhere, 1800, 500).await;
        assert!(walked.len() <= 20 && twice(&walked) <= 256 << 10, "{walked:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn loaded_segments_have_the_samples_of_the_whole_index() {
    for named in [Named::First, Named::Last] {
        let case = case(film(named, 30, 5000));
        let outlined = case.open(Purpose::Playback, Detail::Outline).await;
        let before = case.origin.reads.lock().unwrap().len();
        let count = outlined.presentation.track("v1").unwrap().segment_count();
        assert_eq!(count, 15, "two fragments each");
        let mut found = Vec::new();
        for number in 1..=count {
            let plan = case.library.loaded_segment(&outlined, "v1", number).await.unwrap();
            found.extend(ranges(plan.expect("a segment")));
        }
        let after = case.origin.reads.lock().unwrap().len();
        assert!(after - before <= count as usize, "{} requests", after - before);
        assert!(case.library.loaded_segment(&outlined, "v1", count + 1).await.unwrap().is_none());
        let whole = case.open(Purpose::Playback, Detail::Samples).await;
        assert!(whole.presentation.track("v1").unwrap().fragments(1).is_none());
        let track = whole.presentation.track("v1").unwrap();
        let all = (1..=track.segment_count())
            .flat_map(|number| ranges(fmp4::segment(&whole.presentation, track, number).expect("a segment")));
        assert_eq!(found, all.collect::<Vec<_>>());
        assert_ne!(outlined.version(), whole.version());
        assert_eq!(outlined.presentation.duration(), whole.presentation.duration());
    }
}

/// Bytes that were requested before.
fn twice(requests: &[Range<u64>]) -> u64 {
    requests.windows(2).map(|pair| pair[0].end.min(pair[1].end).saturating_sub(pair[1].start)).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_minutes_of_near_fragments_take_few_requests() {
    let walked = requests(Purpose::Playback, Named::Nowhere, 300, 5000).await;
    assert!(walked.len() <= 30 && twice(&walked) <= 256 << 10, "{walked:?}");
    // Headers at known positions are requested at the same time, and nothing else is read.
    for named in [Named::First, Named::Last] {
        let known = requests(Purpose::Playback, named, 300, 5000).await;
        let bytes: u64 = known.iter().map(|range| range.end - range.start).sum();
        assert!(known.len() <= 302 && bytes < 8 << 20, "{bytes}: {known:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn far_fragments_are_not_read_as_a_whole() {
    for named in [Named::Nowhere, Named::First, Named::Last] {
        let far = requests(Purpose::Playback, named, 20, 80_000).await;
        let bytes: u64 = far.iter().map(|range| range.end - range.start).sum();
        assert!(far.len() <= 60 && bytes < 3 << 20, "{far:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_reads_headers_alone() {
    for named in [Named::Nowhere, Named::First, Named::Last] {
        let listed = requests(Purpose::Listing, named, 100, 5000).await;
        let bytes: u64 = listed.iter().map(|range| range.end - range.start).sum();
        assert!(bytes < 3 << 20, "{named:?}: {bytes}");
    }
}
