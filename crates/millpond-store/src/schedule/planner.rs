//! All viewers of one origin.

use super::{Link, Mode, Seconds, Viewer, Wish, viewer};
use std::collections::{BTreeMap, HashMap};

/// Names a viewer of a [`Planner`].
pub type ViewerId = u64;

/// A slice to send for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// For whom.
    pub viewer: ViewerId,
    /// Which slice.
    pub index: u64,
}

/// How much may be sent for ahead of viewers: what they wait for is not to wait for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    /// Slices.
    pub slices: usize,
    /// For how long the link may have work before one more slice is sent for.
    pub queue: Seconds,
}

/// A viewer, and the number of what it watches.
#[derive(Debug)]
struct Watching {
    object: u64,
    viewer: Viewer,
}

/// Says what to send for, for all viewers of one origin.
#[derive(Debug)]
pub struct Planner {
    mode: Mode,
    slice: u64,
    viewers: BTreeMap<ViewerId, Watching>,
    next: ViewerId,
    wishes: Vec<Wish<ViewerId>>,
    /// Whose wish for a slice of an object counts.
    owners: HashMap<(u64, u64), ViewerId>,
}

impl Planner {
    /// Without viewers, for slices of `slice` bytes.
    pub fn new(mode: Mode, slice: u64) -> Self {
        Self { mode, slice, viewers: BTreeMap::new(), next: 0, wishes: Vec::new(), owners: HashMap::new() }
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Bytes of a slice.
    pub fn slice(&self) -> u64 {
        self.slice
    }

    /// Changes the mode, for those who are there too.
    pub fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// A viewer of an object comes. What several viewers of one object need is sent for once.
    pub fn join(&mut self, object: u64) -> ViewerId {
        self.next += 1;
        self.viewers.insert(self.next, Watching { object, viewer: Viewer::new(self.slice) });
        self.next
    }

    /// A viewer, to be told where it is.
    pub fn viewer(&mut self, id: ViewerId) -> Option<&mut Viewer> {
        self.viewers.get_mut(&id).map(|watching| &mut watching.viewer)
    }

    /// A viewer leaves: its wishes are gone.
    pub fn leave(&mut self, id: ViewerId) {
        self.viewers.remove(&id);
    }

    /// Whether nobody is there.
    pub fn is_empty(&self) -> bool {
        self.viewers.is_empty()
    }

    /// What to send for now, by earliest deadline, as far as there is room, and when to ask again where nothing else
    /// happens. `here` says whether a slice of a viewer's object is there or on its way; `busy` for how many seconds
    /// the link has work already.
    pub fn plan(
        &mut self,
        now: Seconds,
        link: Link,
        busy: Seconds,
        room: Room,
        here: impl Fn(ViewerId, u64) -> bool,
    ) -> (Vec<Fetch>, Option<Seconds>) {
        let takes = self.slice as f64 / link.bandwidth;
        let fits = |count: usize| count < room.slices && busy + count as f64 * takes <= room.queue;
        let (fetches, wake) = match self.mode.ahead() {
            Some(ahead) => self.windows(now, ahead, fits, here),
            None => self.active(now, link, busy, fits, here),
        };
        // Where the link has work, it is looked again when that is done.
        let done = (!fits(fetches.len())).then(|| now + (busy + fetches.len() as f64 * takes - room.queue).max(0.01));
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
            fetches.extend(due.filter(|index| !here(*id, *index)).map(|index| Fetch { viewer: *id, index }));
            wake = [wake, next].into_iter().flatten().reduce(f64::min);
        }
        (fetches, wake)
    }

    fn active(
        &mut self,
        now: Seconds,
        link: Link,
        busy: Seconds,
        fits: impl Fn(usize) -> bool,
        here: impl Fn(ViewerId, u64) -> bool,
    ) -> (Vec<Fetch>, Option<Seconds>) {
        self.wishes.clear();
        for (id, Watching { viewer, .. }) in &self.viewers {
            viewer.wishes(*id, now, |index| here(*id, index), &mut self.wishes);
        }
        // Two tracks of one file, or two viewers: the bytes cross the link once, for who needs them first.
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
            if watching.is_some_and(|watching| watching.viewer.deals_with(wish.index)) {
                fetches.push(Fetch { viewer: wish.viewer, index: wish.index });
            }
        }
        (fetches, wake)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Course;

    const LINK: Link = Link { bandwidth: 1100.0, delay: 0.0 };
    const ROOM: Room = Room { slices: 9, queue: 99.0 };

    fn at(planner: &mut Planner, id: ViewerId, from: u64, asked: u64, now: Seconds) {
        planner.viewer(id).unwrap().moves(Course::constant(from, 100_000, 100.0), asked, now);
    }

    #[test]
    fn earliest_deadlines_go_first_and_no_more_than_there_is_room() {
        let mut planner = Planner::new(Mode::Active, 1000);
        let [late, early] = [planner.join(1), planner.join(2)];
        at(&mut planner, late, 0, 1000, 0.0);
        at(&mut planner, early, 500, 1000, 0.0);
        // Played at 10 s and 5 s; a slice takes 1 s of a link, and is read as it comes.
        let (fetches, wake) = planner.plan(0.0, LINK, 0.0, ROOM, |_, _| false);
        assert_eq!((fetches, wake), (vec![], Some(5.0)));
        let (fetches, wake) = planner.plan(5.0, LINK, 0.0, ROOM, |_, _| false);
        assert_eq!((fetches, wake), (vec![Fetch { viewer: early, index: 1 }], Some(10.0)));
        // The link will be busy for 6 s more: all that is needed until then is late already.
        let (fetches, _) = planner.plan(5.0, LINK, 6.0, Room { slices: 1, ..ROOM }, |_, _| false);
        assert_eq!(fetches, [Fetch { viewer: late, index: 1 }]);
        // A link of which the queue is long enough is left to what it has.
        let (fetches, wake) = planner.plan(5.0, LINK, 6.0, Room { queue: 2.0, ..ROOM }, |_, _| false);
        assert_eq!((fetches, wake), (vec![], Some(9.0)));
        planner.leave(late);
        planner.leave(early);
        assert_eq!(planner.plan(99.0, LINK, 0.0, ROOM, |_, _| false), (vec![], None));
        assert!(planner.is_empty());
    }

    #[test]
    fn what_two_need_of_one_object_is_sent_for_once() {
        let mut planner = Planner::new(Mode::Active, 1000);
        let [late, early] = [planner.join(7), planner.join(7)];
        at(&mut planner, late, 0, 1000, 0.0);
        at(&mut planner, early, 500, 1000, 0.0);
        // As if the early one were alone: a slice a second, of which it plays one in ten.
        let (fetches, wake) = planner.plan(4.9, LINK, 0.0, ROOM, |_, _| false);
        assert_eq!((fetches, wake), (vec![], Some(5.0)));
        let slow = Link { bandwidth: 110.0, delay: 0.0 };
        let (fetches, wake) = planner.plan(4.0, slow, 0.0, ROOM, |_, _| false);
        assert!(fetches.is_empty() && wake.is_some_and(|at| at > 4.99), "just enough for one: {wake:?}");
        let (fetches, _) = planner.plan(5.0, LINK, 0.0, ROOM, |_, _| false);
        assert_eq!(fetches, [Fetch { viewer: early, index: 1 }]);
    }

    #[test]
    fn modes_change_under_way_and_what_is_here_is_not_sent_for() {
        let mut planner = Planner::new(Mode::OnDemand, 1000);
        let id = planner.join(1);
        at(&mut planner, id, 0, 1000, 0.0);
        assert_eq!(planner.plan(0.0, LINK, 0.0, ROOM, |_, _| false), (vec![], None));
        planner.set_mode(Mode::Window(2.0));
        let (fetches, wake) = planner.plan(0.0, LINK, 0.0, ROOM, |_, index| index == 1);
        assert_eq!((fetches, wake), (vec![Fetch { viewer: id, index: 2 }], None));
        assert_eq!(planner.mode(), Mode::Window(2.0));
    }
}
