//! Texts in the codings that clients ask for: each is coded once, on the pool, and kept in memory.

use super::coding::Coding;
use crate::{library::Resource, work::WorkPool};
use bytes::Bytes;
use millpond_media::Work;
use millpond_store::{Cache, Memory, SingleFlight};
use std::sync::Arc;

/// Shorter texts gain nothing worth a coding.
const SMALLEST: usize = 128;
/// Longer texts are sent as they are: coding them would hold a thread for long.
const LARGEST: usize = 16 << 20;
/// Bytes that an entry is counted as besides the text.
const OVERHEAD: u64 = 256;

/// What a text is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Text {
    /// A resource of an asset, by the asset's identity.
    Made(u64, Resource),
    /// A file of the page, or what the page asks for: a hash of its bytes.
    Page(u64),
}

type Key = (Text, Coding);

/// Coded texts.
pub(super) struct Encodings {
    /// `None` for a text that its coding makes no smaller.
    kept: Cache<Key, Option<Bytes>>,
    flights: SingleFlight<Key, Option<Option<Bytes>>>,
    pool: Arc<WorkPool>,
}

impl Encodings {
    pub(super) fn new(memory: &Arc<Memory>, pool: Arc<WorkPool>) -> Self {
        Self { kept: Cache::of(memory, "encodings"), flights: SingleFlight::new(), pool }
    }

    /// The coded text, where it is kept; the inner `None` says that the text is to be sent as it is.
    pub(super) fn known(&self, text: &Text, coding: Coding) -> Option<Option<Bytes>> {
        self.kept.get(&(text.clone(), coding))
    }

    /// The coded text. `None` where it would not be smaller, or where there is no room to code it now.
    pub(super) async fn get(&self, text: Text, coding: Coding, bytes: &Bytes) -> Option<Bytes> {
        if !(SMALLEST..=LARGEST).contains(&bytes.len()) {
            return None;
        }
        let key = (text, coding);
        if let Some(known) = self.kept.get(&key) {
            return known;
        }
        let job = || encode(self.pool.clone(), coding, bytes.clone());
        let coded = self.flights.run(&key, job).await.0?;
        if !self.kept.contains(&key) {
            let weight = coded.as_ref().map_or(0, Bytes::len) as u64 + OVERHEAD;
            self.kept.insert(key, coded.clone(), weight);
        }
        coded
    }
}

/// Codes a text on the pool; the outer `None` where there is no room.
async fn encode(pool: Arc<WorkPool>, coding: Coding, bytes: Bytes) -> Option<Option<Bytes>> {
    let len = bytes.len();
    let _charge = pool.charge(coding.memory(len)).await.ok()?;
    let coded = pool.run(&Work::unlimited(), move || coding.encode(&bytes)).await.ok()?.ok()?;
    Some(Some(coded).filter(|coded| coded.len() < len).map(Bytes::from))
}
