//! The stores of a striping group, and the reading of one piece from one of its copies.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::timeout;

use super::block_gate::BlockGate;
use super::group_store::{GroupStore, UnderWay};
use super::map::StripeMap;
use super::part::StoredObject;
use super::repair::{Repair, RepairQueue};
use super::sum_cache::SumCache;
use super::sums::UnitSums;
use super::turns::PieceDue;
use crate::error::{At, OriginError, Phase};
use crate::layout::{Piece, StoreRate};
use crate::origin::StripeStoreStats;

/// The stores of a place, by name.
#[derive(Debug)]
pub(crate) struct StripeGroup {
    stores: BTreeMap<String, Arc<GroupStore>>,
    sums: SumCache,
    repairs: RepairQueue,
    /// Longest pause of a store while another copy is left.
    patience: Duration,
}

/// A piece of a striped object that is read.
#[derive(Clone)]
pub(super) struct Wanted {
    pub(super) map: Arc<StripeMap>,
    /// The striped object, for errors.
    pub(super) at: At,
    pub(super) piece: Piece,
    pub(super) due: PieceDue,
}

/// Where the bytes of a piece go.
pub(super) type Bring = UnboundedSender<Result<Bytes, OriginError>>;

/// Why the reading of a copy ended early.
enum Failure {
    Store(OriginError),
    /// A block of the unit differs from its checksum.
    Damaged(OriginError),
    /// The store is left alone, and another copy is left.
    Rests,
    /// The reader has left.
    Left,
}

impl From<OriginError> for Failure {
    fn from(error: OriginError) -> Self {
        Self::Store(error)
    }
}

impl StripeGroup {
    pub(super) fn new(stores: impl IntoIterator<Item = GroupStore>, patience: Duration) -> Self {
        let stores = stores.into_iter().map(|store| (store.name.clone(), Arc::new(store))).collect();
        Self { stores, sums: SumCache::new(), repairs: RepairQueue::new(), patience }
    }

    /// Returns the name of a store of the map that the group does not have.
    pub(super) fn stranger<'a>(&self, map: &'a StripeMap) -> Option<&'a str> {
        map.stores().iter().map(String::as_str).find(|name| !self.stores.contains_key(*name))
    }

    /// Returns the number of stores.
    pub(super) fn len(&self) -> usize {
        self.stores.len()
    }

    /// Returns the longest pause of a store while another copy is left.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// Returns the rate of a store.
    pub(super) fn rate(&self, name: &str) -> StoreRate {
        match self.stores.get(name) {
            Some(store) if !store.is_resting() => store.turns.rate().map_or(StoreRate::Unknown, StoreRate::Measured),
            _ => StoreRate::Resting,
        }
    }

    pub(super) fn stats(&self) -> Vec<StripeStoreStats> {
        self.stores.values().map(|store| store.stats()).collect()
    }

    /// Returns the number of repeated requests.
    pub(super) fn retries(&self) -> u64 {
        self.stores.values().map(|store| store.patient.counts().retries).sum()
    }

    /// Reads a piece, from another copy where one fails or is damaged.
    pub(super) async fn bring(&self, wanted: Wanted, to: Bring) {
        let Wanted { map, at, piece, .. } = &wanted;
        let failed = |last| Err(OriginError::Unit { at: at.clone(), unit: piece.unit, last: Box::new(last) });
        let sums = match self.sums.unit(map, piece.unit, || self.all(map), self.patience).await {
            Ok(sums) => sums,
            // A reader that has left needs no error.
            Err(error) => return drop(to.send(failed(error))),
        };
        let mut range = piece.range.clone();
        let (mut last, mut rested, mut damaged) = (None, Vec::new(), Vec::new());
        let stores = self.order(&wanted);
        let count = stores.len();
        let mut left = stores.into_iter();
        while let Some((store, is_last)) = next(&mut left, &mut rested) {
            let rest = range.clone();
            match self.copy(&store, &wanted, &sums, &mut range, is_last, &to).await {
                Ok(()) => {
                    store.answered();
                    note_sound(&store, &wanted, &rest);
                    return self.repair(&wanted, sums, damaged, store);
                }
                Err(Failure::Left) => return,
                Err(Failure::Rests) => rested.push(store),
                Err(Failure::Damaged(error)) => {
                    if found_damaged(&store, &wanted, &error) {
                        damaged.push(store);
                    }
                    last = Some(error);
                }
                Err(Failure::Store(error)) => {
                    store.counters.failures.fetch_add(1, Ordering::Relaxed);
                    tracing::debug!(object = %at, unit = piece.unit, store = %store.name, %error, "a copy of a unit failed");
                    // A store without this unit may have others. One that has the only copy is always asked.
                    if error.may_pass() && count > 1 {
                        store.failed();
                    }
                    last = Some(error);
                }
            }
        }
        let _ = to.send(failed(last.unwrap_or_else(|| OriginError::NotFound { at: at.clone() })));
    }

    /// Repairs the copies that were found damaged from one that has passed whole.
    fn repair(&self, wanted: &Wanted, sums: Option<UnitSums>, damaged: Vec<Arc<GroupStore>>, good: Arc<GroupStore>) {
        let Some(sums) = sums else { return };
        for damaged in damaged {
            let (map, unit, sums, good) = (wanted.map.clone(), wanted.piece.unit, sums.clone(), good.clone());
            self.repairs.add(Repair { map, unit, sums, damaged, good });
        }
    }

    /// Returns all stores of a map: resting ones last.
    fn all(&self, map: &StripeMap) -> Vec<Arc<GroupStore>> {
        let mut stores: Vec<_> = map.stores().iter().filter_map(|name| self.stores.get(name)).cloned().collect();
        stores.sort_by_cached_key(|store| store.is_resting());
        stores
    }

    /// Returns the stores with copies of a piece's unit: damaged copies last, then resting stores, busy ones behind idle ones.
    fn order(&self, wanted: &Wanted) -> Vec<Arc<GroupStore>> {
        let (map, unit) = (&wanted.map, wanted.piece.unit);
        let names = map.layout().stores_of(unit).filter_map(|index| map.stores().get(index));
        let mut stores: Vec<_> = names.filter_map(|name| self.stores.get(name)).cloned().collect();
        if stores.len() > 1 {
            for store in stores.iter().filter(|store| store.begins_trial(self.patience)) {
                tokio::spawn(try_again(store.clone(), wanted.clone(), self.patience));
            }
            let path = map.unit_path(unit).map_or_else(String::new, |path| path.to_string());
            stores.sort_by_cached_key(|store| (store.is_damaged(&path), store.is_resting(), store.in_flight()));
        }
        stores
    }

    /// Reads the rest of a piece from one store.
    async fn copy(
        &self,
        store: &GroupStore,
        wanted: &Wanted,
        sums: &Option<UnitSums>,
        range: &mut Range<u64>,
        is_last: bool,
        to: &Bring,
    ) -> Result<(), Failure> {
        let unit = wanted.piece.unit;
        let Some(path) = wanted.map.unit_path(unit) else { return Err(Failure::Left) };
        let mut gate = BlockGate::new(range.clone(), sums.clone());
        let mut read = gate.read();
        let counted = UnderWay::new(store);
        let mut turn = store.turns.take(read.end - read.start, wanted.due.clone()).await;
        // It may have failed while this request was in line.
        if !is_last && store.is_resting() {
            return Err(Failure::Rests);
        }
        store.counters.requests.fetch_add(1, Ordering::Relaxed);
        let origin = if is_last { &store.patient } else { &store.plain };
        let whole = wanted.map.layout().bytes(unit);
        let at = At::new(&origin.describe(), path.as_str());
        let reply = origin.read(&path, read.clone(), None);
        let fetched = self.patiently(is_last, &at, Phase::FirstByte, reply).await??;
        StoredObject::unit(&path, whole.end - whole.start).check(&fetched, &read, at.clone())?;
        let mut body = fetched.body;
        while !read.is_empty() {
            let Some(bytes) = self.patiently(is_last, &at, Phase::Stalled, body.next()).await? else {
                let (expected, received) = (read.end - read.start, 0);
                let detail = "the body ended".to_owned();
                return Err(Failure::Store(OriginError::Truncated { at, expected, received, detail }));
            };
            let mut bytes = bytes?;
            // Bodies are as long as their range, so nothing is cut off.
            bytes.truncate(usize::try_from(read.end - read.start).unwrap_or(usize::MAX));
            turn.arrived(bytes.len() as u64);
            read.start += bytes.len() as u64;
            store.counters.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            let mut has_left = false;
            let pass = |bytes: Bytes| {
                range.start += bytes.len() as u64;
                has_left |= to.send(Ok(bytes)).is_err();
            };
            gate.arrived(bytes, pass).map_err(|bad| Failure::Damaged(bad.at(&at)))?;
            if has_left {
                return Err(Failure::Left);
            }
        }
        drop(counted);
        Ok(())
    }

    /// Waits for a store: briefly while another copy is left, else within the store's own limits.
    async fn patiently<T>(
        &self,
        is_last: bool,
        at: &At,
        phase: Phase,
        work: impl Future<Output = T>,
    ) -> Result<T, OriginError> {
        if is_last {
            return Ok(work.await);
        }
        let after = self.patience;
        timeout(after, work).await.map_err(|_| OriginError::Timeout { at: at.clone(), phase, after })
    }
}

/// Returns the store that is asked next, and whether it is the last one. Stores that rested when their turn came follow at the end, and
/// are asked all the same.
fn next(
    left: &mut std::vec::IntoIter<Arc<GroupStore>>,
    rested: &mut Vec<Arc<GroupStore>>,
) -> Option<(Arc<GroupStore>, bool)> {
    match left.next() {
        Some(store) => Some((store, left.len() == 0)),
        None => rested.pop().map(|store| (store, true)),
    }
}

/// Counts and tells a damaged copy of a unit. Returns whether the damage is new.
fn found_damaged(store: &GroupStore, wanted: &Wanted, error: &OriginError) -> bool {
    store.counters.failures.fetch_add(1, Ordering::Relaxed);
    let (object, unit) = (&wanted.at, wanted.piece.unit);
    let path = wanted.map.unit_path(unit).map_or_else(String::new, |path| path.to_string());
    let is_new = store.found_damaged(&path);
    if is_new {
        tracing::warn!(%object, unit, store = %store.name, %error, "a unit of a striped file is damaged at a store");
    }
    is_new
}

/// Forgets the damage of a copy if the bytes `read` of it are the whole unit.
fn note_sound(store: &GroupStore, wanted: &Wanted, read: &Range<u64>) {
    let unit = wanted.piece.unit;
    let whole = wanted.map.layout().bytes(unit);
    if read.end - read.start == whole.end - whole.start
        && let Some(path) = wanted.map.unit_path(unit)
    {
        store.forget_damage(path.as_str());
    }
}

/// Asks a store whose pause is over for one byte. It does so beside the readers, so that none of them waits for a store that is
/// still gone.
async fn try_again(store: Arc<GroupStore>, wanted: Wanted, patience: Duration) {
    let Some(path) = wanted.map.unit_path(wanted.piece.unit) else { return };
    let answer = async {
        let mut fetched = store.plain.read(&path, 0..1, None).await?;
        fetched.body.next().await.transpose()
    };
    match timeout(patience, answer).await {
        // A store without this unit may have others.
        Ok(Err(error)) if error.may_pass() => store.failed(),
        Err(_) => store.failed(),
        Ok(_) => store.answered(),
    }
}
