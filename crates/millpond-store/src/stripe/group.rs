//! The stores of a striping group, and the reading of one piece from one of its copies.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, timeout};

use super::map::StripeMap;
use super::turns::{PieceDue, Turns};
use crate::error::{At, OriginError, Phase};
use crate::layout::{Piece, StoreRate};
use crate::origin::{Fetched, Origin, StripeStoreStats};

/// First pause of a store that failed, where its units have other copies. It doubles with each failure in a row, up to
/// [`LONGEST_REST`].
const REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(30);

/// A store with its state.
#[derive(Debug)]
pub(super) struct GroupStore {
    pub(super) name: String,
    /// The store without retries: another copy is read instead.
    plain: Arc<dyn Origin>,
    /// The store with retries: the only copy that is left.
    patient: Arc<dyn Origin>,
    turns: Arc<Turns>,
    /// A lock, held briefly.
    rest: Mutex<Rest>,
    requests: AtomicU64,
    bytes: AtomicU64,
    failures: AtomicU64,
    in_flight: AtomicUsize,
}

/// Failures of a store in a row, and the end of its pause.
#[derive(Debug, Default)]
struct Rest {
    failures: u32,
    until: Option<Instant>,
    /// Whether the pause ended, and a request shows whether it is back.
    is_tried: bool,
}

impl GroupStore {
    pub(super) fn new(name: String, plain: Arc<dyn Origin>, patient: Arc<dyn Origin>) -> Self {
        Self {
            name,
            plain,
            patient,
            turns: Turns::new(),
            rest: Mutex::default(),
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
        }
    }

    fn rest(&self) -> MutexGuard<'_, Rest> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether it is left alone.
    fn is_resting(&self) -> bool {
        self.rest().until.is_some_and(|until| Instant::now() < until)
    }

    /// Returns whether its pause is over, and it is to be tried. It is left alone until the outcome is known, at most for
    /// `patience`.
    fn begins_trial(&self, patience: Duration) -> bool {
        let mut rest = self.rest();
        let is_over = rest.until.is_some_and(|until| Instant::now() >= until);
        if is_over {
            (rest.until, rest.is_tried) = (Some(Instant::now() + patience), true);
        }
        is_over
    }

    fn failed(&self) {
        let mut rest = self.rest();
        // Requests that were under way together fail together, and count once.
        if !rest.is_tried && rest.until.is_some_and(|until| Instant::now() < until) {
            return;
        }
        let pause = REST.saturating_mul(1 << rest.failures.min(10)).min(LONGEST_REST);
        let failures = rest.failures.saturating_add(1);
        *rest = Rest { failures, until: Some(Instant::now() + pause), is_tried: false };
    }

    fn answered(&self) {
        *self.rest() = Rest::default();
    }

    fn stats(&self) -> StripeStoreStats {
        StripeStoreStats {
            store: self.name.clone(),
            requests: self.requests.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            in_flight: self.in_flight.load(Ordering::Relaxed) as u64,
            is_resting: self.is_resting(),
        }
    }
}

/// A request under way at a store.
struct UnderWay<'a>(&'a GroupStore);

impl<'a> UnderWay<'a> {
    fn new(store: &'a GroupStore) -> Self {
        store.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(store)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The stores of a place, by name.
#[derive(Debug)]
pub(crate) struct StripeGroup {
    stores: BTreeMap<String, Arc<GroupStore>>,
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
        Self { stores, patience }
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

    /// Reads a piece, from another copy where one fails.
    pub(super) async fn bring(&self, wanted: Wanted, to: Bring) {
        let Wanted { at, piece, .. } = &wanted;
        let mut range = piece.range.clone();
        let mut last = None;
        let stores = self.order(&wanted);
        for (index, store) in stores.iter().enumerate() {
            let is_last = index + 1 == stores.len();
            match self.copy(store, &wanted, &mut range, is_last, &to).await {
                Ok(()) => return store.answered(),
                Err(Failure::Left) => return,
                Err(Failure::Rests) => {}
                Err(Failure::Store(error)) => {
                    store.failures.fetch_add(1, Ordering::Relaxed);
                    tracing::debug!(object = %at, unit = piece.unit, store = %store.name, %error, "a copy of a unit failed");
                    // A store without this unit may have others. One that has the only copy is always asked.
                    if error.may_pass() && stores.len() > 1 {
                        store.failed();
                    }
                    last = Some(Box::new(error));
                }
            }
        }
        let last = last.unwrap_or_else(|| Box::new(OriginError::NotFound { at: at.clone() }));
        // A reader that has left needs no error.
        let _ = to.send(Err(OriginError::Unit { at: at.clone(), unit: piece.unit, last }));
    }

    /// Returns the stores with copies of a piece's unit: resting ones last, busy ones behind idle ones.
    fn order(&self, wanted: &Wanted) -> Vec<Arc<GroupStore>> {
        let (map, unit) = (&wanted.map, wanted.piece.unit);
        let names = map.layout().stores_of(unit).filter_map(|index| map.stores().get(index));
        let mut stores: Vec<_> = names.filter_map(|name| self.stores.get(name)).cloned().collect();
        if stores.len() > 1 {
            for store in stores.iter().filter(|store| store.begins_trial(self.patience)) {
                tokio::spawn(try_again(store.clone(), wanted.clone(), self.patience));
            }
            stores.sort_by_cached_key(|store| (store.is_resting(), store.in_flight.load(Ordering::Relaxed)));
        }
        stores
    }

    /// Reads the rest of a piece from one store.
    async fn copy(
        &self,
        store: &GroupStore,
        wanted: &Wanted,
        range: &mut Range<u64>,
        is_last: bool,
        to: &Bring,
    ) -> Result<(), Failure> {
        let unit = wanted.piece.unit;
        let Some(path) = wanted.map.unit_path(unit) else { return Err(Failure::Left) };
        let counted = UnderWay::new(store);
        let mut turn = store.turns.take(range.end - range.start, wanted.due.clone()).await;
        // It may have failed while this request was in line.
        if !is_last && store.is_resting() {
            return Err(Failure::Rests);
        }
        store.requests.fetch_add(1, Ordering::Relaxed);
        let origin = if is_last { &store.patient } else { &store.plain };
        let whole = wanted.map.layout().bytes(unit);
        let length = whole.end - whole.start;
        let at = At::new(&origin.describe(), path.as_str());
        let reply = origin.read(&path, range.clone(), None);
        let fetched = self.patiently(is_last, &at, Phase::FirstByte, reply).await??;
        check(&fetched, length, range, at.clone())?;
        let mut body = fetched.body;
        while !range.is_empty() {
            let Some(bytes) = self.patiently(is_last, &at, Phase::Stalled, body.next()).await? else {
                let (expected, received) = (range.end - range.start, 0);
                let detail = "the body ended".to_owned();
                return Err(Failure::Store(OriginError::Truncated { at, expected, received, detail }));
            };
            let mut bytes = bytes?;
            // Bodies are as long as their range, so nothing is cut off.
            bytes.truncate(usize::try_from(range.end - range.start).unwrap_or(usize::MAX));
            turn.arrived(bytes.len() as u64);
            range.start += bytes.len() as u64;
            store.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            to.send(Ok(bytes)).map_err(|_| Failure::Left)?;
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

/// Checks that a reply is the wanted part of a unit of the right length.
fn check(fetched: &Fetched, length: u64, range: &Range<u64>, at: At) -> Result<(), OriginError> {
    if fetched.meta.len != length {
        let (expected, found) = (format!("a unit of {length} bytes"), format!("{} bytes", fetched.meta.len));
        return Err(OriginError::BadReply { at, expected, found });
    }
    if fetched.range != *range {
        let (expected, found) = (format!("bytes {range:?}"), format!("bytes {:?}", fetched.range));
        return Err(OriginError::BadReply { at, expected, found });
    }
    Ok(())
}
