//! Writes the units of an object to the stores of a group, and its map at the end.
//!
//! A note beside the map names the units of a run that has not ended. The next run removes them.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, FuturesUnordered};
use futures_util::{StreamExt, TryStreamExt};
use sha2::{Digest, Sha256};

use super::hex::hex;
use super::map::{LONGEST_MAP, StripeMap, StripeSource, map_path, sums_path, unit_path};
use super::sink::{MapTarget, Sink, StripeError};
use super::sums::{SumTable, SumWriter};
use crate::error::{At, OriginError};
use crate::layout::Layout;
use crate::origin::bare::bare;
use crate::origin::{Origin, OriginBody, RemoteOptions};
use crate::path::ObjectPath;
use crate::striping::{MAP_SUFFIX, StripeStore};

/// Memory for units that are being written, in bytes.
const WRITING: u64 = 64 << 20;
/// Units that are removed at the same time.
const REMOVED_AT_ONCE: usize = 16;

/// How an object is to be striped.
#[derive(Clone, Debug)]
pub struct StripePlan {
    /// The stores of the group.
    pub stores: Vec<StripeStore>,
    /// Number of stores that take units of this object; `None` for all.
    pub factor: Option<usize>,
    /// Length of a unit in bytes.
    pub unit: u64,
    /// Copies of each unit, on different stores.
    pub copies: usize,
}

/// A striped object.
#[derive(Clone, Debug)]
pub struct Striped {
    /// Its map.
    pub map: StripeMap,
    /// The map that was replaced.
    pub former: Option<StripeMap>,
}

/// Stripes an object: writes its units, then its map. Calls `progress` with the bytes read so far.
///
/// Nothing of an earlier map is changed before the new map is there. The units of that one stay: its readers may still need
/// them ([`remove`] removes them).
///
/// # Errors
///
/// The source cannot be read or changes meanwhile, a store or the map cannot be written, or another run stripes the object
/// at the same time. There is no new map then, and the units of this run are removed as far as possible.
pub async fn stripe(
    source: &Arc<dyn Origin>,
    path: &ObjectPath,
    target: &MapTarget,
    plan: &StripePlan,
    options: &RemoteOptions,
    mut progress: impl FnMut(u64),
) -> Result<Striped, StripeError> {
    let meta = source.head(path).await?;
    let stores = chosen(plan, path)?;
    let layout = Layout::new(meta.len, plan.unit, stores.len(), plan.copies)?;
    let table = SumTable::new(layout)?;
    let sinks = stores.iter().map(|store| Sink::of_store(store, options)).collect::<Result<Vec<_>, _>>()?;
    let notes = Notes::new(target, options)?;
    let former = notes.map().await?;
    notes.clear(plan, options).await?;

    let text = |text: String| text.chars().take(120).collect();
    let described = StripeSource {
        location: text(format!("{}/{path}", source.describe().trim_end_matches('/'))),
        version: text(meta.version.to_string()),
    };
    let names = stores.iter().map(|store| store.name().to_owned()).collect::<Vec<_>>();
    let new = |sha256: String, sums: Option<String>| {
        StripeMap::new(notes.id.clone(), layout, names.clone(), sha256, sums, described.clone())
            .map_err(|error| StripeError::Map { at: target.to_string(), error })
    };
    notes.begin(&new("0".repeat(64), None)?).await?;
    let written = async {
        let fetched = source.read(path, 0..meta.len, Some(&meta)).await?;
        let hashes = write_units(fetched.body, SumWriter::new(table), &layout, &sinks, &notes.id, &mut progress);
        let Hashes { sha256, sums } = hashes.await?;
        // A file may change while it is read, between two checks of its origin.
        let now = source.head(path).await?;
        if now.version != meta.version || now.len != meta.len {
            let at = At::new(&source.describe(), path.as_str());
            return Err(OriginError::Changed { at, expected: meta.version.clone(), found: Some(now.version) }.into());
        }
        let map = new(sha256, Some(sums))?;
        notes.finish(&map).await?;
        Ok(map)
    };
    match written.await {
        Ok(map) => Ok(Striped { map, former }),
        Err(error) => {
            // Another run has its own units, and its note stays.
            remove_units(&sinks, &layout, &notes.id).await.unwrap_or_else(|error| {
                tracing::debug!(%error, "units of a failed run stay");
            });
            notes.give_up().await;
            Err(error)
        }
    }
}

/// Removes the units of a map from its stores. Remove the map first.
///
/// # Errors
///
/// A store is not one of `stores`, or does not answer.
pub async fn remove(map: &StripeMap, stores: &[StripeStore], options: &RemoteOptions) -> Result<(), StripeError> {
    let sinks = stores_of(map, stores)?.into_iter().map(|store| Sink::of_store(store, options));
    let sinks = sinks.collect::<Result<Vec<_>, StripeError>>()?;
    Ok(remove_units(&sinks, map.layout(), map.id()).await?)
}

/// Returns the stores of a map, in its order.
///
/// # Errors
///
/// A store is not one of `stores`.
pub(super) fn stores_of<'a>(map: &StripeMap, stores: &'a [StripeStore]) -> Result<Vec<&'a StripeStore>, StripeError> {
    let store = |name: &String| {
        let unknown = || StripeError::Stores {
            map: map.stores().to_vec(),
            given: stores.iter().map(|store| store.name().to_owned()).collect(),
        };
        stores.iter().find(|store| store.name() == name).ok_or_else(unknown)
    };
    map.stores().iter().map(store).collect()
}

/// Returns the stores of an object. Different objects begin at different ones.
fn chosen<'a>(plan: &'a StripePlan, path: &ObjectPath) -> Result<Vec<&'a StripeStore>, StripeError> {
    let mut names = HashSet::new();
    if let Some(twice) = plan.stores.iter().find(|store| !names.insert(store.name())) {
        return Err(StripeError::Twice { name: twice.name().to_owned() });
    }
    let count = plan.stores.len();
    let factor = plan.factor.unwrap_or(count);
    // The limit of a factor is the size of its group.
    if factor == 0 || factor > count {
        let (found, most) = (factor as u64, count as u64);
        return Err(crate::layout::LayoutError { field: "factor", found, least: 1, most }.into());
    }
    let first = (xxhash_rust::xxh3::xxh3_64(path.as_str().as_bytes()) % count.max(1) as u64) as usize;
    Ok(plan.stores.iter().cycle().skip(first).take(factor).collect())
}

/// The bytes of a source, unit by unit.
struct Incoming {
    body: OriginBody,
    /// Bytes that arrived behind the last unit.
    rest: Bytes,
}

impl Incoming {
    /// Returns the next `length` bytes. Bodies are as long as their range.
    async fn take(&mut self, length: usize) -> Result<Bytes, OriginError> {
        let mut unit = BytesMut::with_capacity(length);
        while unit.len() < length {
            if self.rest.is_empty() {
                let Some(bytes) = self.body.next().await else {
                    let (expected, received) = (length as u64, unit.len() as u64);
                    let (at, detail) = (At::new("the source", ""), "the body ended".to_owned());
                    return Err(OriginError::Truncated { at, expected, received, detail });
                };
                self.rest = bytes?;
            }
            let count = self.rest.len().min(length - unit.len());
            unit.extend_from_slice(&self.rest.split_to(count));
        }
        Ok(unit.freeze())
    }
}

/// The hashes of an object that was written, in hexadecimal digits.
struct Hashes {
    /// Of all bytes.
    sha256: String,
    /// Of the head of the checksums.
    sums: String,
}

/// Cuts a body into units, writes all copies of each, and the checksums to each store.
async fn write_units(
    body: OriginBody,
    mut sums: SumWriter,
    layout: &Layout,
    sinks: &[Sink],
    id: &str,
    progress: &mut impl FnMut(u64),
) -> Result<Hashes, StripeError> {
    let most = (WRITING / layout.unit()).clamp(1, 2 * sinks.len() as u64) as usize;
    let mut incoming = Incoming { body, rest: Bytes::new() };
    let mut hash = Sha256::new();
    let mut writing = FuturesUnordered::new();
    for unit in 0..layout.units() {
        let range = layout.bytes(unit);
        let bytes = incoming.take((range.end - range.start) as usize).await?;
        hash.update(&bytes);
        sums.add(&bytes);
        while writing.len() >= most {
            writing.try_next().await?;
        }
        writing.push(write_unit(layout, sinks, id, unit, bytes));
        progress(range.end);
    }
    while writing.try_next().await?.is_some() {}
    let (object, sums) = sums.finish();
    if let Some(path) = sums_path(id) {
        futures_util::future::try_join_all(sinks.iter().map(|sink| sink.put(&path, object.clone()))).await?;
    }
    Ok(Hashes { sha256: hex(&hash.finalize()), sums })
}

async fn write_unit(layout: &Layout, sinks: &[Sink], id: &str, unit: u64, bytes: Bytes) -> Result<(), OriginError> {
    let Some(path) = unit_path(id, unit) else { return Ok(()) };
    let copies = layout.stores_of(unit).filter_map(|store| sinks.get(store));
    futures_util::future::try_join_all(copies.map(|sink| sink.put(&path, bytes.clone()))).await?;
    Ok(())
}

async fn remove_units(sinks: &[Sink], layout: &Layout, id: &str) -> Result<(), OriginError> {
    let copies = (0..layout.units()).flat_map(|unit| layout.stores_of(unit).map(move |store| (unit, store)));
    let removed = copies.filter_map(|(unit, store)| Some((unit_path(id, unit)?, sinks.get(store)?)));
    let removed = removed.map(|(path, sink)| async move { sink.remove(&path).await });
    stream::iter(removed).buffer_unordered(REMOVED_AT_ONCE).try_collect::<()>().await?;
    if let Some(path) = sums_path(id) {
        futures_util::future::try_join_all(sinks.iter().map(|sink| sink.remove(&path))).await?;
    }
    if let Some(folder) = unit_path(id, 0).map(|path| path.parent()) {
        for sink in sinks {
            sink.remove_folder(&folder).await;
        }
    }
    Ok(())
}

/// The map of an object at its place, and the note of the run that makes it.
struct Notes {
    origin: Arc<dyn Origin>,
    sink: Sink,
    map: ObjectPath,
    note: ObjectPath,
    /// The location of the map, for errors.
    shown: String,
    /// The identifier of this run's units.
    id: String,
}

impl Notes {
    fn new(target: &MapTarget, options: &RemoteOptions) -> Result<Self, StripeError> {
        let wrong = || StripeError::Name { name: target.to_string() };
        Ok(Self {
            origin: bare(&target.location, options)?,
            sink: target.sink(options)?,
            map: map_path(&target.path).ok_or_else(wrong)?,
            note: ObjectPath::parse(&format!(".{}{MAP_SUFFIX}.part", target.path)).map_err(|_| wrong())?,
            shown: target.to_string(),
            id: format!("{:032x}", fastrand::u128(..)),
        })
    }

    /// Returns the present map; `None` before the first one.
    async fn map(&self) -> Result<Option<StripeMap>, StripeError> {
        let Some(text) = read_small(&*self.origin, &self.map).await? else { return Ok(None) };
        let wrong = |error| StripeError::Map { at: self.shown.clone(), error };
        StripeMap::parse(&text).map(Some).map_err(wrong)
    }

    /// Returns what the note of a run names.
    async fn note(&self) -> Result<Option<StripeMap>, OriginError> {
        Ok(read_small(&*self.origin, &self.note).await?.and_then(|text| StripeMap::parse(&text).ok()))
    }

    /// Removes the units of an earlier run that has not ended.
    async fn clear(&self, plan: &StripePlan, options: &RemoteOptions) -> Result<(), StripeError> {
        let Some(note) = self.note().await? else { return Ok(()) };
        // A run may have ended between its map and its note.
        let is_present = self.map().await?.is_some_and(|map| map.id() == note.id());
        if !is_present && let Err(error) = remove(&note, &plan.stores, options).await {
            tracing::warn!(map = %self.shown, id = note.id(), %error, "units of an interrupted run stay");
        }
        Ok(())
    }

    async fn begin(&self, map: &StripeMap) -> Result<(), OriginError> {
        self.sink.put(&self.note, map.write().into()).await
    }

    /// Writes the map, unless another run has begun.
    async fn finish(&self, map: &StripeMap) -> Result<(), StripeError> {
        if !self.is_ours().await? {
            return Err(StripeError::Busy { map: self.shown.clone() });
        }
        self.sink.put(&self.map, map.write().into()).await?;
        Ok(self.sink.remove(&self.note).await?)
    }

    async fn is_ours(&self) -> Result<bool, OriginError> {
        Ok(self.note().await?.is_some_and(|note| note.id() == self.id))
    }

    async fn give_up(&self) {
        if let Ok(true) = self.is_ours().await {
            // The next run finds the note otherwise.
            let _ = self.sink.remove(&self.note).await;
        }
    }
}

/// Reads a text of at most the length of a map; `None` where there is none.
pub(super) async fn read_small(origin: &dyn Origin, path: &ObjectPath) -> Result<Option<Bytes>, OriginError> {
    let fetched = match origin.read(path, 0..LONGEST_MAP as u64 + 1, None).await {
        Err(OriginError::NotFound { .. }) => return Ok(None),
        fetched => fetched?,
    };
    let mut text = BytesMut::new();
    let mut body = fetched.body;
    while let Some(bytes) = body.next().await {
        text.extend_from_slice(&bytes?);
    }
    Ok(Some(text.freeze()))
}
