//! Indexes of objects: built once, kept in memory under a budget and on disk across restarts.

use super::{IndexError, flights::Flights};
use crate::metrics::Metrics;
use futures_util::{StreamExt as _, TryStreamExt as _};
use millpond_media::{ByteRange, Indexer, Movie, Step};
use millpond_store::{Cache, Object, Store};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

/// Version of the file form: a change of it or of `Movie` makes older files be built anew.
const FORMAT: &[u8; 8] = b"MPINDX02";
/// Reads of one batch under way at once.
const PARALLEL: usize = 16;
/// Offset basis of FNV-1a.
pub(super) const SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// An index is of one version of one object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    place: String,
    path: String,
    version: String,
    len: u64,
}

/// Where indexes come from.
pub(super) struct Indexes {
    store: Store,
    memory: Cache<Key, Arc<Movie>>,
    flights: Flights<Key, Result<Arc<Movie>, IndexError>>,
    folder: Option<PathBuf>,
    metrics: Arc<Metrics>,
}

impl Indexes {
    pub(super) fn new(store: Store, folder: Option<PathBuf>, metrics: Arc<Metrics>) -> Self {
        let memory = Cache::of(store.memory(), "indexes");
        Self { store, memory, flights: Flights::new(), folder, metrics }
    }

    /// The index of an object.
    pub(super) async fn get(&self, object: &Arc<Object>) -> Result<Arc<Movie>, IndexError> {
        let meta = object.meta();
        let key = Key {
            place: object.place().to_owned(),
            path: object.path().to_string(),
            version: meta.version.to_string(),
            len: meta.len,
        };
        if let Some(movie) = self.memory.get(&key) {
            return Ok(movie);
        }
        self.flights
            .join(&key, || async {
                let movie = Arc::new(self.load_or_build(&key, object).await?);
                let weight = movie.heap_bytes() as u64 + 1024;
                self.memory.insert(key.clone(), movie.clone(), weight);
                Ok(movie)
            })
            .await
    }

    async fn load_or_build(&self, key: &Key, object: &Arc<Object>) -> Result<Movie, IndexError> {
        let folder = self.folder.as_ref().filter(|_| object.is_storable());
        let file = folder.map(|folder| folder.join(file_name(key)));
        if let Some(file) = &file
            && let Some(movie) = load(file.clone(), key.clone()).await
        {
            return Ok(movie);
        }
        let started = Instant::now();
        let (movie, bytes) = build(&self.store, object).await?;
        self.metrics.index_built(started.elapsed(), bytes);
        tracing::info!(
            object = %object.path(),
            read_bytes = bytes,
            heap_bytes = movie.heap_bytes(),
            tracks = movie.tracks.len(),
            ms = started.elapsed().as_millis() as u64,
            "indexed"
        );
        for track in &movie.skipped {
            tracing::warn!(object = %object.path(), track = track.id, reason = %track.reason, "track left out");
        }
        if let Some(file) = file {
            save(file, key, &movie).await;
        }
        Ok(movie)
    }
}

/// Drives the indexer over the store; gives the movie and the bytes read for it.
async fn build(store: &Store, object: &Arc<Object>) -> Result<(Movie, u64), IndexError> {
    let mut indexer = Indexer::new(object.meta().len);
    let mut total = 0;
    loop {
        let media = |error| IndexError::Media { object: object.path().to_string(), error };
        let ranges = match indexer.poll().map_err(media)? {
            Step::Done(movie) => return Ok((movie, total)),
            Step::Need(ranges) => ranges,
        };
        let reads = ranges.into_iter().map(|range: ByteRange| async move {
            store.read_all(object, range.start..range.end).await.map(|bytes| (range, bytes))
        });
        let mut reads = futures_util::stream::iter(reads).buffer_unordered(PARALLEL);
        while let Some((range, bytes)) = reads.try_next().await? {
            total += range.len();
            indexer.supply(range, bytes);
        }
    }
}

fn file_name(key: &Key) -> String {
    let text = format!("{}\0{}\0{}\0{}", key.place, key.path, key.version, key.len);
    format!("{:016x}{:016x}.index", fnv(text.as_bytes(), SEED), fnv(text.as_bytes(), 0x9ae1_6a3b_2f90_404f))
}

/// FNV-1a: names and checksums of our own files, where nobody plans collisions.
pub(super) fn fnv(bytes: &[u8], seed: u64) -> u64 {
    bytes.iter().fold(seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A short name for bytes: entity tags.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    fnv(bytes, SEED)
}

fn key_bytes(key: &Key) -> Vec<u8> {
    postcard::to_stdvec(&(&key.place, &key.path, &key.version, key.len)).unwrap_or_default()
}

async fn load(file: PathBuf, key: Key) -> Option<Movie> {
    tokio::task::spawn_blocking(move || {
        let bytes = std::fs::read(&file).ok()?;
        let movie = decode(&bytes, &key_bytes(&key));
        if movie.is_none() {
            tracing::warn!(file = %file.display(), "stored index is damaged or of another version: built anew");
        }
        movie
    })
    .await
    .ok()?
}

fn decode(bytes: &[u8], key: &[u8]) -> Option<Movie> {
    let rest = bytes.strip_prefix(FORMAT)?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    if u64::from_le_bytes(*sum) != fnv(rest, SEED) {
        return None;
    }
    postcard::from_bytes(rest.strip_prefix(key)?).ok()
}

fn encode(key: &[u8], movie: &Movie) -> Option<Vec<u8>> {
    let movie = postcard::to_stdvec(movie).ok()?;
    let body = [key, &movie].concat();
    let sum = fnv(&body, SEED).to_le_bytes();
    Some([FORMAT, &sum[..], &body].concat())
}

/// Written beside and renamed, so that a killed process leaves whole files or none.
async fn save(file: PathBuf, key: &Key, movie: &Movie) {
    let Some(bytes) = encode(&key_bytes(key), movie) else { return };
    let written = tokio::task::spawn_blocking(move || write(&file, &bytes).map_err(|e| (file, e))).await;
    if let Ok(Err((file, error))) = written {
        tracing::warn!(file = %file.display(), %error, "can't keep an index on disk: it is built again after a restart");
    }
}

fn write(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let part = file.with_extension(format!("part{}", std::process::id()));
    std::fs::write(&part, bytes)?;
    std::fs::rename(&part, file)
}
