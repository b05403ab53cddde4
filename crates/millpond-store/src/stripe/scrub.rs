//! Reads all copies of a striped object, compares them with their checksums, and replaces damaged ones by good ones.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};

use super::map::{StripeMap, SumRoot, sums_path};
use super::part::{StoredObject, read_unit};
use super::sink::{MapTarget, Sink, StripeError};
use super::sums::{SumPage, UnitSums};
use super::unstriping::present_map;
use super::writing::stores_of;
use crate::error::{At, OriginError};
use crate::origin::bare::bare;
use crate::origin::retry::RetryOrigin;
use crate::origin::{Origin, RemoteOptions};
use crate::path::ObjectPath;
use crate::striping::StripeStore;

/// Memory for units that are compared, in bytes.
const READING: u64 = 64 << 20;

/// A copy that is damaged, missing, or cannot be read.
#[derive(Debug)]
pub struct ScrubFault {
    /// Name of its store.
    pub store: String,
    /// Number of the unit; `None` for the checksums.
    pub unit: Option<u64>,
    /// Why the copy is no good one.
    pub error: OriginError,
    /// Whether the copy was repaired.
    pub outcome: ScrubOutcome,
}

/// The result of a scrub for a damaged or missing copy.
#[derive(Debug)]
pub enum ScrubOutcome {
    /// It was replaced by a good copy.
    Repaired,
    /// It was left as it is, and another copy is good.
    Left,
    /// It was left as it is, and no copy is good.
    Lost,
    /// It could not be replaced.
    Failed(OriginError),
}

/// The outcome of a scrub.
#[derive(Clone, Debug)]
pub struct Scrubbed {
    /// The map.
    pub map: StripeMap,
    /// Copies of units and of checksums that were read.
    pub copies: u64,
    /// Copies that are damaged, missing, or cannot be read.
    pub faults: u64,
    /// Those that were replaced.
    pub repaired: u64,
}

/// Reads all copies of the units of a map, and of its checksums. With `repairs`, it replaces those that are damaged or missing by
/// good ones. Calls `report` for each that is no good one, and `progress` with the bytes of the object that are compared so far.
///
/// # Errors
///
/// There is no map, it has no checksums, the map names a store that is not in `stores`, no store has sound checksums, or a store
/// to be repaired is a web server.
pub async fn scrub(
    target: &MapTarget,
    stores: &[StripeStore],
    options: &RemoteOptions,
    repairs: bool,
    mut progress: impl FnMut(u64),
    mut report: impl FnMut(&ScrubFault),
) -> Result<Scrubbed, StripeError> {
    let map = present_map(&*bare(&target.location, options)?, target).await?;
    let Some(root) = map.sum_root() else { return Err(StripeError::Unsummed { map: target.to_string() }) };
    let stores = stores_of(&map, stores)?.into_iter().map(|store| ScrubStore::new(store, options, repairs));
    let stores = stores.collect::<Result<Vec<_>, StripeError>>()?;
    let (pages, faults) = sums(&map, root, &stores).await?;
    let mut scrubbed = Scrubbed { map: map.clone(), copies: stores.len() as u64, faults: 0, repaired: 0 };
    let mut add = |scrubbed: &mut Scrubbed, faults: Vec<ScrubFault>| {
        for fault in faults {
            scrubbed.faults += 1;
            scrubbed.repaired += u64::from(matches!(fault.outcome, ScrubOutcome::Repaired));
            report(&fault);
        }
    };
    add(&mut scrubbed, faults);
    let layout = map.layout();
    let each = layout.unit() * layout.copies() as u64;
    let at_once = (READING / each).clamp(1, 2 * stores.len() as u64) as usize;
    let units = (0..layout.units()).map(|unit| scrub_unit(&map, root, &pages, &stores, unit));
    let mut units = stream::iter(units).buffered(at_once).enumerate();
    while let Some((unit, faults)) = units.next().await {
        scrubbed.copies += layout.copies() as u64;
        add(&mut scrubbed, faults);
        progress(layout.bytes(unit as u64).end);
    }
    Ok(scrubbed)
}

/// A store whose copies are compared.
struct ScrubStore {
    name: String,
    origin: Arc<dyn Origin>,
    /// The store as a place for good copies; `None` if nothing is repaired.
    sink: Option<Sink>,
}

impl ScrubStore {
    fn new(store: &StripeStore, options: &RemoteOptions, repairs: bool) -> Result<Self, StripeError> {
        let plain = bare(store.location(), &store.remote(options))?;
        let origin = Arc::new(RetryOrigin::new(plain, options.retry));
        let sink = if repairs { Some(Sink::of_store(store, options)?) } else { None };
        Ok(Self { name: store.name().to_owned(), origin, sink })
    }

    /// Replaces a copy that is no good one, if the store takes it.
    async fn mend(&self, path: &ObjectPath, error: &OriginError, good: Option<&Bytes>) -> ScrubOutcome {
        let Some(good) = good else { return ScrubOutcome::Lost };
        // A store that fails says nothing about its copy.
        let is_bad = matches!(error, OriginError::BadReply { .. } | OriginError::NotFound { .. });
        match &self.sink {
            Some(sink) if is_bad => match sink.put(path, good.clone()).await {
                Ok(()) => ScrubOutcome::Repaired,
                Err(error) => ScrubOutcome::Failed(error),
            },
            _ => ScrubOutcome::Left,
        }
    }
}

/// Replaces the copies that are no good ones. Returns these.
async fn mend_all(
    path: &ObjectPath,
    unit: Option<u64>,
    copies: Vec<(&ScrubStore, Result<Bytes, OriginError>)>,
) -> Vec<ScrubFault> {
    let good = copies.iter().find_map(|(_, copy)| copy.as_ref().ok()).cloned();
    let mut faults = Vec::new();
    for (store, copy) in copies {
        if let Err(error) = copy {
            let outcome = store.mend(path, &error, good.as_ref()).await;
            faults.push(ScrubFault { store: store.name.clone(), unit, error, outcome });
        }
    }
    faults
}

/// Reads the checksums of all stores. Returns sound ones, and the stores where they are not.
async fn sums(
    map: &StripeMap,
    root: &SumRoot,
    stores: &[ScrubStore],
) -> Result<(Vec<SumPage>, Vec<ScrubFault>), StripeError> {
    let Some(path) = sums_path(map.id()) else { return Ok((Vec::new(), Vec::new())) };
    let object = StoredObject::sums(&path, root.table.length());
    let (mut pages, mut copies) = (None, Vec::new());
    for store in stores {
        let read = object.read(&*store.origin, 0..root.table.length()).await.and_then(|bytes| {
            let verified = root.table.all(&bytes, &root.sha256).map_err(|error| OriginError::BadReply {
                at: At::new(&store.origin.describe(), path.as_str()),
                expected: "the checksums of the map".into(),
                found: error.to_string(),
            })?;
            pages.get_or_insert(verified);
            Ok(bytes)
        });
        copies.push((store, read));
    }
    let Some(pages) = pages else {
        let last = copies.into_iter().find_map(|(_, copy)| copy.err());
        return Err(last.unwrap_or(OriginError::NotFound { at: At::new(map.id(), path.as_str()) }).into());
    };
    Ok((pages, mend_all(&path, None, copies).await))
}

/// Compares all copies of a unit with its checksums.
async fn scrub_unit(
    map: &StripeMap,
    root: &SumRoot,
    pages: &[SumPage],
    stores: &[ScrubStore],
    unit: u64,
) -> Vec<ScrubFault> {
    let page = usize::try_from(root.table.page_of(unit)).ok().and_then(|page| pages.get(page));
    let sums: Option<UnitSums> = page.and_then(|page| page.unit(unit));
    let (Some(path), Some(sums)) = (map.unit_path(unit), sums) else { return Vec::new() };
    let copies = map.layout().stores_of(unit).filter_map(|store| stores.get(store));
    let (path, sums) = (&path, &sums);
    let copies = copies.map(|store| async move { (store, read_unit(&*store.origin, path, sums).await) });
    mend_all(path, Some(unit), join_all(copies).await).await
}
