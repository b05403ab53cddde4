//! The frames of several assets on one timeline.

use crate::{
    Epoch, Feed, Format, Frame, Run, StoredMedia,
    splice::{Passed, Plan, Unfit},
    ticks::{ticks, time},
};
use millpond_media::units::Timescale;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Stream time at which the first asset begins. Decode times are before presentation times.
const START: Duration = Duration::from_secs(10);
/// Time from the last frame of an asset that breaks off to the next one's first, and shortest turn.
const PAUSE: Duration = Duration::from_millis(40);
/// Shortest time from the last frame of an asset to the next one's first.
const STEP: Duration = Duration::from_millis(1);

/// Joins assets: gives their frames the tracks, clocks and numbers of the channel. The first asset settles the formats.
#[derive(Debug)]
pub(crate) struct Joint {
    formats: Arc<[Option<Format>]>,
    lead: u16,
    /// Version of the first asset, and its tracks.
    first: (u64, Vec<Option<Format>>),
    passed: Vec<Passed>,
    /// Stream time at which the next asset begins.
    begin: Duration,
}

/// One asset as it plays once.
#[derive(Debug)]
pub(crate) struct Lap {
    plan: Plan,
    /// Formats of the channel while it plays.
    formats: Arc<[Option<Format>]>,
    number: u32,
    begin: Duration,
    /// A lock, because blocks are moved through a shared reference. Only the loader takes it.
    course: Mutex<Course>,
}

#[derive(Debug)]
struct Course {
    passed: Vec<Passed>,
    /// Time by which frames are due earlier than in the asset: some are decoded after their presentation times there. `None`
    /// before the first block.
    reorder: Option<Duration>,
    /// Stream time of the last picture or sound.
    reached: Duration,
}

impl Joint {
    /// Begins with an asset: its rendition of a name, or the best one. `None` where no track can be sent.
    pub(crate) fn new(media: &StoredMedia, rendition: Option<&str>) -> Option<Self> {
        let feed: &dyn Feed = media;
        let mut chosen: Vec<usize> = feed.chosen(rendition, None).into_iter().map(|(track, _)| track).collect();
        chosen.sort_unstable();
        let of = |(track, format): (usize, &Option<Format>)| format.clone().filter(|_| chosen.contains(&track));
        let own: Vec<_> = media.formats().iter().enumerate().map(of).collect();
        let formats: Arc<[_]> = own.iter().filter(|format| format.is_some()).cloned().collect();
        let lead = Epoch::lead_of(&formats)?;
        let passed = vec![Passed::default(); formats.len()];
        Some(Self { formats, lead, first: (media.id(), own), passed, begin: START })
    }

    /// Begins a turn of an asset. `number` is [`Frame::epoch`] of its frames.
    ///
    /// # Errors
    /// Receivers of the channel can't play it.
    pub(crate) fn lap(&self, media: &StoredMedia, number: u32) -> Result<Lap, Unfit> {
        let (id, own) = &self.first;
        let formats = if *id == media.id() { own } else { media.formats() };
        let plan = Plan::new(&self.formats, formats, self.lead)?;
        let course = Course { passed: self.passed.clone(), reorder: None, reached: self.begin };
        let formats = plan.formats(&self.formats, formats);
        Ok(Lap { plan, formats, number, begin: self.begin, course: Mutex::new(course) })
    }

    /// Ends a turn. The next asset begins at the end of `duration`, where that is known, else after the last frame.
    pub(crate) fn end(&mut self, lap: Lap, duration: Option<f64>) {
        let Course { passed, reached, .. } = lap.course.into_inner().unwrap_or_else(PoisonError::into_inner);
        let whole = duration.and_then(|duration| Duration::try_from_secs_f64(duration).ok());
        self.passed = passed;
        let end = whole.map_or(reached + PAUSE, |duration| lap.begin.saturating_add(duration));
        self.begin = end.max(reached + STEP).max(lap.begin + PAUSE);
    }
}

impl Lap {
    /// The tracks of the asset that play, in rising order.
    pub(crate) fn tracks(&self) -> Arc<[u16]> {
        self.plan.tracks()
    }

    /// Formats of the channel while it plays.
    pub(crate) fn formats(&self) -> &Arc<[Option<Format>]> {
        &self.formats
    }

    /// Stream time of its beginning.
    pub(crate) fn begin(&self) -> Duration {
        self.begin
    }

    /// Returns the frames of a block as they are in the channel.
    pub(crate) fn shift(&self, run: &Run) -> Run {
        let mut course = self.course();
        let reorder = course.reorder.unwrap_or_else(|| self.reorder(run));
        course.reorder = Some(reorder);
        let mut shifted = Vec::with_capacity(run.len());
        for frame in run.iter() {
            for placed in self.plan.place(frame.track, frame.pts, self.begin) {
                let scale = self.timescale(placed.track);
                let due = (self.begin + frame.due).saturating_sub(reorder);
                let (track, pts, epoch) = (placed.track, placed.pts, self.number);
                let moved = Frame { track, pts, due, epoch, ..frame.clone() };
                let Some(passed) = course.passed.get_mut(usize::from(track)) else { continue };
                let Some(moved) = passed.take(moved, placed.is_video, scale) else { continue };
                let shown = scale.and_then(|scale| time(moved.pts, scale)).unwrap_or(moved.due);
                course.reached = course.reached.max(shown).max(moved.due);
                shifted.push(moved);
            }
        }
        shifted.into()
    }

    fn course(&self) -> MutexGuard<'_, Course> {
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn timescale(&self, track: u16) -> Option<Timescale> {
        self.formats.get(usize::from(track))?.as_ref().map(|format| format.track.timescale)
    }

    /// The longest time by which a frame of the first block is due after its presentation.
    fn reorder(&self, run: &Run) -> Duration {
        let late = |frame: &Frame| {
            let placed = self.plan.place(frame.track, frame.pts, self.begin).find(|placed| placed.is_video)?;
            let scale = self.timescale(placed.track)?;
            let late = ticks(self.begin + frame.due, scale).saturating_sub(placed.pts).max(0);
            time(late, scale)
        };
        run.iter().filter_map(late).max().unwrap_or_default()
    }
}
