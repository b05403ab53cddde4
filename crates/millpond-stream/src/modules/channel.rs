//! Gives the frames of a channel to all viewers when they are due.

use crate::{
    Counters, Epoch, EpochReason, Format, Frame, Run,
    graph::{Closed, Inputs, Module, ModuleError, Output},
    kind::ModuleKind,
    live::Schedule,
    report::Reporter,
};
use futures_util::future::BoxFuture;
use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::{Instant, sleep_until};

pub(super) const KIND: ModuleKind = ModuleKind {
    name: "channel",
    about: "gives frames to all viewers of a channel when they are due",
    inputs: 1,
    outputs: 1,
};

/// A frame with a longer delay moves all that follow: nothing is given faster than it plays for longer than that.
const LATE: Duration = Duration::from_secs(1);
/// Frames that are due this soon are given together.
const TOGETHER: Duration = Duration::from_millis(2);

/// Paces the frames of a channel's loader and begins its epochs. Its output is the fork of the stream.
pub(crate) struct Channel {
    schedule: Arc<Schedule>,
    reporter: Reporter,
    counters: Arc<Counters>,
    clock: Clock,
    /// Number of the turn in the schedule that plays; `None` before the first frame.
    turn: Option<u32>,
    /// The epoch of the frames; `None` before the first one.
    epoch: Option<Epoch>,
    /// Whether an epoch begins with the next key frame, because frames were late.
    is_moved: bool,
}

/// Maps stream times to moments, and those to wall time, which never steps.
struct Clock {
    start: Instant,
    wall: Duration,
    /// `None` before the first frame.
    anchor: Option<Anchor>,
}

/// A stream time and its moment.
#[derive(Clone, Copy)]
struct Anchor {
    stream: Duration,
    moment: Instant,
}

impl Anchor {
    fn moment_of(self, due: Duration) -> Instant {
        self.moment + due.saturating_sub(self.stream)
    }
}

impl Clock {
    fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { start: Instant::now(), wall, anchor: None }
    }

    /// Returns the moment at which a frame is due, and whether all that follow are moved because it is late. The first frame is due now,
    /// or when the channel `opens`.
    fn moment(&mut self, due: Duration, opens: impl FnOnce() -> Option<std::time::Instant>) -> (Instant, bool) {
        let mut now = Instant::now();
        if self.anchor.is_none() {
            now = opens().map_or(now, |opens| now.max(opens.into()));
        }
        let is_late = self.anchor.is_some_and(|anchor| now > anchor.moment_of(due) + LATE);
        let anchor = self.anchor.filter(|_| !is_late).unwrap_or(Anchor { stream: due, moment: now });
        self.anchor = Some(anchor);
        (anchor.moment_of(due), is_late)
    }

    /// Wall time of a stream time, since the Unix epoch.
    fn wall_of(&self, time: Duration) -> Duration {
        let anchor = self.anchor.unwrap_or(Anchor { stream: time, moment: self.start });
        (self.wall + anchor.moment.saturating_duration_since(self.start) + time).saturating_sub(anchor.stream)
    }
}

impl Channel {
    pub(crate) fn new(schedule: Arc<Schedule>, reporter: Reporter, counters: Arc<Counters>) -> Self {
        Self { schedule, reporter, counters, clock: Clock::start(), turn: None, epoch: None, is_moved: false }
    }

    /// Gives the frames of a block, each when it is due.
    async fn pass(&mut self, run: &Run, output: &Output) -> Result<(), Closed> {
        let mut rest = &run[..];
        while let Some(first) = rest.first() {
            let (moment, is_late) = self.clock.moment(first.due, || self.schedule.opens());
            self.is_moved |= is_late;
            sleep_until(moment).await;
            let soon = first.due + moment.elapsed().min(LATE) + TOGETHER;
            let given = rest.iter().take_while(|frame| frame.due <= soon).count().max(1);
            self.schedule.reach(first.due, moment.into_std());
            self.give(&rest[..given], output).await?;
            rest = &rest[given..];
        }
        Ok(())
    }

    async fn give(&mut self, frames: &[Frame], output: &Output) -> Result<(), Closed> {
        let mut rest = frames;
        while let Some(first) = rest.first() {
            self.enter(first);
            let Some(epoch) = &self.epoch else { return Ok(()) };
            let (number, lead) = (epoch.number, epoch.lead());
            let begins = |frame: &Frame| {
                Some(frame.epoch) != self.turn || (self.is_moved && frame.is_sync && Some(frame.track) == lead)
            };
            let count = 1 + rest[1..].iter().take_while(|frame| !begins(frame)).count();
            let of_epoch = |frame: &Frame| {
                let format = epoch.formats.get(usize::from(frame.track)).and_then(Option::as_ref);
                let importance = format.map_or(frame.importance, |format| format.importance(&frame.data));
                Frame { epoch: number, importance, ..frame.clone() }
            };
            let run: Run = rest[..count].iter().map(of_epoch).collect();
            let lost = output.send(run).await?;
            self.counters.dropped_frames.fetch_add(lost as u64, Ordering::Relaxed);
            rest = &rest[count..];
        }
        Ok(())
    }

    /// Begins an epoch with a frame, where that is the first one of its turn, or the first key frame after late ones.
    fn enter(&mut self, frame: &Frame) {
        if self.turn != Some(frame.epoch) {
            self.turn = Some(frame.epoch);
            self.is_moved = false;
            if let Some(turn) = self.schedule.take(frame.epoch) {
                let reason = if self.epoch.is_none() { EpochReason::Start } else { EpochReason::Asset };
                self.begin(turn.from, turn.formats, reason);
            }
        } else if let Some(epoch) = self.epoch.as_ref().filter(|_| self.is_moved)
            && frame.is_sync
            && epoch.lead() == Some(frame.track)
        {
            let (from, formats) = (epoch.shown(frame).unwrap_or(frame.due), epoch.formats.clone());
            self.is_moved = false;
            self.begin(from, formats, EpochReason::Jump);
        }
    }

    fn begin(&mut self, from: Duration, formats: Arc<[Option<Format>]>, reason: EpochReason) {
        let number = self.epoch.as_ref().map_or(0, |epoch| epoch.number.wrapping_add(1));
        let wall = self.clock.wall_of(from);
        let epoch = Epoch { number, from, wall, arrival: wall, formats, reason };
        self.epoch = Some(epoch.clone());
        self.reporter.begin(epoch);
    }
}

impl Module for Channel {
    fn kind(&self) -> &'static str {
        KIND.name
    }

    fn run(mut self: Box<Self>, mut inputs: Inputs, output: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        Box::pin(async move {
            let Some(mut input) = inputs.pop() else { return Ok(()) };
            while let Ok(run) = input.next().await {
                if self.pass(&run, &output).await.is_err() {
                    break;
                }
            }
            Ok(())
        })
    }
}
