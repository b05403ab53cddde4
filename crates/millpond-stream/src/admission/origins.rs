//! Capacity of each place's origin: the bandwidth that an operator grants, while frames arrive in time.

use super::bandwidth::Bandwidth;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// Share of late frames above which no further session may read from an origin.
const LATE: f64 = 0.01;
/// Fewer frames than these say nothing.
const FRAMES: f64 = 10.0;
/// Weight of a count after one second.
const FADES: f64 = 0.5;

/// The origins of all places. A lock: written when the configuration changes.
#[derive(Debug)]
pub(crate) struct Origins(RwLock<HashMap<Arc<str>, Arc<OriginLoad>>>);

/// The load of one place's origin, as sessions see it.
#[derive(Debug)]
pub(crate) struct OriginLoad {
    /// Of the sessions that read from it.
    bandwidth: Bandwidth,
    /// Frames since the last observation, and those of them that were loaded too late to be sent in time.
    frames: AtomicU64,
    late: AtomicU64,
    /// Last result of [`Tally::add`].
    is_short: AtomicBool,
    /// A lock: taken once a second.
    tally: Mutex<Tally>,
}

/// Number of frames of the last seconds, and of late frames among them.
#[derive(Debug, Default)]
struct Tally {
    frames: f64,
    late: f64,
}

impl Tally {
    /// Adds the frames of a second. Returns whether too many are late.
    fn add(&mut self, frames: u64, late: u64) -> bool {
        self.frames = self.frames * FADES + frames as f64;
        self.late = self.late * FADES + late as f64;
        self.frames >= FRAMES && self.late > self.frames * LATE
    }
}

impl Origins {
    /// The origins of `places`, each with a bandwidth limit in bits a second. `None` is unbounded.
    pub(crate) fn new(places: impl IntoIterator<Item = Arc<str>>, most: Option<u64>) -> Self {
        Self(RwLock::new(places.into_iter().map(|place| (place, Arc::new(OriginLoad::new(most)))).collect()))
    }

    fn all(&self) -> RwLockReadGuard<'_, HashMap<Arc<str>, Arc<OriginLoad>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the places and their bandwidth limit. Places that stay keep what their sessions have taken.
    pub(crate) fn replace(&self, places: impl IntoIterator<Item = Arc<str>>, most: Option<u64>) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let of = |place: Arc<str>| {
            let load = all.get(&place).cloned().unwrap_or_else(|| Arc::new(OriginLoad::new(most)));
            load.bandwidth.set_most(most);
            (place, load)
        };
        let new = places.into_iter().map(of).collect();
        *all = new;
    }

    /// The origin of a place.
    pub(crate) fn of(&self, place: &str) -> Option<Arc<OriginLoad>> {
        self.all().get(place).cloned()
    }

    /// Weighs the frames of the last second. Returns the places whose origin has just become too slow.
    pub(crate) fn observe(&self) -> Vec<Arc<str>> {
        self.all().iter().filter(|(_, origin)| origin.observe()).map(|(place, _)| place.clone()).collect()
    }
}

impl OriginLoad {
    pub(crate) fn new(most: Option<u64>) -> Self {
        let [frames, late] = [0, 0].map(AtomicU64::new);
        let (bandwidth, tally) = (Bandwidth::new(most), Mutex::default());
        Self { bandwidth, frames, late, is_short: AtomicBool::new(false), tally }
    }

    /// Counts a frame that is sent.
    pub(crate) fn count(&self, is_late: bool) {
        self.frames.fetch_add(1, Ordering::Relaxed);
        if is_late {
            self.late.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn observe(&self) -> bool {
        let (frames, late) = (self.frames.swap(0, Ordering::Relaxed), self.late.swap(0, Ordering::Relaxed));
        let is_short = self.tally.lock().unwrap_or_else(PoisonError::into_inner).add(frames, late);
        !self.is_short.swap(is_short, Ordering::Relaxed) && is_short
    }

    /// Whether it can refuse a session at all. If not, nobody needs to know whether a session reads from it.
    pub(crate) fn is_scarce(&self) -> bool {
        self.bandwidth.is_bounded() || self.is_short()
    }

    fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }

    /// Whether `rate` bits a second can be granted.
    pub(super) fn has_room(&self, rate: u64) -> bool {
        !self.is_short() && self.bandwidth.has_room(rate)
    }

    /// Takes `rate` bits a second where they are free. [`give_back`](Self::give_back) must follow.
    pub(super) fn take(&self, rate: u64) -> bool {
        !self.is_short() && self.bandwidth.take(rate)
    }

    /// As [`take`](Self::take), for a session that plays already: late frames stop new sessions only.
    pub(super) fn take_more(&self, rate: u64) -> bool {
        self.bandwidth.take(rate)
    }

    pub(super) fn give_back(&self, rate: u64) {
        self.bandwidth.give_back(rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(origin: &OriginLoad, frames: u64, late: u64) -> bool {
        (0..frames).for_each(|frame| origin.count(frame < late));
        origin.observe()
    }

    #[test]
    fn an_origin_that_is_late_gives_to_nobody_else() {
        let origin = OriginLoad::new(None);
        assert!(!second(&origin, 9, 9), "too few to say");
        assert!(!second(&origin, 0, 0) && !origin.is_scarce());
        (0..10).for_each(|_| assert!(!second(&origin, 10_000, 20)));
        assert!(!second(&origin, 10_000, 150), "once");
        assert!(second(&origin, 10_000, 300));
        assert!(!second(&origin, 10_000, 300), "known already");
        assert!(origin.is_scarce() && !origin.has_room(1) && !origin.take(1));
        assert!(origin.take_more(1), "who plays may jump");
        assert!(!second(&origin, 10_000, 0) && !second(&origin, 10_000, 0));
        assert!(!origin.is_scarce() && origin.has_room(1) && origin.take(1));
        assert!(OriginLoad::new(Some(1000)).is_scarce());
    }

    #[test]
    fn places_that_stay_keep_their_load() {
        let [films, cams, news]: [Arc<str>; 3] = ["films", "cams", "news"].map(Into::into);
        let origins = Origins::new([films.clone(), cams.clone()], Some(1000));
        let before = origins.all()[&films].clone();
        assert!(before.take(700));
        origins.replace([films.clone(), news.clone()], Some(800));
        let after = origins.all()[&films].clone();
        assert!(Arc::ptr_eq(&before, &after) && !after.has_room(200) && after.has_room(100));
        assert!(origins.all().get(&cams).is_none() && origins.all()[&news].has_room(800));
    }
}
