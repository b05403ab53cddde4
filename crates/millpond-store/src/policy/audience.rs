//! The viewers of objects, derived from the reads of slices: their positions, how often objects are visited, and how
//! far visits get.

use super::ledger::Hashed;
use super::{Item, Time};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// Number of objects that are remembered.
const OBJECTS: usize = 65_536;
/// Number of viewers of one object that are tracked.
const VIEWERS: usize = 1024;
/// Most viewers that count for one slice: those that will reach it next.
const NEAREST: usize = 8;
/// Number of visits after which the weight of a visit has fallen by the factor e.
const MEMORY: f64 = 8192.0;
/// Parts of an object that [`Passes`] distinguishes: the last one begins with slice 448.
const PARTS: usize = 32;
/// Number of visits after which an object's own statistics count. Before, it is treated like the average.
const LIKE_ALL: f64 = 8.0;
/// A viewer that is idle for this many slice durations has left.
const PATIENCE: f64 = 3.0;
/// Time of a use that is never expected.
const NEVER: f64 = 1e15;

/// All objects and their viewers.
#[derive(Clone, Debug)]
pub(super) struct Audience {
    objects: HashMap<u64, Object, BuildHasherDefault<Hashed>>,
    /// Weight of a visit. It grows, which spares shrinking all earlier ones.
    unit: f64,
    /// Sum of the weights of all visits.
    visits: f64,
    /// Mean time between visits in milliseconds, and the time of the last one.
    between: f64,
    last: Time,
    passes: Passes,
    /// Mean time of a viewer in a slice, in milliseconds.
    pace: f64,
    /// Probability that a viewer in a slice reads on in it, as the reader of a segment does.
    in_pieces: f64,
}

#[derive(Clone, Debug, Default)]
struct Object {
    visits: f64,
    /// How far its visits got, after the first ones.
    passes: Option<Box<Passes>>,
    /// Sorted by the slice that they are at.
    viewers: Vec<Viewer>,
}

/// The number of visits that reached each part of an object, wherever they began.
#[derive(Clone, Debug)]
struct Passes([f64; PARTS]);

#[derive(Clone, Copy, Debug)]
struct Viewer {
    index: u32,
    at: Time,
    /// Milliseconds per slice; `None` before its second one.
    pace: Option<f64>,
}

impl Default for Audience {
    fn default() -> Self {
        Self {
            objects: HashMap::default(),
            unit: 1.0,
            visits: 0.0,
            between: 0.0,
            last: 0,
            passes: Passes([0.0; PARTS]),
            pace: 0.0,
            in_pieces: 1.0,
        }
    }
}

impl Audience {
    /// Counts a viewer that begins to read a slice. `enters` says that it begins with the slice's first byte: it comes
    /// from the slice before, or is new. Otherwise it reads on at its position, or begins in the middle of the object.
    pub(super) fn asks(&mut self, item: &Item, enters: bool, now: Time) {
        let object = self.objects.entry(item.object).or_default();
        let here = part(item.index);
        let usual = self.pace;
        if !enters && object.at(item.index).iter().any(|viewer| !viewer.has_left(now, usual)) {
            self.in_pieces += (1.0 - self.in_pieces) / 64.0;
            return;
        }
        self.in_pieces -= self.in_pieces / 64.0;
        if enters && let Some(pace) = object.goes_on(item.index, now, usual) {
            self.pace = if self.pace == 0.0 { pace } else { self.pace + (pace - self.pace) / 256.0 };
            self.pass(item, part(item.index - 1) + 1..here + 1);
            return;
        }
        object.comes(Viewer { index: item.index, at: now, pace: None }, now, usual);
        object.visits += self.unit;
        if object.passes.is_none() && object.visits >= LIKE_ALL * self.unit {
            let share = object.visits / self.visits.max(self.unit);
            object.passes = Some(Box::new(Passes(self.passes.0.map(|passed| passed * share))));
        }
        self.visits += self.unit;
        self.pass(item, here..here + 1);
        let since = now.saturating_sub(self.last) as f64;
        self.last = now;
        self.between = if self.between == 0.0 { since } else { self.between + (since - self.between) / 256.0 };
        self.unit *= 1.0 + 1.0 / MEMORY;
        self.tidy();
    }

    fn pass(&mut self, item: &Item, parts: std::ops::Range<usize>) {
        let own = self.objects.get_mut(&item.object).and_then(|object| object.passes.as_deref_mut());
        for passes in [Some(&mut self.passes), own].into_iter().flatten() {
            passes.0[parts.clone()].iter_mut().for_each(|passed| *passed += self.unit);
        }
    }

    /// Returns the milliseconds for which a slice must be held per expected use. A use is a viewer or a new visit that reaches
    /// the slice. Unlikely uses that come much later do not count.
    pub(super) fn next_use(&self, item: &Item, now: Time) -> f64 {
        let Some(object) = self.objects.get(&item.object) else { return NEVER };
        let reaches = |index: u32| match &object.passes {
            Some(passes) => passes.share(part(index), object.visits),
            None => self.passes.share(part(index), self.visits),
        };
        let there = reaches(item.index);
        let mut guess = Guess::default();
        let is_in = |viewer: &&Viewer| (now.saturating_sub(viewer.at) as f64) < viewer.pace.unwrap_or(self.pace);
        if let Some(viewer) = object.at(item.index).iter().find(is_in) {
            guess.adds(viewer.pace.unwrap_or(self.pace) / 2.0, self.in_pieces);
        }
        let before = object.viewers.partition_point(|viewer| viewer.index < item.index);
        let passes = object.viewers[..before].iter().rev().filter(|viewer| !viewer.has_left(now, self.pace));
        for viewer in passes.take(NEAREST) {
            let pace = viewer.pace.unwrap_or(self.pace);
            let wait = f64::from(item.index - viewer.index) * pace - now.saturating_sub(viewer.at) as f64;
            guess.adds(wait, (there / reaches(viewer.index)).min(1.0));
        }
        let between = self.between * self.visits / object.visits.max(1e-9);
        guess.comes(between / there + f64::from(item.index) * self.pace)
    }

    /// Rescales weights and limits the number of objects.
    fn tidy(&mut self) {
        if self.unit > 1e100 {
            let unit = std::mem::replace(&mut self.unit, 1.0);
            self.visits /= unit;
            let own = self.objects.values_mut().filter_map(|object| object.passes.as_deref_mut());
            own.chain([&mut self.passes]).flat_map(|passes| &mut passes.0).for_each(|passed| *passed /= unit);
            self.objects.values_mut().for_each(|object| object.visits /= unit);
        }
        let mut least = 0.25 * self.unit;
        while self.objects.len() > OBJECTS {
            self.objects.retain(|_, object| object.visits > least);
            least *= 2.0;
        }
    }
}

/// The likely uses of a slice, the soonest first.
struct Guess {
    /// The probability that none of them happens.
    none: f64,
    /// Mean milliseconds until the first use, or until the last possible one.
    held: f64,
    /// Time of the last possible use.
    last: f64,
    /// The most uses per millisecond, if held for the first uses only.
    best: f64,
}

impl Default for Guess {
    fn default() -> Self {
        Self { none: 1.0, held: 1.0, last: 0.0, best: 0.0 }
    }
}

impl Guess {
    /// Adds a possible use in `wait` milliseconds.
    fn adds(&mut self, wait: f64, chance: f64) {
        self.held += self.none * (wait - self.last).max(0.0);
        self.last = self.last.max(wait);
        self.none *= 1.0 - chance;
        self.best = self.best.max((1.0 - self.none) / self.held);
    }

    /// Adds a certain use in `wait` milliseconds, if none happens before. Returns the milliseconds held per use.
    fn comes(self, wait: f64) -> f64 {
        1.0 / self.best.max(1.0 / (self.held + self.none * wait))
    }
}

impl Passes {
    /// Returns the share of visits that reach a part.
    fn share(&self, part: usize, visits: f64) -> f64 {
        (self.0[part] / visits.max(1e-9)).clamp(1e-3, 1.0)
    }
}

impl Object {
    /// Returns the indexes of the viewers at a slice.
    fn places(&self, index: u32) -> std::ops::Range<usize> {
        let start = self.viewers.partition_point(|viewer| viewer.index < index);
        start..start + self.viewers[start..].partition_point(|viewer| viewer.index == index)
    }

    fn at(&self, index: u32) -> &[Viewer] {
        &self.viewers[self.places(index)]
    }

    /// Moves the viewer that was at the slice before, and is due now, to this one. Returns its pace.
    fn goes_on(&mut self, index: u32, now: Time, usual: f64) -> Option<f64> {
        let took = |viewer: &Viewer| now.saturating_sub(viewer.at) as f64;
        let late = |viewer: &Viewer| (took(viewer) - viewer.pace.unwrap_or(usual)).abs();
        let places = self.places(index.checked_sub(1)?);
        let place = places.min_by(|a, b| late(&self.viewers[*a]).total_cmp(&late(&self.viewers[*b])))?;
        let viewer = self.viewers[place];
        if viewer.has_left(now, usual) {
            return None;
        }
        let took = took(&viewer);
        let pace = viewer.pace.map_or(took, |pace| pace + (took - pace) / 4.0);
        // Its new index is behind the viewers at the slice that it leaves.
        let end = self.viewers[place..].partition_point(|viewer| viewer.index < index) + place;
        self.viewers[place..end].rotate_left(1);
        self.viewers[end - 1] = Viewer { index, at: now, pace: Some(pace) };
        Some(pace)
    }

    fn comes(&mut self, viewer: Viewer, now: Time, usual: f64) {
        if self.viewers.len() >= VIEWERS {
            self.viewers.retain(|viewer| !viewer.has_left(now, usual));
            self.viewers.truncate(VIEWERS - 1);
        } else if self.viewers.len() == self.viewers.capacity() {
            self.viewers.retain(|viewer| !viewer.has_left(now, usual));
        }
        let place = self.viewers.partition_point(|other| other.index < viewer.index);
        self.viewers.insert(place, viewer);
    }
}

impl Viewer {
    fn has_left(&self, now: Time, usual: f64) -> bool {
        let slice = self.pace.unwrap_or(usual).max(usual);
        slice > 0.0 && now.saturating_sub(self.at) as f64 > PATIENCE * slice
    }
}

/// Returns the part of a slice: the first slices one by one, then four parts for each doubling. Viewers leave after
/// some time, not after some share of the object.
/// share of the object.
fn part(index: u32) -> usize {
    if index < 8 {
        return index as usize;
    }
    let doubling = index.ilog2();
    let quarter = (index >> (doubling - 2)) & 3;
    ((8 + (doubling - 3) * 4 + quarter) as usize).min(PARTS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(object: u64, index: u32) -> Item {
        Item { key: object << 32 | u64::from(index), object, index, of: 64, size: 1 }
    }

    /// A visit of every slice up to `to`, one a second.
    fn visit(audience: &mut Audience, object: u64, to: u32, from: Time) -> Time {
        (0..to).for_each(|index| audience.asks(&item(object, index), true, from + u64::from(index) * 1000));
        from + u64::from(to) * 1000
    }

    #[test]
    fn what_a_viewer_comes_by_is_used_when_it_does() {
        let mut audience = Audience::default();
        for round in 0..200 {
            visit(&mut audience, 1, 64, round * 100_000);
        }
        let now = visit(&mut audience, 1, 10, 30_000_000);
        let next = audience.next_use(&item(1, 20), now);
        assert!((9_500.0..12_000.0).contains(&next), "ten slices on: {next}");
        assert!(audience.next_use(&item(1, 3), now) > 50_000.0, "behind it: when the next one comes");
        assert!(audience.next_use(&item(1, 9), now - 900) > 50_000.0, "it is in there, but slices are read at once");
        let mut segments = audience.clone();
        for piece in 0..100 {
            segments.asks(&item(1, 9), false, now - 900 + piece);
        }
        assert!(segments.next_use(&item(1, 9), now - 800) < 1000.0, "it is in there, and slices are read in pieces");
        let later = now + 3_600_000;
        assert!(audience.next_use(&item(1, 20), later) > 50_000.0, "it has left");
        assert_eq!(audience.next_use(&item(2, 0), now), NEVER);
    }

    #[test]
    fn the_popular_and_the_beginning_are_used_sooner() {
        let mut audience = Audience::default();
        for round in 0..1000_u64 {
            // One of ten visits is to object 2, and nine of ten viewers leave in the middle.
            let object = if round % 10 == 0 { 2 } else { 1 };
            visit(&mut audience, object, if round % 10 == 5 { 64 } else { 32 }, round * 200_000);
        }
        let now = 1000 * 200_000;
        let next = |object, index| audience.next_use(&item(object, index), now);
        assert!(next(1, 0) * 5.0 < next(2, 0), "{} {}", next(1, 0), next(2, 0));
        assert!(next(1, 0) * 5.0 < next(1, 60), "{} {}", next(1, 0), next(1, 60));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut audience = Audience::default();
        for object in 0..OBJECTS as u64 * 2 {
            audience.asks(&item(object % 7, 0), true, object);
            audience.asks(&item(object, 0), true, object);
        }
        assert!(audience.objects.len() <= OBJECTS);
        assert!(audience.objects.values().all(|object| object.viewers.len() <= VIEWERS));
        assert!((0..7).all(|object| audience.objects.contains_key(&object)), "the popular stay");
    }
}
