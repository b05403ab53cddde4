//! Plays a schedule: puts on the air what is due, and the filler where that is missing.

use super::{
    ScheduleState,
    choice::{self, OnAir, Take},
    clock::SteadyClock,
    part::Part,
    stage::{Stage, Staging},
    state::OnAirReport,
    timetable::{Slot, Timetable},
};
use crate::{
    events::{Events, Kind},
    failover,
    live::Sources,
};
use arc_swap::ArcSwap;
use millpond_stream::{AttachmentEnd, Program};
use serde_json::json;
use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::{sync::Notify, time::sleep};

/// Longest time between two looks at what is due.
const LOOK: Duration = Duration::from_millis(100);
/// Shortest time between two looks.
const SOON: Duration = Duration::from_millis(1);
/// Time before it is due at which a source is opened.
const LEAD: Duration = Duration::from_secs(10);
/// Time for which the stream is left alone that another publisher took.
const LEFT_ALONE: Duration = Duration::from_secs(2);

/// The task of a schedule.
pub(super) struct Playout {
    state: Arc<ScheduleState>,
    sources: Arc<ArcSwap<Sources>>,
    events: Arc<Events>,
    /// Wakes the task when a source is there.
    wake: Arc<Notify>,
    began: Instant,
    stage: Stage,
    /// The part that is due, and since when it is late.
    due: Option<(Part, Instant)>,
    /// Moment until which nothing is put on the air.
    left_until: Option<Instant>,
    /// The last reason that was logged why something can't be put on the air.
    told: String,
    /// The part that was told to be on the air, the part that was due then, and why they differed.
    shown: Option<(Part, Part, Option<String>)>,
}

impl Playout {
    pub(super) fn new(state: Arc<ScheduleState>, sources: Arc<ArcSwap<Sources>>, events: Arc<Events>) -> Self {
        let (wake, began) = (Arc::default(), Instant::now());
        let (stage, due, left_until, told, shown) = (Stage::default(), None, None, String::new(), None);
        Self { state, sources, events, wake, began, stage, due, left_until, told, shown }
    }

    /// Plays without an end.
    pub(super) async fn run(mut self) {
        let mut timetables = self.state.timetable();
        let mut clock = SteadyClock::default();
        let mut wait = Duration::ZERO;
        loop {
            tokio::select! {
                () = sleep(wait) => {}
                () = self.wake.notified() => {}
                changed = timetables.changed() => if changed.is_err() { return },
            }
            let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let (now, has_jumped) = clock.tick(wall, self.began.elapsed());
            let timetable = timetables.borrow_and_update().clone();
            if timetable.filler.is_empty() {
                // The file was not read yet.
                wait = LOOK;
                continue;
            }
            if has_jumped {
                tracing::warn!(
                    stream = self.state.stream(),
                    "the clock has jumped: a schedule goes on at its new time"
                );
                self.stage.forget();
            }
            let until = self.step(&timetable, now).await;
            wait = until.map_or(LOOK, |until| until.saturating_sub(now).clamp(SOON, LOOK));
        }
    }

    /// Prepares what is due now and soon, and puts it on the air. Returns when something else is due.
    async fn step(&mut self, timetable: &Timetable, now: Duration) -> Option<Duration> {
        let moment = Instant::now();
        self.end(now, moment);
        let slot = self.state.plan(timetable, now);
        let due = Part::of(timetable, &slot);
        let next = slot.until.filter(|until| *until <= now + LEAD).map(|until| self.state.plan(timetable, until));
        let next = next.map(|next| (Part::of(timetable, &next), next.at));
        if self.due.as_ref().is_none_or(|(known, _)| *known != due) {
            self.due = Some((due.clone(), moment));
        }
        let sources = self.sources.load_full();
        let staging = Staging { state: &self.state, sources: (&sources, &self.sources), wake: &self.wake, now, moment };
        self.stage.prepare(&due, slot.at, &staging);
        if let Some((next, at)) = &next {
            self.stage.prepare(next, *at, &staging);
        }
        let on_air = self.stage.on_air(&due);
        let there = self.stage.program(&due, moment);
        let late = self.due.as_ref().map_or(Duration::ZERO, |(_, since)| moment.saturating_duration_since(*since));
        let filler = Part::filler(timetable);
        let needs_filler = there.is_none() && choice::is_late(on_air, late);
        if needs_filler {
            self.stage.prepare(&filler, now, &staging);
        }
        if on_air == OnAir::Due && there.is_some() {
            self.due = Some((due.clone(), moment));
        }
        self.stage.keep(|part| {
            *part == due || next.as_ref().is_some_and(|(next, _)| next == part) || (needs_filler && *part == filler)
        });
        let is_there = there.is_some();
        if self.left_until.is_none_or(|until| moment >= until) {
            match (choice::choose(on_air, is_there, late), there) {
                (Some(Take::Due), Some(program)) => self.put(&sources, due.clone(), program).await,
                (Some(Take::Filler), _) => {
                    if let Some(program) = self.stage.program(&filler, moment) {
                        self.put(&sources, filler.clone(), program).await;
                    }
                }
                _ => {}
            }
        }
        match self.stage.on_air(&due) {
            OnAir::Due if is_there => {
                self.tell(due.clone(), due, None, (timetable, &slot));
                self.state.explain(None);
            }
            OnAir::Filler if choice::is_late(OnAir::Filler, late) => {
                let why = self.stage.fault(&due);
                self.tell(filler, due, Some(why), (timetable, &slot));
            }
            // Neither what is due nor the filler can play.
            on_air @ (OnAir::Nothing | OnAir::Other | OnAir::Due) if choice::is_late(on_air, late) => {
                let why = format!("{}; filler: {}", self.stage.fault(&due), self.stage.fault(&filler));
                self.state.explain(Some(&why));
            }
            OnAir::Filler | OnAir::Nothing | OnAir::Other | OnAir::Due => {}
        }
        slot.until
    }

    /// Notes that what is on the air has ended.
    fn end(&mut self, now: Duration, moment: Instant) {
        match self.stage.end(moment) {
            Some((_, AttachmentEnd::Output(why))) => {
                tracing::warn!(stream = self.state.stream(), why, "a schedule is interrupted");
                self.left_until = Some(moment + LEFT_ALONE);
            }
            // The end of an asset of unknown duration is known now.
            Some((Part::Entry { at, content, from, .. }, AttachmentEnd::Done)) => {
                self.state.learn_end(content.path(), from, now.saturating_sub(at));
            }
            Some((part, AttachmentEnd::Failed(why))) => {
                tracing::warn!(
                    stream = self.state.stream(),
                    plays = part.path(),
                    why,
                    "an entry of a schedule breaks off"
                );
            }
            Some((Part::Filler(_), AttachmentEnd::Done)) | None => {}
        }
    }

    /// Puts a part on the air, in the place of the one before.
    async fn put(&mut self, sources: &Sources, part: Part, program: Program) {
        let stream = self.state.stream();
        match failover::publish(sources, &program, stream).await {
            Ok(attached) => {
                self.told.clear();
                self.stage.plays(part, program, (attached, Instant::now()));
            }
            Err(why) => {
                if self.told != why {
                    tracing::warn!(stream, plays = part.path(), why, "a schedule can't be put on the air");
                    self.told = why;
                }
                self.left_until = Some(Instant::now() + LEFT_ALONE);
            }
        }
    }

    /// Tells what is on the air, unless that is known. `why` tells why it is not what is due.
    fn tell(&mut self, part: Part, due: Part, why: Option<String>, (timetable, slot): (&Timetable, &Slot)) {
        if self.shown.as_ref().is_some_and(|shown| (&shown.0, &shown.1, &shown.2) == (&part, &due, &why)) {
            return;
        }
        let (stream, plays, is_filler) = (self.state.stream(), part.path().to_owned(), matches!(part, Part::Filler(_)));
        let is_change = self.shown.as_ref().is_none_or(|(known, was_due, _)| (known, was_due) != (&part, &due));
        if is_change {
            let title = timetable.entry(slot).map(|entry| self.state.title(entry));
            // The filler of before all entries has no beginning.
            let (at, until) = (Some(slot.at).filter(|at| !at.is_zero()).map(time), slot.until.map(time));
            match &why {
                None if is_filler => tracing::info!(stream, plays, until, "a schedule plays its filler"),
                None => tracing::info!(stream, plays, title, at, until, "a schedule plays an entry"),
                Some(why) => {
                    tracing::warn!(stream, plays, title, at, why, "a schedule plays its filler instead of an entry");
                }
            }
            let data =
                json!({ "plays": plays, "filler": is_filler, "title": title, "at": at, "until": until, "why": why });
            self.events.emit(Kind::Schedule, stream, data);
        }
        let on_air = OnAirReport { plays: Some(plays), is_filler, since: None, why: why.clone() };
        self.state.tell(on_air, is_change);
        self.shown = Some((part, due, why));
    }
}

fn time(wall: Duration) -> String {
    let mut text = String::new();
    millpond_utc::push(&mut text, wall);
    text
}
