//! What the origins of places can give to those who play: as much as an operator says, and while frames come in time.

use super::bandwidth::Bandwidth;
use crate::library::{Asset, Places};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// Over this share of frames that come late, nobody else may read from an origin.
const LATE: f64 = 0.01;
/// Fewer frames than these say nothing.
const FRAMES: f64 = 10.0;
/// What was counted weighs so much of what it did a second ago.
const FADES: f64 = 0.5;

/// The origins of all places.
#[derive(Debug)]
pub(super) struct Origins(HashMap<Arc<str>, Arc<Origin>>);

/// The origin of a place, as those see it who play from there.
#[derive(Debug)]
pub(super) struct Origin {
    /// Of those who read from it.
    bandwidth: Bandwidth,
    /// Frames since it was last looked, and those of them that came too late to be sent in time.
    frames: AtomicU64,
    late: AtomicU64,
    /// As [`Tally`] says.
    is_short: AtomicBool,
    /// A lock: taken once a second.
    tally: Mutex<Tally>,
}

/// Frames of the last seconds, and those that came late.
#[derive(Debug, Default)]
struct Tally {
    frames: f64,
    late: f64,
}

impl Tally {
    /// Adds those of a second; says whether too many come late.
    fn add(&mut self, frames: u64, late: u64) -> bool {
        self.frames = self.frames * FADES + frames as f64;
        self.late = self.late * FADES + late as f64;
        self.frames >= FRAMES && self.late > self.frames * LATE
    }
}

impl Origins {
    /// Of each of which sessions may take so many bits a second, where that is bounded.
    pub(super) fn new(places: &Places, most: Option<u64>) -> Self {
        let origin = |place: &Arc<str>| (place.clone(), Arc::new(Origin::new(most)));
        Self(places.iter().map(origin).collect())
    }

    /// That of an asset; nothing where its files are local.
    pub(super) fn of(&self, asset: &Asset) -> Option<&Arc<Origin>> {
        let object = asset.objects.first().filter(|object| object.file().is_none())?;
        self.0.get(object.place())
    }

    /// Looks what came late in the last second. Gives the places where that has become too much.
    pub(super) fn observe(&self) -> Vec<Arc<str>> {
        self.0.iter().filter(|(_, origin)| origin.observe()).map(|(place, _)| place.clone()).collect()
    }
}

impl Origin {
    pub(super) fn new(most: Option<u64>) -> Self {
        let [frames, late] = [0, 0].map(AtomicU64::new);
        let (bandwidth, tally) = (Bandwidth::new(most), Mutex::default());
        Self { bandwidth, frames, late, is_short: AtomicBool::new(false), tally }
    }

    /// A frame of it goes out.
    pub(super) fn count(&self, is_late: bool) {
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

    /// Whether it could refuse anybody: else there is no need to know who reads from it.
    pub(super) fn is_scarce(&self) -> bool {
        self.bandwidth.is_bounded() || self.is_short()
    }

    fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }

    /// Whether there is room for so many bits a second.
    pub(super) fn has_room(&self, rate: u64) -> bool {
        !self.is_short() && self.bandwidth.has_room(rate)
    }

    /// Takes room for so many bits a second, where there is so much; [`give_back`](Self::give_back) is to follow.
    pub(super) fn take(&self, rate: u64) -> bool {
        !self.is_short() && self.bandwidth.take(rate)
    }

    /// As [`take`](Self::take), for one who plays already: whether frames come in time is asked of newcomers alone.
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

    fn second(origin: &Origin, frames: u64, late: u64) -> bool {
        (0..frames).for_each(|frame| origin.count(frame < late));
        origin.observe()
    }

    #[test]
    fn an_origin_that_is_late_gives_to_nobody_else() {
        let origin = Origin::new(None);
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
        assert!(Origin::new(Some(1000)).is_scarce());
    }
}
