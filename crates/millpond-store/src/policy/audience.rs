//! Who watches what, as far as the asks for slices tell: viewers on their way through objects, how often objects are
//! come to, and how far viewers go.

use super::{Item, Time};
use std::collections::HashMap;

/// Objects that are remembered.
const OBJECTS: usize = 65_536;
/// Viewers of one object that are followed.
const VIEWERS: usize = 32;
/// So many visits ago counts e times less.
const MEMORY: f64 = 8192.0;
/// Parts of an object that [`Audience::reaches`] tells apart.
const PARTS: usize = 32;
/// Who doesn't go on for so many times as long as a slice took has left.
const PATIENCE: f64 = 8.0;
/// And for at least so long, in milliseconds.
const PAUSE: f64 = 60_000.0;
/// What is never expected to be asked for.
const NEVER: f64 = 1e15;

/// All objects and their viewers.
#[derive(Debug)]
pub(super) struct Audience {
    objects: HashMap<u64, Object>,
    /// What a visit counts: grows instead of all others shrinking.
    unit: f64,
    /// All visits, by that measure.
    visits: f64,
    /// Mean milliseconds between visits, and when the last one was.
    between: f64,
    last: Time,
    /// How many visits went through each part of their object, and how many could have.
    came: [f64; PARTS],
    could: [f64; PARTS],
    /// Mean milliseconds that a slice takes a viewer.
    pace: f64,
}

#[derive(Debug, Default)]
struct Object {
    visits: f64,
    viewers: Vec<Viewer>,
}

#[derive(Clone, Copy, Debug)]
struct Viewer {
    index: u32,
    at: Time,
    /// Milliseconds a slice; none before its second.
    pace: Option<f64>,
}

impl Default for Audience {
    fn default() -> Self {
        Self {
            objects: HashMap::new(),
            unit: 1.0,
            visits: 0.0,
            between: 0.0,
            last: 0,
            came: [1.0; PARTS],
            could: [1.0; PARTS],
            pace: 0.0,
        }
    }
}

impl Audience {
    /// A slice is asked for: by a viewer who was at the one before, or by one who comes.
    pub(super) fn asks(&mut self, item: &Item, now: Time) {
        let part = part(item.index, item.of);
        let object = self.objects.entry(item.object).or_default();
        if object.viewers.iter().any(|viewer| viewer.index == item.index && viewer.at == now) {
            return;
        }
        let before = |viewer: &&mut Viewer| item.index > 0 && viewer.index == item.index - 1;
        let goes_on = object.viewers.iter_mut().filter(before).min_by_key(|viewer| viewer.at);
        if let Some(viewer) = goes_on {
            let took = now.saturating_sub(viewer.at) as f64;
            let pace = viewer.pace.map_or(took, |pace| pace + (took - pace) / 4.0);
            *viewer = Viewer { index: item.index, at: now, pace: Some(pace) };
            self.pace += (pace - self.pace) / 256.0;
            let before = self::part(item.index - 1, item.of);
            self.came[before..part].iter_mut().for_each(|came| *came += self.unit);
            return;
        }
        // Asked for again by who is there: somebody who goes back a little, or two who keep step.
        if let Some(viewer) = object.viewers.iter_mut().find(|viewer| viewer.index == item.index) {
            viewer.at = now;
            return;
        }
        let pace = self.pace;
        object.viewers.retain(|viewer| !viewer.has_left(now, pace));
        if object.viewers.len() >= VIEWERS {
            object.viewers.remove(0);
        }
        object.viewers.push(Viewer { index: item.index, at: now, pace: None });
        object.visits += self.unit;
        self.visits += self.unit;
        self.could[part..].iter_mut().for_each(|could| *could += self.unit);
        let since = now.saturating_sub(self.last) as f64;
        self.last = now;
        self.between = if self.between == 0.0 { since } else { self.between + (since - self.between) / 256.0 };
        self.unit *= 1.0 + 1.0 / MEMORY;
        self.tidy();
    }

    /// Milliseconds until a slice is likely to be asked for: by a viewer who comes by, or by one who comes to its object.
    pub(super) fn next_use(&self, item: &Item, now: Time) -> f64 {
        let Some(object) = self.objects.get(&item.object) else { return NEVER };
        let there = self.reaches(part(item.index, item.of));
        let to_play = f64::from(item.index) * self.pace;
        let comes = (self.between * self.visits / object.visits.max(1e-9) + to_play) / there;
        let passes = object.viewers.iter().filter(|viewer| viewer.index < item.index);
        let passes = passes.filter(|viewer| !viewer.has_left(now, self.pace)).map(|viewer| {
            let pace = viewer.pace.unwrap_or(self.pace);
            let wait = f64::from(item.index - viewer.index) * pace - now.saturating_sub(viewer.at) as f64;
            let stays = (there / self.reaches(part(viewer.index, item.of))).min(1.0);
            // Who has left by then leaves the slice to those who come.
            stays * wait.max(0.0) + (1.0 - stays) * comes
        });
        passes.fold(comes, f64::min)
    }

    /// The share of viewers that come to a part of an object: that went through the part before it.
    fn reaches(&self, part: usize) -> f64 {
        let Some(before) = part.checked_sub(1) else { return 1.0 };
        (self.came[before] / self.could[before]).clamp(0.01, 1.0)
    }

    /// Keeps numbers small and memory bounded.
    fn tidy(&mut self) {
        if self.unit > 1e100 {
            let unit = std::mem::replace(&mut self.unit, 1.0);
            self.visits /= unit;
            self.came.iter_mut().chain(&mut self.could).for_each(|count| *count /= unit);
            self.objects.values_mut().for_each(|object| object.visits /= unit);
        }
        let mut least = 0.25 * self.unit;
        while self.objects.len() > OBJECTS {
            self.objects.retain(|_, object| object.visits > least);
            least *= 2.0;
        }
    }
}

impl Viewer {
    fn has_left(&self, now: Time, usual: f64) -> bool {
        let pace = self.pace.unwrap_or(usual);
        now.saturating_sub(self.at) as f64 > PATIENCE * pace + PAUSE
    }
}

fn part(index: u32, of: u32) -> usize {
    (u64::from(index) * PARTS as u64 / u64::from(of.max(1))).min(PARTS as u64 - 1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(object: u64, index: u32) -> Item {
        Item { key: object << 32 | u64::from(index), object, index, of: 64, size: 1 }
    }

    /// A visit of every slice up to `to`, one a second.
    fn visit(audience: &mut Audience, object: u64, to: u32, from: Time) -> Time {
        (0..to).for_each(|index| audience.asks(&item(object, index), from + u64::from(index) * 1000));
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
            audience.asks(&item(object % 7, 0), object);
            audience.asks(&item(object, 0), object);
        }
        assert!(audience.objects.len() <= OBJECTS);
        assert!(audience.objects.values().all(|object| object.viewers.len() <= VIEWERS));
        assert!((0..7).all(|object| audience.objects.contains_key(&object)), "the popular stay");
    }
}
