//! Indexes of objects: built once, kept in memory under a budget and on disk across restarts.

mod charges;
mod scans;

pub(crate) use scans::SoFar;

use crate::{
    asset::Detail,
    copying::may_grow,
    counters::Counters,
    error::IndexError,
    index_files::{IndexFiles, SEED, fnv},
    library::{
        Purpose,
        index::{
            charges::{ReadCharges, TableCharges},
            scans::{Name, Scan, Scans},
        },
    },
    work::{Charge, PoolError, WorkPool},
};
use futures_util::{FutureExt as _, future::BoxFuture};
use millpond_media::{
    ByteRange, FileProgramme, Foreign, IndexLimits, Indexer, MediaError, Movie, Step, Work, WorkError,
};
use millpond_store::{Cache, Object, SingleFlight, Store, trace};
use std::{sync::Arc, time::Instant};
use tracing::Instrument as _;

/// Steps that indexing one object may take, of some ten nanoseconds each.
const MOST_STEPS: u64 = 1 << 26;
/// Bytes of memory for each byte of metadata: the byte, and the tables made of it.
const MEMORY_A_BYTE: u64 = 2;
/// Divisor of the memory budget: a scan requests at most this part at a time. With the bytes that readers copy, the requests of two
/// scans take half of the memory of all jobs. The rest is for their tables.
const BATCHES: u64 = 8;
/// Bytes that tell the format of a file.
const FORMAT: u64 = 1024;
/// Bytes of the first read of a file: what a server sends before it waits for an acknowledgement (RFC 6928), and more than the
/// headers of most fragmented files.
pub(crate) const HEAD: u64 = 16 << 10;

/// Name of an index: one version of one object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    place: String,
    path: String,
    version: String,
    len: u64,
    detail: Detail,
    /// Number of the programme that was chosen.
    programme: Option<u16>,
}

/// The part of an object that an index describes.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemberPart {
    /// Offsets at which a segment begins, where the object consists of joined segments.
    pub(crate) joints: Arc<[u64]>,
    /// Number of the programme of a transport stream; `None` for the first one.
    pub(crate) programme: Option<u16>,
}

impl Key {
    fn of(object: &Object, detail: Detail, programme: Option<u16>) -> Self {
        let meta = object.meta();
        Self {
            place: object.place().to_owned(),
            path: object.path().to_string(),
            version: meta.version.to_string(),
            len: meta.len,
            detail,
            programme,
        }
    }

    /// Returns the name of the object, in any version, and the programme.
    fn name(&self) -> Name {
        (self.place.clone(), self.path.clone(), self.programme)
    }

    /// Returns the name of the index with all samples.
    fn whole(&self) -> Self {
        Self { detail: Detail::Samples, ..self.clone() }
    }

    /// Returns the name of an index of the same object. Media without programmes has one index for all numbers that are requested.
    fn of_movie(&self, movie: &Movie) -> Self {
        let detail = if movie.outline.is_some() { Detail::Outline } else { Detail::Samples };
        let programme = self.programme.filter(|_| !movie.programmes.is_empty());
        Self { detail, programme, ..self.clone() }
    }

    /// Returns the name of the index with all samples, without a chosen programme.
    fn of_object(&self) -> Self {
        Self { programme: None, ..self.whole() }
    }

    fn file_name(&self) -> String {
        let mut text = format!("{}\0{}\0{}\0{}\0{:?}", self.place, self.path, self.version, self.len, self.detail);
        if let Some(programme) = self.programme {
            text.push_str(&format!("\0programme {programme}"));
        }
        format!("{:016x}{:016x}.index", fnv(text.as_bytes(), SEED), fnv(text.as_bytes(), 0x9ae1_6a3b_2f90_404f))
    }

    fn bytes(&self) -> Vec<u8> {
        let Self { place, path, version, len, detail, programme } = self;
        postcard::to_stdvec(&(place, path, version, len, *detail as u8, programme)).unwrap_or_default()
    }
}

/// Finds indexes in memory or on disk, or builds them.
pub(crate) struct Indexes {
    store: Store,
    pool: Arc<WorkPool>,
    memory: Cache<Key, Arc<Movie>>,
    /// Faults of objects that have no index, so that the same bytes are not read again.
    unplayable: Cache<Key, IndexError>,
    /// Programmes of each transport stream that was read, so that numbers without a programme are refused without a read.
    programmes: Cache<Key, Arc<[FileProgramme]>>,
    under_way: SingleFlight<Key, Result<Arc<Movie>, IndexError>>,
    scans: Scans,
    files: Option<Arc<IndexFiles>>,
    counters: Arc<Counters>,
}

impl Indexes {
    pub(crate) fn new(
        store: Store,
        pool: Arc<WorkPool>,
        files: Option<IndexFiles>,
        counters: Arc<Counters>,
    ) -> Arc<Self> {
        let memory = Cache::of(store.memory(), "indexes");
        let unplayable = Cache::of(store.memory(), "unplayable");
        let programmes = Cache::of(store.memory(), "unplayable");
        let files = files.map(Arc::new);
        if let Some(files) = files.clone() {
            let scan = std::thread::Builder::new().name("index-files".to_owned()).spawn(move || files.scan());
            if let Err(error) = scan {
                tracing::warn!(%error, "stored indexes are not bounded before the next start");
            }
        }
        Arc::new(Self {
            store,
            pool,
            memory,
            unplayable,
            programmes,
            under_way: SingleFlight::new(),
            scans: Scans::new(),
            files,
            counters,
        })
    }

    /// Returns the scans that are under way.
    pub(crate) fn scans(&self) -> &Scans {
        &self.scans
    }

    /// Returns the index of an object. Where it is built, `purpose` decides how it is read. An object that can't be outlined has
    /// all samples in every detail.
    pub(crate) async fn get(
        self: &Arc<Self>,
        object: &Arc<Object>,
        purpose: Purpose,
        detail: Detail,
    ) -> Result<Arc<Movie>, IndexError> {
        self.get_part(object, (purpose, detail), MemberPart::default()).await
    }

    /// As [`get`](Self::get), for a part of an object.
    pub(crate) async fn get_part(
        self: &Arc<Self>,
        object: &Arc<Object>,
        (purpose, detail): (Purpose, Detail),
        part: MemberPart,
    ) -> Result<Arc<Movie>, IndexError> {
        let key = Key::of(object, detail, part.programme);
        if let Some(known) = self.without_programme(&key) {
            return known;
        }
        // The index of a scanned file has all samples in any detail, so one scan makes it.
        let key = self.scans.flight(&key).unwrap_or(key);
        let whole = || self.memory.get(&key.whole()).filter(|movie| movie.is_indivisible);
        if let Some(movie) = self.memory.get(&key).or_else(whole) {
            return Ok(movie);
        }
        // No number makes media of another format.
        let foreign =
            || self.unplayable.get(&key.of_object()).filter(|error| matches!(error, IndexError::Foreign { .. }));
        if let Some(error) = self.unplayable.get(&key.whole()).or_else(foreign) {
            return Err(error);
        }
        let job = || {
            let (indexes, object, key) = (self.clone(), object.clone(), key.clone());
            async move {
                let made = indexes.load_or_build(&key, &object, (purpose, &part.joints[..])).await;
                match made.inspect_err(|error| indexes.remember(&key.whole(), error))? {
                    Made::Index(movie) => Ok(indexes.keep(&key, *movie)),
                    Made::Scanned(flight) => {
                        let movie = indexes.again(object, (purpose, flight.detail), part).await?;
                        // A flight for an outline scans only files without one.
                        match key.detail {
                            Detail::Outline if !movie.is_indivisible => {
                                Ok(indexes.keep(&key, Movie { is_indivisible: true, ..(*movie).clone() }))
                            }
                            _ => Ok(movie),
                        }
                    }
                }
            }
        };
        self.under_way.run(&key, job).await.0
    }

    /// As [`get_part`](Self::get_part), from within another flight.
    fn again(
        self: &Arc<Self>,
        object: Arc<Object>,
        need: (Purpose, Detail),
        part: MemberPart,
    ) -> BoxFuture<'static, Result<Arc<Movie>, IndexError>> {
        let indexes = self.clone();
        async move { indexes.get_part(&object, need, part).await }.boxed()
    }

    /// Returns the known result for a programme that the object lacks: an error, or the index of media without any programme.
    fn without_programme(&self, key: &Key) -> Option<Result<Arc<Movie>, IndexError>> {
        let wanted = key.programme?;
        let whole = key.of_object();
        let movie = self.memory.get(&Key { detail: key.detail, ..whole.clone() }).or_else(|| self.memory.get(&whole));
        if let Some(movie) = movie.filter(|movie| movie.programmes.is_empty()) {
            return Some(Ok(movie));
        }
        let programmes = self.programmes.get(&whole)?;
        let is_there = programmes.iter().any(|programme| programme.number == wanted);
        let error = MediaError::NoProgramme { wanted, programmes };
        (!is_there).then(|| Err(IndexError::Media { object: key.path.clone(), error }))
    }

    /// Notes the programmes of a transport stream.
    fn note_programmes(&self, key: &Key, programmes: Arc<[FileProgramme]>) {
        let weight = programmes.iter().map(|programme| programme.heap_bytes() as u64).sum::<u64>() + 1024;
        self.programmes.insert(key.of_object(), programmes, weight);
    }

    fn keep(&self, key: &Key, movie: Movie) -> Arc<Movie> {
        if !movie.programmes.is_empty() {
            self.note_programmes(key, Arc::from(&movie.programmes[..]));
        }
        let movie = Arc::new(movie);
        let weight = movie.heap_bytes() as u64 + 1024;
        self.memory.insert(key.of_movie(&movie), movie.clone(), weight);
        movie
    }

    /// Replaces the outline of an object, which contradicts its fragments, by an index of all samples.
    pub(crate) async fn forsake_outline(self: &Arc<Self>, object: &Arc<Object>) -> Result<(), IndexError> {
        let key = Key::of(object, Detail::Outline, None);
        let whole = self.get(object, Purpose::Playback, Detail::Samples).await?;
        let movie = Movie { is_indivisible: true, ..(*whole).clone() };
        self.memory.remove(&key);
        if let Some(files) = self.files.clone().filter(|_| object.is_storable()) {
            let (outline, name, bytes) = (key.file_name(), key.whole().file_name(), key.whole().bytes());
            let movie = movie.clone();
            let save = move || {
                files.forget(&outline);
                files.save(&name, &bytes, &movie);
            };
            self.pool.run(&Work::unlimited(), save).await.map_err(|error| refused(object, error))?;
        }
        self.keep(&key, movie);
        Ok(())
    }

    /// Keeps an error that the same bytes would cause again.
    fn remember(&self, key: &Key, error: &IndexError) {
        match error {
            IndexError::Media { error: MediaError::Work { error: WorkError::Cancelled, .. }, .. } => {}
            // One list of programmes refuses all wrong numbers.
            IndexError::Media { error: MediaError::NoProgramme { programmes, .. }, .. } => {
                self.note_programmes(key, programmes.clone());
            }
            IndexError::Media { .. } | IndexError::Foreign { .. } => {
                let weight = error.to_string().len() as u64 + 1024;
                let is_foreign = matches!(error, IndexError::Foreign { .. });
                let key = if is_foreign { key.of_object() } else { key.clone() };
                self.unplayable.insert(key, error.clone(), weight);
            }
            _ => {}
        }
    }

    async fn load_or_build(
        &self,
        key: &Key,
        object: &Arc<Object>,
        (purpose, joints): (Purpose, &[u64]),
    ) -> Result<Made, IndexError> {
        // An object that its origin forbids to store reaches no disk.
        let files = self.files.as_ref().filter(|_| object.is_storable());
        if let Some(files) = files
            && let Some(movie) = self.load_fitting(files, key).await
        {
            return Ok(Made::Index(Box::new(movie)));
        }
        let started = Instant::now();
        let span = tracing::info_span!(target: trace::TARGET, "index job", millpond.path = object.path().as_str());
        let built = self.build(object, key, (purpose, joints)).instrument(span).await;
        let Built { movie, bytes, charges } = match built.inspect_err(|_| self.counters.index_failed())? {
            Ok(built) => built,
            Err(flight) => return Ok(Made::Scanned(flight)),
        };
        self.counters.index_built(started.elapsed(), bytes);
        tracing::info!(
            object = %object.path(),
            read_bytes = bytes,
            heap_bytes = movie.heap_bytes(),
            tracks = movie.tracks.len(),
            outlined = movie.outline.is_some(),
            ms = started.elapsed().as_millis() as u64,
            "indexed"
        );
        for track in &movie.skipped {
            tracing::warn!(object = %object.path(), track = track.id, reason = %track.reason, "track left out");
        }
        // A file that is being copied has another version a moment later.
        let passing = movie.cut_short && may_grow(object);
        let Some(files) = files.cloned().filter(|_| !passing) else { return Ok(Made::Index(Box::new(movie))) };
        let key = key.of_movie(&movie);
        let (name, key) = (key.file_name(), key.bytes());
        let save = move || {
            files.save(&name, &key, &movie);
            Made::Index(Box::new(movie))
        };
        let saved = self.pool.run(&Work::unlimited(), save).await;
        drop(charges);
        saved.map_err(|error| refused(object, error))
    }

    /// Loads an index in the detail of a key, or the index of all samples of an object that can't be outlined.
    async fn load_fitting(&self, files: &Arc<IndexFiles>, key: &Key) -> Option<Movie> {
        let movie = self.load(files, key).await;
        match key.detail {
            Detail::Outline if movie.is_none() => {
                self.load(files, &key.whole()).await.filter(|movie| movie.is_indivisible)
            }
            _ => movie,
        }
    }

    /// Loads an index from the disk, where there is one and memory for it.
    async fn load(&self, files: &Arc<IndexFiles>, key: &Key) -> Option<Movie> {
        let work = Work::unlimited();
        let (name, bytes) = (key.file_name(), key.bytes());
        let cost = {
            let (files, name) = (files.clone(), name.clone());
            self.pool.run(&work, move || files.cost(&name)).await.ok()??
        };
        let _charge = self.pool.charge(cost.memory()).await.ok()?;
        let files = files.clone();
        self.pool.run(&work, move || files.load(&name, &bytes, cost)).await.ok()?
    }

    /// Returns why an object has no index: its format, where its first bytes are those of another known format.
    async fn unreadable(&self, object: &Arc<Object>, error: MediaError) -> IndexError {
        let path = object.path().to_string();
        if error.offset() == 0 && !matches!(error, MediaError::Work { .. }) {
            let head = self.store.read_all(object, 0..object.meta().len.min(FORMAT)).await;
            if let Some(format) = head.ok().and_then(|head| Foreign::of_bytes(&head)) {
                return IndexError::Foreign { object: path, format };
            }
        }
        IndexError::Media { object: path, error }
    }

    /// Drives the indexer over the store. What it reads is charged before it is read, and each step of the indexer is a
    /// job of the pool. If another flight scans the object already, the result is the key of that flight.
    async fn build(
        &self,
        object: &Arc<Object>,
        key: &Key,
        (purpose, joints): (Purpose, &[u64]),
    ) -> Result<Result<Built, Key>, IndexError> {
        let mut reads = self.store.scattered(object);
        let work = Work::new(MOST_STEPS);
        let limits = IndexLimits::default();
        let batch = limits.batch.min(self.store.memory().budget() / BATCHES);
        let limits = IndexLimits { head: HEAD, batch, ..limits };
        let indexer = Indexer::with_limits(object.meta().len, limits).with_work(work.clone()).joined_at(joints);
        let mut indexer = indexer.of_programme(key.programme);
        if key.detail == Detail::Outline {
            indexer = indexer.outlining();
        }
        let mut bytes = 0;
        let (mut read_for, mut tables) = (ReadCharges::default(), TableCharges::default());
        let mut scan: Option<Scan<'_>> = None;
        let mut has_scanned = false;
        loop {
            let publishes = scan.as_ref().is_some_and(|scan| scan.is_due(bytes));
            let step = move || {
                let step = indexer.poll();
                let so_far = if publishes { indexer.so_far() } else { None };
                (indexer, step, so_far)
            };
            let (stepped, step, so_far) = self.pool.run(&work, step).await.map_err(|error| refused(object, error))?;
            indexer = stepped;
            let ranges = match step {
                Ok(Step::Done(movie)) => {
                    read_for.charges.append(&mut tables.charges);
                    return Ok(Ok(Built { movie, bytes, charges: read_for.charges }));
                }
                Ok(Step::Need(ranges)) => ranges,
                Err(error) => return Err(self.unreadable(object, error).await),
            };
            // The index of the part that was read is published, if memory has room for it at once. The scan does not wait for room.
            if let Some((scan, movie)) = scan.as_mut().zip(so_far) {
                let weight = movie.heap_bytes() as u64;
                if let Some(Ok(charge)) = self.pool.charge(weight).now_or_never() {
                    scan.publish(bytes, SoFar::new((object.clone(), key.programme), movie, (weight, charge)));
                }
            }
            let wanted = ranges.iter().map(|range| range.len()).sum::<u64>().saturating_mul(MEMORY_A_BYTE);
            // A scan does not hold the bytes that it was given, but the tables that it makes of them.
            if indexer.is_scanning() {
                // The stretches of a playlist share its path, so none has a beginning. Reading two fragments for an outline is no scan.
                if scan.is_none() && joints.is_empty() && !indexer.is_at_frames() {
                    scan = self.scans.begin(key);
                    // Two flights with different details may have begun before either one began to scan.
                    if scan.is_none()
                        && !has_scanned
                        && let Some(flight) = self.scans.flight(key).filter(|flight| flight != key)
                    {
                        return Ok(Err(flight));
                    }
                    has_scanned = true;
                }
                read_for.end_of_scanned();
                let held = indexer.scanned_bytes() as u64;
                let needed = tables.rounded(held).saturating_add(read_for.bytes).saturating_add(wanted);
                if let Some(scan) = &scan {
                    scan.make_room(needed, self.pool.most());
                }
                if needed > self.pool.most() {
                    // Refused at once, because the job would wait for its own memory.
                    drop(self.pool.charge(needed).await.map_err(|error| refused(object, error))?);
                }
                tables.grow(&self.pool, held).await.map_err(|error| refused(object, error))?;
            }
            let charge = self.pool.charge(wanted).await.map_err(|error| refused(object, error))?;
            read_for.push(charge, wanted, indexer.is_scanning());
            if indexer.is_at_frames() {
                // These bytes stay in the store: the first segment is made of them.
                for range in &ranges {
                    self.store.prefetch_exactly(object, range.start..range.end).await;
                }
            }
            let ranges = ranges.into_iter().map(|range| range.start..range.end).collect();
            let walks = purpose == Purpose::Playback && indexer.is_at_fragments();
            let read = if walks { reads.walk(ranges).await? } else { reads.read(ranges).await? };
            for (range, read) in read {
                bytes += read.len() as u64;
                indexer.supply(ByteRange::new(range.start, range.end), read);
            }
        }
    }
}

/// Result of a flight.
enum Made {
    Index(Box<Movie>),
    /// Another flight, with this key, scans the object already.
    Scanned(Key),
}

/// An index, and the memory that is still charged for it.
struct Built {
    movie: Movie,
    /// Bytes read for it.
    bytes: u64,
    charges: Vec<Charge>,
}

fn refused(object: &Object, error: PoolError) -> IndexError {
    IndexError::Refused { object: object.path().to_string(), error }
}

/// Returns a short name for bytes, as entity tags need. Not collision-proof against an adversary.
#[must_use]
pub fn fingerprint(bytes: &[u8]) -> u64 {
    fnv(bytes, SEED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::{PoolOptions, PoolStats};
    use millpond_store::{MemoryOrigin, ObjectPath, StoreOptions};

    const SAMPLE: &[u8] = include_bytes!("../../../../assets/sample/180p.mp4");

    async fn indexes(memory: u64, name: &str, bytes: &[u8]) -> (Arc<Indexes>, Arc<Object>) {
        let store = Store::new(&StoreOptions { memory, ..StoreOptions::default() }).unwrap();
        let origin = MemoryOrigin::new("films");
        origin.put(name, bytes::Bytes::copy_from_slice(bytes));
        store.add_place("films", Arc::new(origin));
        let pool = Arc::new(WorkPool::new(PoolOptions { threads: 2 }, store.memory()).unwrap());
        let object = store.open("films", &ObjectPath::parse(name).unwrap()).await.unwrap();
        (Indexes::new(store, pool, None, Arc::default()), object)
    }

    #[tokio::test]
    async fn an_unplayable_object_is_read_once() {
        let (indexes, object) = indexes(64 << 20, "a.mp4", &[1; 4096]).await;
        for _ in 0..3 {
            assert!(matches!(
                indexes.get(&object, Purpose::Playback, Detail::Samples).await,
                Err(IndexError::Media { .. })
            ));
        }
        assert_eq!(indexes.counters.snapshot(PoolStats::default()).indexes_failed, 1);
    }

    #[tokio::test]
    async fn what_is_read_is_charged_before_and_given_back_after() {
        let (indexes, object) = indexes(64 << 20, "a.mp4", SAMPLE).await;
        indexes.get(&object, Purpose::Playback, Detail::Samples).await.unwrap();
        let held = |kinds: Vec<(&str, millpond_store::CacheCounters)>| {
            kinds
                .iter()
                .find(|(name, _)| *name == "work")
                .map(|(_, counters)| (counters.weight, counters.insertions > 0))
        };
        assert_eq!(held(indexes.store.memory().kinds()), Some((0, true)));
        assert_eq!(indexes.counters.snapshot(PoolStats::default()).indexes_built, 1);

        // Twice the first read is over half of the budget.
        let (indexes, object) = super::tests::indexes(64 << 20, "a.mp4", SAMPLE).await;
        indexes.store.memory().set_budget(40 << 10);
        let error = indexes.get(&object, Purpose::Playback, Detail::Samples).await.unwrap_err().to_string();
        let told = "a.mp4: needs 32768 bytes of memory, expected at most 20480: half of the budget of 40960 (memory)";
        assert_eq!(error, told);
    }

    /// A Matroska file without cues: a frame of sound, and many texts.
    fn many_texts(count: u32) -> Vec<u8> {
        let element = |id: &[u8], body: &[u8]| [id, &[0x80 | body.len() as u8], body].concat();
        let entry = |number: u8, kind: u8, codec: &[u8]| {
            let fields = [element(&[0xd7], &[number]), element(&[0x83], &[kind]), element(&[0x86], codec)];
            element(&[0xae], &fields.concat())
        };
        let tracks = [entry(1, 2, b"A_AAC"), entry(2, 17, b"S_TEXT/UTF8")].concat();
        let block = [element(&[0xa1], b"\x82\0\0\0a"), element(&[0x9b], &[9])].concat();
        let text = element(&[0xa0], &block);
        let endless = |id: &[u8]| [id, &[0xff]].concat();
        let parts = [
            element(&[0x1a, 0x45, 0xdf, 0xa3], &element(&[0x42, 0x82], b"matroska")),
            endless(&[0x18, 0x53, 0x80, 0x67]),
            element(&[0x16, 0x54, 0xae, 0x6b], &tracks),
            endless(&[0x1f, 0x43, 0xb6, 0x75]),
            element(&[0xe7], &[0]),
            element(&[0xa3], b"\x81\0\0\x80frame"),
            text.repeat(count as usize),
        ];
        parts.concat()
    }

    #[tokio::test]
    async fn two_details_at_once_share_a_scan() {
        for details in [[Detail::Outline, Detail::Samples], [Detail::Samples, Detail::Outline]] {
            let (indexes, object) = indexes(64 << 20, "a.mkv", &many_texts(200_000)).await;
            let [first, second] = details.map(|detail| indexes.get(&object, Purpose::Playback, detail));
            let (first, second) = tokio::join!(first, second);
            assert_eq!(first.unwrap().tracks, second.unwrap().tracks);
            assert_eq!(indexes.counters.snapshot(PoolStats::default()).indexes_built, 1, "{details:?}");
        }
    }

    #[tokio::test]
    async fn guessed_programmes_cost_one_read() {
        let null = [&[0x47, 0x1f, 0xff, 0x10][..], &[0; 184]].concat().repeat(100);
        let (indexes, object) = indexes(64 << 20, "mux.ts", &null).await;
        for number in 1..100 {
            let part = MemberPart { programme: Some(number), ..MemberPart::default() };
            let error = indexes.get_part(&object, (Purpose::Playback, Detail::Samples), part).await.unwrap_err();
            assert!(error.to_string().contains(&format!("found no programme {number}, expected")), "{error}");
        }
        assert_eq!(indexes.counters.snapshot(PoolStats::default()).indexes_failed, 1);
        assert_eq!((indexes.programmes.len(), indexes.unplayable.len()), (1, 0));
    }

    #[tokio::test]
    async fn media_without_programmes_is_indexed_once() {
        let (indexes, object) = indexes(64 << 20, "a.ts", SAMPLE).await;
        for number in 1..10 {
            let part = MemberPart { programme: Some(number), ..MemberPart::default() };
            let movie = indexes.get_part(&object, (Purpose::Playback, Detail::Samples), part).await.unwrap();
            assert!(movie.programmes.is_empty());
        }
        assert_eq!(indexes.counters.snapshot(PoolStats::default()).indexes_built, 1);
    }

    #[tokio::test]
    async fn tables_of_a_scan_are_charged() {
        let (indexes, object) = indexes(64 << 20, "a.mkv", &many_texts(200_000)).await;
        let movie = indexes.get(&object, Purpose::Playback, Detail::Samples).await.unwrap();
        assert_eq!(movie.tracks.last().map(|track| track.samples.len()), Some(200_000));

        let (indexes, object) = super::tests::indexes(64 << 20, "a.mkv", &many_texts(200_000)).await;
        indexes.store.memory().set_budget(8 << 20);
        let error = indexes.get(&object, Purpose::Playback, Detail::Samples).await.unwrap_err().to_string();
        assert!(error.contains("half of the budget of 8388608 (memory)"), "{error}");
    }
}
