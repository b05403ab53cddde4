//! The ranges that this node awaits from homes.
//!
//! Nodes whose views differ may take each other for the home of a range: two nodes that drain, or one that has just begun to. If each waited for the
//! bytes of the other, both would wait until their time limits. So a node that awaits bytes itself refuses those who ask it for them.

use millpond_store::HomeStep;
use std::{
    collections::HashMap,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A range that is awaited from a home.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Awaited {
    range: Range<u64>,
    step: HomeStep,
}

/// By place and path of the object.
type Objects = HashMap<(String, String), Vec<Awaited>>;

/// The ranges that are awaited now.
#[derive(Clone, Debug, Default)]
pub(super) struct HomeWaits(Arc<Mutex<Objects>>);

/// A range that is awaited until this is dropped.
#[derive(Debug)]
pub(super) struct HomeWait {
    waits: HomeWaits,
    object: (String, String),
    awaited: Awaited,
}

impl HomeWaits {
    /// Notes that a range of an object is asked for, from a home of a kind.
    pub(super) fn begin(&self, (place, path): (&str, &str), range: &Range<u64>, step: HomeStep) -> HomeWait {
        let object = (place.to_owned(), path.to_owned());
        let awaited = Awaited { range: range.clone(), step };
        self.all().entry(object.clone()).or_default().push(awaited.clone());
        HomeWait { waits: self.clone(), object, awaited }
    }

    /// Whether a node that is asked for a range must refuse, because it may wait for the one that asks. The home of a zone may wait for the home of the
    /// cluster: that asks the origin.
    pub(super) fn would_circle(&self, (place, path): (&str, &str), range: &Range<u64>, step: HomeStep) -> bool {
        let is_between = |awaited: &Awaited| awaited.range.start < range.end && range.start < awaited.range.end;
        let leads_on = |awaited: &Awaited| (step, awaited.step) == (HomeStep::Zone, HomeStep::Cluster);
        let all = self.all();
        let awaited = all.get(&(place.to_owned(), path.to_owned()));
        awaited.into_iter().flatten().any(|awaited| is_between(awaited) && !leads_on(awaited))
    }

    fn all(&self) -> MutexGuard<'_, Objects> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HomeWait {
    fn drop(&mut self) {
        let mut all = self.waits.all();
        let Some(of_object) = all.get_mut(&self.object) else { return };
        if let Some(at) = of_object.iter().position(|awaited| *awaited == self.awaited) {
            of_object.swap_remove(at);
        }
        if of_object.is_empty() {
            all.remove(&self.object);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILM: (&str, &str) = ("films", "a.mp4");

    #[test]
    fn a_node_refuses_bytes_that_it_awaits() {
        let waits = HomeWaits::default();
        let circles = |range: Range<u64>, step| waits.would_circle(FILM, &range, step);
        assert!(!circles(0..10, HomeStep::Cluster));
        let first = waits.begin(FILM, &(10..20), HomeStep::Cluster);
        let same = waits.begin(FILM, &(10..20), HomeStep::Cluster);
        for (range, expected) in [(0..10, false), (0..11, true), (12..13, true), (19..30, true), (20..30, false)] {
            assert_eq!(circles(range.clone(), HomeStep::Cluster), expected, "{range:?}");
        }
        assert!(!waits.would_circle(("films", "b.mp4"), &(10..20), HomeStep::Cluster));
        assert!(!waits.would_circle(("more", "a.mp4"), &(10..20), HomeStep::Cluster));
        drop(first);
        assert!(circles(10..20, HomeStep::Cluster));
        drop(same);
        assert!(!circles(10..20, HomeStep::Cluster) && waits.all().is_empty());
    }

    #[test]
    fn the_home_of_a_zone_may_wait_for_that_of_the_cluster() {
        let waits = HomeWaits::default();
        let of_cluster = waits.begin(FILM, &(0..10), HomeStep::Cluster);
        assert!(!waits.would_circle(FILM, &(0..10), HomeStep::Zone));
        drop(of_cluster);
        let _of_zone = waits.begin(FILM, &(0..10), HomeStep::Zone);
        assert!([HomeStep::Zone, HomeStep::Cluster].iter().all(|step| waits.would_circle(FILM, &(0..10), *step)));
    }
}
