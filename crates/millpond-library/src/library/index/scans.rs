//! Scans of files that are under way, and the indexes of the parts that they have read so far.

use super::Key;
use crate::{names, work::Charge};
use millpond_media::Movie;
use millpond_store::Object;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// Time after which a scan publishes what it has read, if anything is new.
const EVERY: Duration = Duration::from_secs(2);
/// A scan also publishes when the bytes that it has read have grown by this part.
const GROWTH: u64 = 4;

/// Place and path of an object, and the number of the programme that was chosen in it.
pub(super) type Name = (String, String, Option<u16>);

/// All scans that are under way. Each programme of an object has one at most.
pub(crate) struct Scans {
    // A lock: held to look up, begin, publish and end, never across an await.
    under_way: Mutex<HashMap<Name, UnderWay>>,
    /// Wakes tasks that wait for a new index.
    changed: watch::Sender<()>,
}

struct UnderWay {
    /// The flight that scans.
    flight: Key,
    newest: Option<Arc<SoFar>>,
}

/// The index of the beginning of an object.
pub(crate) struct SoFar {
    pub(crate) object: Arc<Object>,
    /// Number of the programme that was chosen.
    pub(crate) programme: Option<u16>,
    pub(crate) movie: Arc<Movie>,
    /// Bytes of memory of the index, which are charged.
    weight: u64,
    _charge: Charge,
}

impl SoFar {
    pub(super) fn new(
        (object, programme): (Arc<Object>, Option<u16>),
        movie: Movie,
        (weight, charge): (u64, Charge),
    ) -> Self {
        Self { object, programme, movie: Arc::new(movie), weight, _charge: charge }
    }

    /// Bytes of frames in the beginning.
    pub(crate) fn read(&self) -> u64 {
        self.movie.extraction.as_ref().map_or(0, |extraction| extraction.len())
    }
}

impl Scans {
    pub(super) fn new() -> Self {
        Self { under_way: Mutex::default(), changed: watch::Sender::new(()) }
    }

    /// Notes the scan of a programme, until the result is dropped. `None` if it is scanned already.
    pub(super) fn begin(&self, flight: &Key) -> Option<Scan<'_>> {
        let name = flight.name();
        let mut under_way = self.lock();
        if under_way.contains_key(&name) {
            return None;
        }
        under_way.insert(name.clone(), UnderWay { flight: flight.clone(), newest: None });
        Some(Scan { scans: self, name, pace: Pace::default() })
    }

    /// Returns the flight that scans the version of an object which `key` names.
    pub(super) fn flight(&self, key: &Key) -> Option<Key> {
        let flight = self.lock().get(&key.name())?.flight.clone();
        (flight.whole() == key.whole()).then_some(flight)
    }

    /// Returns the newest index that a scan has published for the asset at a path: for an object, or for a programme in it.
    pub(crate) fn newest(&self, place: &str, path: &str) -> Option<Arc<SoFar>> {
        let (path, programme) = match names::programme_of(path) {
            Some((file, programme)) => (file, Some(programme)),
            None => (path, None),
        };
        self.lock().get(&(place.to_owned(), path.to_owned(), programme))?.newest.clone()
    }

    /// Returns a receiver that tells when a scan publishes an index from now on. Scans publish only while there is a receiver.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, UnderWay>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A scan that is under way.
pub(super) struct Scan<'a> {
    scans: &'a Scans,
    name: Name,
    pace: Pace,
}

impl Scan<'_> {
    /// Whether the index of the `bytes` that were read so far should be published, for tasks that wait for it.
    pub(super) fn is_due(&self, bytes: u64) -> bool {
        self.scans.changed.receiver_count() > 0 && self.pace.is_due(bytes, Instant::now())
    }

    /// Publishes the index of the `bytes` that were read so far.
    pub(super) fn publish(&mut self, bytes: u64, so_far: SoFar) {
        self.pace = Pace { bytes, at: Some(Instant::now()) };
        if let Some(scan) = self.scans.lock().get_mut(&self.name) {
            scan.newest = Some(Arc::new(so_far));
        }
        self.scans.changed.send_replace(());
    }

    /// Withdraws the published index if the scan needs its memory: if the index and `needed` bytes exceed `most`.
    pub(super) fn make_room(&self, needed: u64, most: u64) {
        let mut under_way = self.scans.lock();
        let Some(scan) = under_way.get_mut(&self.name) else { return };
        let is_in_the_way = |newest: &mut Arc<SoFar>| newest.weight.saturating_add(needed) > most;
        let withdrawn = scan.newest.take_if(is_in_the_way);
        drop(under_way);
        drop(withdrawn);
    }
}

impl Drop for Scan<'_> {
    fn drop(&mut self) {
        self.scans.lock().remove(&self.name);
    }
}

/// The last publication of a scan.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    bytes: u64,
    at: Option<Instant>,
}

impl Pace {
    /// Whether another publication is worth its copy of the tables. All copies for growth together take a few times the last copy.
    fn is_due(&self, bytes: u64, now: Instant) -> bool {
        let is_new = bytes > self.bytes;
        let has_grown = bytes >= self.bytes.saturating_add(self.bytes / GROWTH);
        is_new && (has_grown || self.at.is_none_or(|at| now.duration_since(at) >= EVERY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asset::Detail;

    fn key(programme: Option<u16>, detail: Detail) -> Key {
        let (place, path, version) = ("films".to_owned(), "mux.ts".to_owned(), "1".to_owned());
        Key { place, path, version, len: 1000, detail, programme }
    }

    #[test]
    fn each_programme_has_a_scan() {
        let scans = Scans::new();
        let first = scans.begin(&key(None, Detail::Outline));
        let seventh = scans.begin(&key(Some(7), Detail::Samples));
        assert!(first.is_some() && seventh.is_some() && scans.begin(&key(Some(7), Detail::Outline)).is_none());
        assert_eq!(scans.flight(&key(None, Detail::Samples)), Some(key(None, Detail::Outline)));
        assert_eq!(scans.flight(&key(Some(7), Detail::Outline)), Some(key(Some(7), Detail::Samples)));
        drop(seventh);
        assert_eq!(scans.flight(&key(Some(7), Detail::Outline)), None);
        assert!(scans.newest("films", "mux.ts").is_none() && scans.newest("films", "mux.ts/7").is_none());
    }

    #[test]
    fn growth_or_time_makes_a_publication_due() {
        let now = Instant::now();
        assert!(!Pace::default().is_due(0, now) && Pace::default().is_due(1, now));
        let last = Pace { bytes: 1000, at: Some(now) };
        assert!(!last.is_due(1249, now) && last.is_due(1250, now));
        assert!(last.is_due(1001, now + EVERY) && !last.is_due(1000, now + EVERY), "nothing is new");
    }
}
