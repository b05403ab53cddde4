//! Fetches slices before their viewers need them: a task for each place with viewers, around the pure [`Planner`].

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::{
    named_origin::NamedOrigin,
    reading::{
        fetching::{Acquired, Ticket, Wanted},
        flight::Ending,
        object::Object,
    },
    schedule::{Beginning, Course, Fetch, PlaySpan, SPACING, ViewerId},
    scheduler::{Ahead, Schedule, Watched},
    slices::SliceCache,
};

/// Planning takes at most one part in this many of a core's time. With many viewers it happens less often.
const SHARE: u32 = 20;
/// Shortest and longest time between two looks whether a viewer can play.
const LOOK: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(100));

/// A viewer of an object, as the store knows it. Dropping it cancels the fetches on its behalf that no other reader
/// waits for.
#[derive(Debug)]
pub struct Watch {
    slices: Arc<SliceCache>,
    object: Arc<Object>,
    id: ViewerId,
}

impl Watch {
    /// Adds a viewer of a remote object.
    pub(crate) fn new(slices: &Arc<SliceCache>, object: &Arc<Object>) -> Self {
        let watched = WatchedObject { object: object.clone(), slices: slices.clone() };
        let mut state = object.source().scheduler.lock();
        let id = state.planner.join(object.named().hash);
        state.watched.insert(id, Watched { object: Arc::new(watched), fetches: Vec::new() });
        drop(state);
        Self { slices: slices.clone(), object: object.clone(), id }
    }

    /// Returns the object that is watched.
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }

    /// Sets the viewer's position to the start of `course`; it has asked for its bytes up to `asked`.
    pub fn moves(&self, course: Course, asked: u64) {
        let source = self.object.source();
        let scheduler = &source.scheduler;
        let mut state = scheduler.lock();
        let goes_on = state.planner.viewer(self.id).is_some_and(|viewer| viewer.moves(course, asked, source.now()));
        if let Some(watched) = state.watched.get_mut(&self.id).filter(|_| !goes_on) {
            watched.withdraw();
        }
        if !std::mem::replace(&mut state.is_running, true) {
            tokio::spawn(run(self.object.source_of()));
        }
        drop(state);
        scheduler.changed.notify_one();
    }

    /// Waits until the viewer can play from its position on without a late byte. The estimate uses the bytes that have arrived, and
    /// the measured rates. Where several stores send the object together, the place's `stripe-start` limits the wait. Over a single
    /// link it is `longest`, and only [`Mode::Active`](crate::schedule::Mode::Active) waits. Cancel safe.
    pub async fn is_ready(&self, playing: PlaySpan, longest: Duration) {
        let began = Instant::now();
        let mut was_idle = false;
        loop {
            let (delay, longest) = self.delay(playing, longest);
            let left = longest.saturating_sub(began.elapsed());
            tracing::trace!(path = %self.object.path(), ?delay, ?left, "start");
            // Where nothing is on its way, a wait brings nothing.
            let is_idle = self.object.source().link().busy <= 0.0;
            if left.is_zero() || delay.is_some_and(|delay| delay <= 0.0) || (is_idle && was_idle) {
                return;
            }
            was_idle = is_idle;
            let wait = Duration::try_from_secs_f64(delay.unwrap_or_default()).unwrap_or_default();
            tokio::time::sleep(wait.clamp(LOOK.0, LOOK.1).min(left)).await;
        }
    }

    /// Returns the seconds after which the viewer can play without a late byte, as far as they are known, and the longest wait for
    /// that.
    fn delay(&self, playing: PlaySpan, longest: Duration) -> (Option<f64>, Duration) {
        let source = self.object.source();
        let missing = |range| self.object.missing(&self.slices, &range);
        match source.origin.striping(self.object.path()) {
            Some(striping) => {
                let course = source.scheduler.lock().planner.viewer(self.id).map(|viewer| viewer.course().clone());
                (course.map_or(Some(0.0), |course| striping.delay(&course, missing)), striping.longest)
            }
            None if longest.is_zero() => (Some(0.0), longest),
            None => {
                let beginning = source.scheduler.lock().planner.beginning(self.id, source.now());
                let delay = |beginning: Beginning| beginning.delay(playing, source.prudent_bandwidth(), missing);
                (beginning.map_or(Some(0.0), delay), longest)
            }
        }
    }

    /// Notes that the viewer has all that it asked for. A waiting viewer plays from now on.
    pub fn received(&self) {
        let source = self.object.source();
        let mut state = source.scheduler.lock();
        if state.planner.viewer(self.id).is_some_and(|viewer| viewer.receives(source.now())) {
            source.scheduler.changed.notify_one();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let scheduler = &self.object.source().scheduler;
        let mut state = scheduler.lock();
        state.planner.leave(self.id);
        let watched = state.watched.remove(&self.id);
        drop(state);
        watched.into_iter().for_each(|mut watched| watched.withdraw());
        scheduler.changed.notify_one();
    }
}

/// A watched object, and the cache that its slices enter.
struct WatchedObject {
    object: Arc<Object>,
    slices: Arc<SliceCache>,
}

impl WatchedObject {
    fn range(&self, index: u64) -> Range<u64> {
        self.slices.range(index, self.object.meta().len)
    }
}

impl Ahead for WatchedObject {
    fn is_coming(&self, index: u64) -> bool {
        let range = self.range(index);
        range.is_empty() || self.object.is_coming(&self.slices, &range)
    }

    fn fetch(&self, index: u64, due: Instant) -> Option<AbortHandle> {
        let (object, range) = (&self.object, self.range(index));
        let wanted = Wanted { index, until: index + 1, end: range.end, stop: u64::MAX };
        let Acquired::Ticket(mut ticket, joined) = object.acquire(&self.slices, wanted, due) else {
            return None;
        };
        if !joined {
            object.source().speculation.begins(object.slice_id(index).key(), range.end - range.start);
        }
        ticket.ends(Ending::Ahead);
        Some(tokio::spawn(hold(ticket, Counted(object.clone()))).abort_handle())
    }
}

/// Calls the planner of a place while there are viewers.
async fn run(source: Arc<NamedOrigin>) {
    let scheduler = &source.scheduler;
    loop {
        let changed = scheduler.changed.notified();
        let began = Instant::now();
        let wake = {
            let mut state = scheduler.lock();
            if state.planner.is_empty() {
                state.is_running = false;
                return;
            }
            look(&mut state, &source)
        };
        tokio::time::sleep(Duration::from_secs_f64(SPACING).max(began.elapsed() * SHARE)).await;
        let wait = wake.map(|at| Duration::from_secs_f64((at - source.now()).clamp(0.0, 3600.0)));
        let timer = async {
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = changed => {}
            () = timer => {}
        }
    }
}

/// Fetches the slices that are due. Returns the time of the next call.
fn look(state: &mut Schedule, source: &NamedOrigin) -> Option<f64> {
    let Schedule { planner, watched, under_way, .. } = state;
    let here =
        |viewer: ViewerId, index: u64| watched.get(&viewer).is_none_or(|watched| watched.object.is_coming(index));
    let (now, link) = (source.now(), source.link());
    let (fetches, wake) = planner.plan(now, link, *under_way, here);
    tracing::trace!(place = %source.name, ?link, ?fetches, next = ?wake.map(|at| at - now), "look ahead");
    for Fetch { viewer, index, due } in fetches {
        let Some(watched) = watched.get_mut(&viewer) else { continue };
        watched.fetches.retain(|fetch| !fetch.is_finished());
        // The task that counts it down waits for the lock of the schedule.
        if let Some(fetch) = watched.object.fetch(index, source.at_time(due)) {
            *under_way += 1;
            watched.fetches.push(fetch);
        }
    }
    wake
}

/// A slice on its way ahead of its viewer.
struct Counted(Arc<Object>);

impl Drop for Counted {
    fn drop(&mut self) {
        let scheduler = &self.0.source().scheduler;
        scheduler.lock().under_way -= 1;
        scheduler.changed.notify_one();
    }
}

async fn hold(mut ticket: Ticket, counted: Counted) {
    while !ticket.is_over() {
        ticket.changed().await;
    }
    drop(counted);
}
