//! The sources of a schedule: what is on the air, and what is opened to follow.

use super::{
    ScheduleState,
    choice::OnAir,
    part::Part,
    probe::{self, is_stream},
    timetable::Content,
};
use crate::{
    failover::{self, Input},
    live::Sources,
};
use arc_swap::ArcSwap;
use millpond_stream::{Attached, AttachmentEnd, Program, Pulse, TimedStart};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::{sync::Notify, task::AbortHandle};

/// Time after which a source is opened again that could not be.
const AGAIN: Duration = Duration::from_secs(10);
/// Time for which a stream that stopped must be alive before it plays again.
const BACK: Duration = Duration::from_secs(2);
/// Time without pictures after which an asset on the air is given up. Some assets have few pictures.
const STILL: Duration = Duration::from_secs(5);
/// Why a source that is open does not play.
const NO_PICTURES: &str = "its pictures do not arrive";

/// The source that the stream plays, and the sources that are open.
#[derive(Default)]
pub(super) struct Stage {
    prepared: Vec<Prepared>,
    playing: Option<Playing>,
    has_played: bool,
}

/// A source that plays, or will play soon.
struct Prepared {
    part: Part,
    /// Number in the name of its stream.
    number: usize,
    source: Source,
    /// Whether it was on the air.
    was_on_air: bool,
}

enum Source {
    /// An asset, which is opened by a task.
    Asset(Opening),
    /// A live stream or channel.
    Stream(Input),
    /// It can't be played, and is tried again.
    Failed { again: Instant, why: String },
}

/// An asset that is being opened, until its first frame is due. It is given up when this is dropped.
struct Opening {
    opened: Arc<Mutex<Option<Result<OpenAsset, String>>>>,
    task: AbortHandle,
    /// Arrivals of its pictures.
    pulse: Arc<Pulse>,
    /// Whether it plays only once pictures have arrived: it failed before.
    must_prove: bool,
}

/// An asset that is open.
struct OpenAsset {
    program: Program,
    /// Tells the pulse.
    _watching: Attached,
}

/// The source that the stream plays.
struct Playing {
    part: Part,
    attached: Attached,
    since: Instant,
    /// Whether another source of the part must follow: the clock has jumped.
    is_stale: bool,
    /// Keeps the source open.
    _program: Program,
}

/// The means to open sources, and the time.
pub(super) struct Staging<'a> {
    pub(super) state: &'a Arc<ScheduleState>,
    /// Those of now, and those of each moment.
    pub(super) sources: (&'a Arc<Sources>, &'a Arc<ArcSwap<Sources>>),
    pub(super) wake: &'a Arc<Notify>,
    /// Time since the Unix epoch, and its moment.
    pub(super) now: Duration,
    pub(super) moment: Instant,
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Opening {
    /// Why it can't be opened; `None` where it is open, or not yet.
    fn fault(&self) -> Option<String> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.as_ref().err().cloned()
    }

    /// Its frames; `None` where it is not open, or has to prove itself.
    fn program(&self, moment: Instant) -> Option<Program> {
        if self.must_prove && self.pulse.alive(moment, STILL).is_none() {
            return None;
        }
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.as_ref()?.as_ref().ok().map(|open| open.program.clone())
    }

    /// Whether it is on the air, and has no pictures any more.
    fn is_still(&self, playing: &Playing, moment: Instant) -> bool {
        moment.saturating_duration_since(playing.since) >= STILL && self.pulse.alive(moment, STILL).is_none()
    }
}

impl Stage {
    /// Opens the source of a part that begins at a time since the Unix epoch, unless it is open.
    pub(super) fn prepare(&mut self, part: &Part, at: Duration, staging: &Staging<'_>) {
        self.settle(staging.moment);
        let mut must_prove = false;
        if let Some(place) = self.prepared.iter().position(|prepared| prepared.part == *part) {
            let known = &self.prepared[place];
            let is_over = match &known.source {
                Source::Failed { again, .. } => staging.moment >= *again,
                // The filler of another gap is somewhere in its middle.
                Source::Asset(_) => {
                    known.was_on_air && !self.playing.as_ref().is_some_and(|playing| playing.part == *part)
                }
                Source::Stream(_) => false,
            };
            if !is_over {
                return;
            }
            must_prove = matches!(known.source, Source::Failed { .. });
            self.prepared.swap_remove(place);
        }
        let number = (1..).find(|number| self.prepared.iter().all(|prepared| prepared.number != *number)).unwrap_or(1);
        let source = staging.open(part, at, (number, must_prove));
        self.prepared.push(Prepared { part: part.clone(), number, source, was_on_air: false });
    }

    /// Notes which openings have failed, and whether the asset on the air stands still.
    fn settle(&mut self, moment: Instant) {
        let playing = self.playing.as_ref().filter(|playing| !playing.is_stale);
        for prepared in &mut self.prepared {
            let Source::Asset(opening) = &prepared.source else { continue };
            let is_still =
                playing.is_some_and(|playing| playing.part == prepared.part && opening.is_still(playing, moment));
            let failed = opening.fault().or_else(|| is_still.then(|| NO_PICTURES.to_owned()));
            if let Some(why) = failed {
                prepared.source = Source::Failed { again: moment + AGAIN, why };
            }
        }
    }

    fn find(&self, part: &Part) -> Option<&Prepared> {
        self.prepared.iter().find(|prepared| prepared.part == *part)
    }

    /// The frames of a part; `None` where they have not begun, or have stopped.
    pub(super) fn program(&self, part: &Part, moment: Instant) -> Option<Program> {
        let prepared = self.find(part)?;
        match &prepared.source {
            Source::Asset(opening) => opening.program(moment),
            Source::Stream(input) => {
                let is_back = prepared.was_on_air && self.on_air(part) != OnAir::Due;
                let least = if is_back { BACK } else { Duration::ZERO };
                input.alive(moment).filter(|age| *age >= least)?;
                input.program()
            }
            Source::Failed { .. } => None,
        }
    }

    /// Why a part does not play.
    pub(super) fn fault(&self, part: &Part) -> String {
        let why = match self.find(part).map(|prepared| &prepared.source) {
            Some(Source::Failed { why, .. }) => why,
            Some(Source::Stream(_)) => NO_PICTURES,
            Some(Source::Asset(_)) | None => "it is not open yet",
        };
        why.to_owned()
    }

    /// Compares the source that the stream plays with the part that is due.
    pub(super) fn on_air(&self, due: &Part) -> OnAir {
        match &self.playing {
            None if self.has_played => OnAir::Other,
            None => OnAir::Nothing,
            Some(playing) if playing.is_stale => OnAir::Other,
            Some(playing) if playing.part == *due => OnAir::Due,
            Some(Playing { part: Part::Filler(_), .. }) => OnAir::Filler,
            Some(_) => OnAir::Other,
        }
    }

    /// Notes that a part is on the air.
    pub(super) fn plays(&mut self, part: Part, program: Program, (attached, since): (Attached, Instant)) {
        if let Some(prepared) = self.prepared.iter_mut().find(|prepared| prepared.part == part) {
            prepared.was_on_air = true;
        }
        self.has_played = true;
        // The source before is left once its successor publishes.
        self.playing = Some(Playing { part, attached, since, is_stale: false, _program: program });
    }

    /// Returns the part that was on the air, and how it ended, where it has ended. An asset that broke off is tried again later; the
    /// position of all others is found again where the stream was taken away.
    pub(super) fn end(&mut self, moment: Instant) -> Option<(Part, AttachmentEnd)> {
        let end = self.playing.as_ref()?.attached.end().borrow().clone()?;
        let part = self.playing.take()?.part;
        if matches!(end, AttachmentEnd::Output(_)) {
            self.forget();
        } else if let Some(prepared) = self.prepared.iter_mut().find(|prepared| prepared.part == part)
            && let Source::Asset(_) = prepared.source
        {
            prepared.source = Source::Failed { again: moment + AGAIN, why: "it broke off".to_owned() };
        }
        Some((part, end))
    }

    /// Forgets all sources: they are opened again at the position of then. The source on the air stays until another one follows.
    pub(super) fn forget(&mut self) {
        self.prepared.clear();
        if let Some(playing) = &mut self.playing {
            playing.is_stale = true;
        }
    }

    /// Closes the sources that are neither wanted nor on the air.
    pub(super) fn keep(&mut self, is_wanted: impl Fn(&Part) -> bool) {
        let playing = self.playing.as_ref().map(|playing| &playing.part);
        self.prepared.retain(|prepared| is_wanted(&prepared.part) || Some(&prepared.part) == playing);
    }
}

impl Staging<'_> {
    /// Opens the source of a part that begins at a time. It gets a number in its name.
    fn open(&self, part: &Part, at: Duration, (number, must_prove): (usize, bool)) -> Source {
        let path = part.path();
        let is_live = match part {
            Part::Entry { content, .. } => matches!(content, Content::Stream(_)),
            Part::Filler(path) => is_stream(self.sources.0, path),
        };
        if is_live {
            return Source::Stream(Input::watch(path.to_owned(), self.sources.1.clone()));
        }
        let begins = match at.checked_sub(self.now) {
            Some(ahead) => Some(self.moment + ahead),
            None => self.moment.checked_sub(self.now.saturating_sub(at)),
        };
        let begins = begins.unwrap_or(self.moment);
        let (from, start) = match part {
            Part::Entry { from, repeats, .. } => (*from, Some(TimedStart { begins, from: *from, repeats: *repeats })),
            // One that is needed now begins at once.
            Part::Filler(_) => {
                let start = TimedStart { begins, from: Duration::ZERO, repeats: true };
                (Duration::ZERO, Some(start).filter(|_| at > self.now))
            }
        };
        Source::Asset(self.open_asset((path, from), (start, number), must_prove))
    }

    fn open_asset(
        &self,
        (path, from): (&str, Duration),
        (start, number): (Option<TimedStart>, usize),
        must_prove: bool,
    ) -> Opening {
        let (opened, pulse) = (Arc::<Mutex<_>>::default(), Arc::<Pulse>::default());
        let kept = pulse.clone();
        let (state, sources, wake, result) =
            (self.state.clone(), self.sources.0.clone(), self.wake.clone(), opened.clone());
        // No path of a place begins so.
        let (name, path) = (format!("#{}/{number}", state.stream()), path.to_owned());
        let task = tokio::spawn(async move {
            let found = async {
                probe::examine(&state, &sources, &path, from).await?;
                let program = failover::open(&sources, sources.timed(name, &path, start)).await?;
                let watching = sources.manager().watch(&program, &pulse).await.map_err(|error| error.to_string())?;
                Ok(OpenAsset { program, _watching: watching })
            };
            let found = found.await;
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
            wake.notify_one();
        });
        Opening { opened, task: task.abort_handle(), pulse: kept, must_prove }
    }
}
