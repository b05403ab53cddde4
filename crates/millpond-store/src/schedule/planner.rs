//! Chooses the slices to fetch now, for all viewers of one origin.

use super::{LinkEstimate, LinkState, Mode, Seconds, Viewer, viewer, viewer::Wish};
use std::collections::{BTreeMap, HashMap};

/// Most slices of one origin that are prefetched at a time. Bytes that a reader waits for do not count.
const AT_ONCE: usize = 8;
/// Longest queue of the link, in seconds, that permits another prefetch. Bytes that readers wait for come first, and
/// the link does not run idle. A link with a longer delay may have a queue of that delay.
const QUEUE: Seconds = 0.05;
/// Most slices that are prefetched at a time from several stores.
const WIDEST: usize = 64;
/// Least time between two calls of [`Planner::plan`]: changes within it are planned together.
pub const SPACING: Seconds = 0.005;

/// Identifies a viewer of a [`Planner`].
pub type ViewerId = u64;

/// A slice to fetch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fetch {
    /// The viewer that will need it.
    pub viewer: ViewerId,
    /// Number of the slice in the viewer's object.
    pub index: u64,
    /// Time at which its first byte is needed.
    pub due: Seconds,
}

/// How much may be fetched ahead of viewers now.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Limits {
    slices: usize,
    /// Longest queue of the link that permits one more slice.
    queue: Seconds,
    /// Slices that are permitted whatever the queue, because several stores send them.
    beside: usize,
}

/// A viewer, and the number of the object that it watches.
#[derive(Debug)]
pub(super) struct Watching {
    pub(super) object: u64,
    pub(super) viewer: Viewer,
}

/// Decides which slices to fetch ahead, for all viewers of one origin.
///
/// The caller sets each viewer's position through [`viewer`](Self::viewer). It calls [`plan`](Self::plan) after every
/// change and at the moment that the last call returned, and starts the fetches of its answer. Each slice is answered
/// once.
#[derive(Debug)]
pub struct Planner {
    pub(super) mode: Mode,
    pub(super) slice: u64,
    pub(super) viewers: BTreeMap<ViewerId, Watching>,
    next: ViewerId,
    /// Slices that the last plan by time found missing, by deadline.
    pub(super) wishes: Vec<Wish<ViewerId>>,
    /// The viewer that needs a slice of an object first, by object and slice.
    owners: HashMap<(u64, u64), ViewerId>,
}

impl Planner {
    /// Creates a planner without viewers, for slices of `slice` bytes.
    pub fn new(mode: Mode, slice: u64) -> Self {
        Self { mode, slice, viewers: BTreeMap::new(), next: 0, wishes: Vec::new(), owners: HashMap::new() }
    }

    /// Changes the mode, for present viewers too.
    pub fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Adds a viewer of an object. A slice that several viewers of one object need is fetched once.
    pub fn join(&mut self, object: u64) -> ViewerId {
        self.next += 1;
        self.viewers.insert(self.next, Watching { object, viewer: Viewer::new(self.slice) });
        self.next
    }

    /// Returns a viewer, whose position can be set.
    pub fn viewer(&mut self, id: ViewerId) -> Option<&mut Viewer> {
        self.viewers.get_mut(&id).map(|watching| &mut watching.viewer)
    }

    /// Removes a viewer, and its demand for slices.
    pub fn leave(&mut self, id: ViewerId) {
        self.viewers.remove(&id);
    }

    /// Returns whether there are no viewers.
    pub fn is_empty(&self) -> bool {
        self.viewers.is_empty()
    }

    /// Returns the slices to fetch now, by earliest deadline, and the time of the next call if nothing changes before.
    ///
    /// `under_way` is the number of slices on their way ahead of viewers; `here` says whether a slice of a viewer's object
    /// is cached or on its way.
    pub fn plan(
        &mut self,
        now: Seconds,
        link: LinkState,
        under_way: usize,
        here: impl Fn(ViewerId, u64) -> bool,
    ) -> (Vec<Fetch>, Option<Seconds>) {
        let LinkState { estimate, busy, least_delay, lanes } = link;
        let estimate = lanes.map_or(estimate, |lanes| lanes.expected(estimate));
        let delay = estimate.delay + estimate.start(least_delay, self.slice);
        // What one store sends measures a quarter of four stores. So their number counts, not the queue.
        let slices = lanes.map_or(AT_ONCE, |lanes| lanes.slices.clamp(1, WIDEST)).saturating_sub(under_way);
        let beside = if lanes.is_some() { slices } else { 0 };
        let limits = Limits { slices, queue: QUEUE.max(least_delay), beside };
        self.plan_within(limits, now, LinkEstimate { delay, ..estimate }, busy, here)
    }

    /// As [`plan`](Self::plan), with given limits and delay.
    fn plan_within(
        &mut self,
        limits: Limits,
        now: Seconds,
        link: LinkEstimate,
        busy: Seconds,
        here: impl Fn(ViewerId, u64) -> bool,
    ) -> (Vec<Fetch>, Option<Seconds>) {
        let takes = self.slice as f64 / link.bandwidth;
        let fits = |count: usize| {
            let is_short = || busy + count as f64 * takes <= limits.queue;
            count < limits.slices && (count < limits.beside || is_short())
        };
        let (fetches, wake) = match self.mode.ahead() {
            Some(ahead) => self.windows(now, ahead, fits, here),
            None => self.active(now, link, busy, fits, here),
        };
        // While the link has a queue, the next call is due at its end.
        let done = (!fits(fetches.len())).then(|| now + (busy + fetches.len() as f64 * takes - limits.queue).max(0.01));
        (fetches, [wake, done].into_iter().flatten().reduce(f64::min))
    }

    fn windows(
        &mut self,
        now: Seconds,
        ahead: f64,
        fits: impl Fn(usize) -> bool,
        here: impl Fn(ViewerId, u64) -> bool,
    ) -> (Vec<Fetch>, Option<Seconds>) {
        let mut fetches = Vec::new();
        let mut wake: Option<Seconds> = None;
        for (id, Watching { viewer, .. }) in &mut self.viewers {
            if ahead <= 0.0 || !fits(fetches.len()) {
                break;
            }
            let (due, next) = viewer.window(ahead, now);
            let missing = due.filter(|index| !here(*id, *index));
            fetches.extend(missing.map(|index| Fetch { viewer: *id, index, due: viewer.needs(index, now) }));
            wake = [wake, next].into_iter().flatten().reduce(f64::min);
        }
        (fetches, wake)
    }

    fn active(
        &mut self,
        now: Seconds,
        link: LinkEstimate,
        busy: Seconds,
        fits: impl Fn(usize) -> bool,
        here: impl Fn(ViewerId, u64) -> bool,
    ) -> (Vec<Fetch>, Option<Seconds>) {
        self.wishes.clear();
        for (id, Watching { viewer, .. }) in &self.viewers {
            viewer.wishes(*id, now, |index| here(*id, index), &mut self.wishes);
        }
        // Bytes that two viewers need, or two tracks of one file, cross the link once: for the first deadline.
        self.wishes.sort_by(|a, b| a.last.total_cmp(&b.last));
        self.owners.clear();
        let (viewers, owners) = (&self.viewers, &mut self.owners);
        self.wishes.retain(|wish| {
            let slice = viewers.get(&wish.viewer).map(|watching| (watching.object, wish.index));
            slice.is_some_and(|slice| *owners.entry(slice).or_insert(wish.viewer) == wish.viewer)
        });
        let mut wake = None;
        let mut due = 0;
        viewer::latest(&mut self.wishes, link, busy, |place, at| {
            if at <= now {
                due = due.max(place + 1);
            } else {
                wake = Some(at);
            }
        });
        let mut fetches = Vec::new();
        for wish in self.wishes.iter().take(due) {
            let watching = self.viewers.get_mut(&wish.viewer).filter(|_| fits(fetches.len()));
            if watching.is_some_and(|watching| watching.viewer.handle(wish.index)) {
                fetches.push(Fetch { viewer: wish.viewer, index: wish.index, due: wish.first });
            }
        }
        (fetches, wake)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Course;

    const LINK: LinkEstimate = LinkEstimate { bandwidth: 1250.0, delay: 0.0 };
    const LIMITS: Limits = Limits { slices: 9, queue: 99.0, beside: 0 };

    fn at(planner: &mut Planner, id: ViewerId, from: u64, asked: u64, now: Seconds) {
        planner.viewer(id).unwrap().moves(Course::constant(from, 100_000, 100.0), asked, now);
    }

    #[test]
    fn earliest_deadlines_are_fetched_first_up_to_the_limits() {
        let mut planner = Planner::new(Mode::Active, 1000);
        let [late, early] = [planner.join(1), planner.join(2)];
        at(&mut planner, late, 0, 1000, 0.0);
        at(&mut planner, early, 500, 1000, 0.0);
        // Played at 10 s and 5 s. A slice takes 1 s of a link, and is read as it arrives.
        let (fetches, wake) = planner.plan_within(LIMITS, 0.0, LINK, 0.0, |_, _| false);
        assert_eq!((fetches, wake), (vec![], Some(5.0)));
        let (fetches, wake) = planner.plan_within(LIMITS, 5.0, LINK, 0.0, |_, _| false);
        assert_eq!((fetches, wake), (vec![Fetch { viewer: early, index: 1, due: 5.0 }], Some(10.0)));
        // The link is busy for 6 s more: all slices needed until then are late already.
        let (fetches, _) = planner.plan_within(Limits { slices: 1, ..LIMITS }, 5.0, LINK, 6.0, |_, _| false);
        assert_eq!(fetches, [Fetch { viewer: late, index: 1, due: 10.0 }]);
        // A link with a long queue gets no more.
        let (fetches, wake) = planner.plan_within(Limits { queue: 2.0, ..LIMITS }, 5.0, LINK, 6.0, |_, _| false);
        assert_eq!((fetches, wake), (vec![], Some(9.0)));
        // Several stores get one slice more than the queue permits.
        let (fetches, _) =
            planner.plan_within(Limits { queue: 2.0, beside: 1, ..LIMITS }, 5.0, LINK, 99.0, |_, _| false);
        assert_eq!(fetches.len(), 1);
        planner.leave(late);
        planner.leave(early);
        assert_eq!(planner.plan_within(LIMITS, 99.0, LINK, 0.0, |_, _| false), (vec![], None));
        assert!(planner.is_empty());
    }

    #[test]
    fn a_slice_that_two_viewers_need_is_fetched_once() {
        let mut planner = Planner::new(Mode::Active, 1000);
        let [late, early] = [planner.join(7), planner.join(7)];
        at(&mut planner, late, 0, 1000, 0.0);
        at(&mut planner, early, 500, 1000, 0.0);
        // As if the early viewer were alone: the link carries a slice a second, and it plays one in ten.
        let (fetches, wake) = planner.plan_within(LIMITS, 4.9, LINK, 0.0, |_, _| false);
        assert_eq!((fetches, wake), (vec![], Some(5.0)));
        let slow = LinkEstimate { bandwidth: 125.0, delay: 0.0 };
        let (fetches, wake) = planner.plan_within(LIMITS, 4.0, slow, 0.0, |_, _| false);
        assert!(fetches.is_empty() && wake.is_some_and(|at| at > 4.99), "just enough for one: {wake:?}");
        let (fetches, _) = planner.plan_within(LIMITS, 5.0, LINK, 0.0, |_, _| false);
        assert_eq!(fetches, [Fetch { viewer: early, index: 1, due: 5.0 }]);
    }

    #[test]
    fn modes_change_under_way_and_cached_slices_are_not_fetched() {
        let mut planner = Planner::new(Mode::OnDemand, 1000);
        let id = planner.join(1);
        at(&mut planner, id, 0, 1000, 0.0);
        assert_eq!(planner.plan_within(LIMITS, 0.0, LINK, 0.0, |_, _| false), (vec![], None));
        planner.set_mode(Mode::Window(2.0));
        let (fetches, wake) = planner.plan_within(LIMITS, 0.0, LINK, 0.0, |_, index| index == 1);
        assert_eq!((fetches, wake), (vec![Fetch { viewer: id, index: 2, due: 20.0 }], None));
    }
}
