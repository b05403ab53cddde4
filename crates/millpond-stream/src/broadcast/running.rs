//! Where the phases of a title are that run.

use super::{Ahead, CatchUp, JOINED, Stagger, nearest};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Time after which a phase still begins at once.
const LATE: Duration = Duration::from_secs(1);

/// The phases of one title. Streams of phases hold it, and the viewers that watch them.
#[derive(Debug)]
pub(crate) struct Broadcast {
    stagger: Stagger,
    /// Number of the title's version.
    title: u64,
    began: Instant,
    /// Places by the number of the phase. A lock: each phase writes its own, and viewers read.
    places: Mutex<Vec<Place>>,
}

/// The place of a phase in its title.
#[derive(Debug, Default)]
struct Place {
    /// Stream times at which laps begin: the lap that plays, and those that are loaded already.
    laps: VecDeque<Duration>,
    /// Time of the title that was reached, and the moment; `None` while the phase does not play.
    reached: Option<(Duration, Instant)>,
}

impl Broadcast {
    pub(super) fn new(stagger: Stagger, title: u64, now: Instant) -> Self {
        let places = (0..stagger.phases()).map(|_| Place::default()).collect();
        Self { stagger, title, began: now, places: Mutex::new(places) }
    }

    /// Times at which its phases begin.
    pub(crate) fn stagger(&self) -> Stagger {
        self.stagger
    }

    /// Whether it broadcasts this version of a title in these phases.
    pub(super) fn is_of(&self, title: u64, stagger: Stagger) -> bool {
        (self.title, self.stagger) == (title, stagger)
    }

    /// Returns the next moment at which a phase begins.
    pub(crate) fn next_begin(&self, phase: u16, now: Instant) -> Instant {
        let since = now.saturating_duration_since(self.began).saturating_sub(LATE);
        self.began + self.stagger.next_begin(phase, since)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, phase: u16, change: impl FnOnce(&mut Place)) {
        if let Some(place) = self.lock().get_mut(usize::from(phase).wrapping_sub(1)) {
            change(place);
        }
    }

    /// Returns the time of the title that a phase has reached; `None` while it does not play.
    pub(crate) fn position(&self, phase: u16, now: Instant) -> Option<Duration> {
        self.lock().get(usize::from(phase).checked_sub(1)?)?.position(now)
    }

    /// Returns the phase that is least ahead of a time of the title.
    pub(crate) fn nearest(&self, at: Duration, now: Instant) -> Option<Ahead> {
        let places = self.lock();
        nearest((1..).zip(&*places).filter_map(|(phase, place)| Some((phase, place.position(now)?))), at)
    }

    /// Returns how a viewer at a time of the title catches up with the nearest phase; `None` where it need not, or can't.
    pub(crate) fn catch_up(self: &Arc<Self>, at: Duration, now: Instant) -> Option<CatchUp> {
        let Ahead { phase, lead } = self.nearest(at, now)?;
        (lead > JOINED).then(|| CatchUp { broadcast: self.clone(), phase })
    }
}

impl Place {
    fn position(&self, now: Instant) -> Option<Duration> {
        self.reached.map(|(reached, at)| reached + now.saturating_duration_since(at))
    }
}

/// The right of a stream to tell where its phase is. The phase counts as stopped when this is dropped.
#[derive(Debug)]
pub(crate) struct PhaseSeat {
    broadcast: Arc<Broadcast>,
    phase: u16,
}

impl PhaseSeat {
    pub(super) fn new(broadcast: Arc<Broadcast>, phase: u16) -> Self {
        Self { broadcast, phase }
    }

    /// Returns the next moment at which the phase begins.
    pub(crate) fn next_begin(&self, now: Instant) -> Instant {
        self.broadcast.next_begin(self.phase, now)
    }

    /// Notes that a lap was loaded which begins at a stream time.
    pub(crate) fn begin_lap(&self, begin: Duration) {
        self.broadcast.change(self.phase, |place| place.laps.push_back(begin));
    }

    /// Notes that the frame of a stream time was given.
    pub(crate) fn reach(&self, due: Duration, at: Instant) {
        self.broadcast.change(self.phase, |place| {
            while place.laps.get(1).is_some_and(|next| *next <= due) {
                place.laps.pop_front();
            }
            place.reached = place.laps.front().map(|begin| (due.saturating_sub(*begin), at));
        });
    }
}

impl Drop for PhaseSeat {
    fn drop(&mut self) {
        self.broadcast.change(self.phase, |place| *place = Place::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn viewers_find_phases_that_play() {
        let (stagger, began) = (Stagger::new(seconds(100), 2).unwrap(), Instant::now());
        let broadcast = Arc::new(Broadcast::new(stagger, 7, began));
        assert_eq!(broadcast.nearest(Duration::ZERO, began), None);
        let seats = [1, 2].map(|phase| PhaseSeat::new(broadcast.clone(), phase));
        assert_eq!(seats[1].next_begin(began + seconds(1)), began + seconds(50));
        let soon = began + Duration::from_millis(20);
        assert_eq!(seats[0].next_begin(soon), began, "the first phase begins at once");
        assert_eq!(seats[0].next_begin(began + seconds(3)), began + seconds(100));
        seats[0].begin_lap(seconds(10));
        seats[0].begin_lap(seconds(110));
        seats[0].reach(seconds(40), began);
        let ahead = |at, now| broadcast.nearest(seconds(at), began + seconds(now));
        assert_eq!(ahead(0, 1), Some(Ahead { phase: 1, lead: seconds(31) }));
        seats[1].begin_lap(seconds(10));
        seats[1].reach(seconds(15), began);
        assert_eq!(ahead(0, 0), Some(Ahead { phase: 2, lead: seconds(5) }));
        assert_eq!(ahead(20, 0), Some(Ahead { phase: 1, lead: seconds(10) }));
        let catch_up = broadcast.catch_up(Duration::ZERO, began).unwrap();
        assert!(!catch_up.is_over(seconds(1), began) && catch_up.is_over(seconds(3), began));
        // The next lap of the first phase.
        seats[0].reach(seconds(111), began);
        assert_eq!(ahead(0, 0), Some(Ahead { phase: 1, lead: seconds(1) }));
        drop(seats);
        assert_eq!(ahead(0, 0), None);
        assert!(catch_up.is_over(Duration::ZERO, began), "the phase stopped");
    }
}
