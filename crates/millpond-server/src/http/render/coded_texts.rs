//! Cache of compressed texts. Each text is compressed once per coding, on the worker pool.

use super::compress;
use crate::{library::Resource, work::WorkPool};
use bytes::Bytes;
use millpond_http::request::coding::Coding;
use millpond_media::Work;
use millpond_package::TrackFilter;
use millpond_store::{Cache, Memory, SingleFlight};
use std::sync::Arc;

/// Shortest text that is compressed, in bytes: shorter ones gain nothing.
const SHORTEST: usize = 128;
/// Longest text that is compressed, in bytes: longer ones would occupy a worker thread for long.
const LONGEST: usize = 16 << 20;
/// Weight of a cache entry in addition to its text, in bytes.
const OVERHEAD: u64 = 256;

/// Identity of a text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TextId {
    /// A resource of an asset, by the asset's identity, and the filter of a playlist or manifest of the whole asset.
    Resource(u64, Resource, TrackFilter),
    /// A reply of the web page or a playlist of a live stream, by a hash of its bytes.
    Hash(u64),
}

type Key = (TextId, Coding);

/// Compressed texts, within the memory budget.
pub(crate) struct CodedTexts {
    /// Results; `None` for a text that its coding does not shorten.
    cache: Cache<Key, Option<Bytes>>,
    /// Compressions in progress.
    flights: SingleFlight<Key, Option<Option<Bytes>>>,
    pool: Arc<WorkPool>,
}

impl CodedTexts {
    /// Creates an empty cache in `memory`.
    pub(crate) fn new(memory: &Arc<Memory>, pool: Arc<WorkPool>) -> Self {
        Self { cache: Cache::of(memory, "encodings"), flights: SingleFlight::new(), pool }
    }

    /// Looks a compressed text up. The inner `None` stands for a text that is sent uncompressed.
    pub(crate) fn cached(&self, text: &TextId, coding: Coding) -> Option<Option<Bytes>> {
        self.cache.get(&(text.clone(), coding))
    }

    /// Returns the compressed text, from the cache or made now.
    ///
    /// `None` stands for a text that would not become shorter, or for a worker pool without room.
    pub(crate) async fn get(&self, text: TextId, coding: Coding, bytes: &Bytes) -> Option<Bytes> {
        if !(SHORTEST..=LONGEST).contains(&bytes.len()) {
            return None;
        }
        let key = (text, coding);
        if let Some(known) = self.cache.get(&key) {
            return known;
        }
        let job = || compress_on_pool(self.pool.clone(), coding, bytes.clone());
        let coded = self.flights.run(&key, job).await.0?;
        if !self.cache.contains(&key) {
            let weight = coded.as_ref().map_or(0, Bytes::len) as u64 + OVERHEAD;
            self.cache.insert(key, coded.clone(), weight);
        }
        coded
    }
}

/// Compresses a text on the worker pool. The outer `None` stands for a pool without room.
async fn compress_on_pool(pool: Arc<WorkPool>, coding: Coding, bytes: Bytes) -> Option<Option<Bytes>> {
    let len = bytes.len();
    let _charge = pool.charge(compress::memory(coding, len)).await.ok()?;
    let coded = pool.run(&Work::unlimited(), move || compress::encode(coding, &bytes)).await.ok()?.ok()?;
    Some(Some(coded).filter(|coded| coded.len() < len).map(Bytes::from))
}
