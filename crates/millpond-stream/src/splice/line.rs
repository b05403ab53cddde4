//! The frames of one stream, from its source and from clips, in the order in which they pass.

use super::{
    insertion::{Insertion, InsertionEnd, Turn},
    passed::Passed,
    plan::Plan,
};
use crate::{
    Epoch, EpochReason, Format, Frame, Run,
    ticks::{ticks, time},
};
use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

/// Most epochs of the source that are remembered while a clip plays.
const EPOCHS: usize = 16;
/// Bounds of the source's frames that wait for the last frames of a clip.
const HELD_FRAMES: usize = 4096;
const HELD_BYTES: usize = 16 << 20;

/// Decides whether the source's frames pass, or a clip's.
///
/// A clip takes the place of the source's frames from a key frame on. The source continues with the first key frame that is
/// presented after the clip. Each change begins an epoch. Numbers and times of frames go on over all changes.
#[derive(Debug, Default)]
pub(super) struct Line {
    phase: Phase,
    /// Epochs of the source by its own numbers, the newest one last.
    begun: VecDeque<Epoch>,
    /// Number of the last epoch that was announced.
    last: Option<u32>,
    /// Added to the source's numbers of epochs. It wraps.
    shift: u32,
    /// The source's epoch with which it went on after the last clip. Frames of earlier ones come too late.
    first: u32,
    tracks: Vec<Passed>,
    /// Whether numbers of frames differ from the source's.
    is_changed: bool,
    /// Clips that wait, in the order in which they were asked for.
    queue: Vec<Arc<Insertion>>,
    is_lost: bool,
}

/// Whose frames pass.
#[derive(Debug, Default)]
enum Phase {
    /// The source's.
    #[default]
    Source,
    /// The source's, where they are no pictures and are presented before the clip.
    Leaving { clip: Arc<Insertion>, cut: Cut, epoch: u32, reached: Vec<u16> },
    /// Those of a clip. `held` has the source's frames, from the key frame with which the source continues.
    Clip { clip: Arc<Insertion>, cut: Cut, epoch: u32, held: Vec<Frame>, bytes: usize },
    /// None: the source continues with its next key frame.
    Returning,
}

/// Where a clip begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Stream time of its beginning: the presentation time of the key frame whose place it takes.
    pub(crate) from: Duration,
    /// Stream time of its end.
    pub(super) to: Duration,
    /// Due time of that key frame.
    pub(crate) due: Duration,
    /// Arrival of that key frame.
    pub(crate) arrived: Instant,
}

/// What passes.
#[derive(Debug)]
pub(super) enum Passage {
    /// An epoch begins.
    Epoch(Epoch),
    /// Frames.
    Run(Run),
    /// No viewer can begin until the next epoch.
    Pause,
}

impl Line {
    /// The formats of the source.
    pub(super) fn formats(&self) -> Option<(Arc<[Option<Format>]>, u16)> {
        let epoch = self.begun.back()?;
        Some((epoch.formats.clone(), epoch.lead()?))
    }

    /// Adds a clip. Returns `false` where `most` wait already.
    pub(super) fn add(&mut self, clip: Arc<Insertion>, most: usize) -> bool {
        let has_room = self.queue.len() < most;
        if has_room {
            self.queue.push(clip);
        }
        has_room
    }

    /// Whether frames of the source pass as they are, and nothing waits.
    pub(super) fn is_plain(&self) -> bool {
        !self.is_changed && self.queue.is_empty() && matches!(self.phase, Phase::Source)
    }

    /// Notes that an epoch of the source begins.
    pub(super) fn begin(&mut self, epoch: Epoch, out: &mut Vec<Passage>) {
        self.is_lost = false;
        if self.begun.len() == EPOCHS {
            self.begun.pop_front();
        }
        self.begun.push_back(epoch.clone());
        if matches!(self.phase, Phase::Source) {
            self.announce(Epoch { number: epoch.number.wrapping_add(self.shift), ..epoch }, out);
        }
    }

    /// Whether an epoch of the source is remembered.
    pub(super) fn knows(&self, number: u32) -> bool {
        self.begun.iter().any(|epoch| epoch.number == number)
    }

    /// Ends all clips.
    pub(super) fn close(&mut self) {
        let playing = match std::mem::replace(&mut self.phase, Phase::Returning) {
            Phase::Leaving { clip, .. } | Phase::Clip { clip, .. } => Some(clip),
            Phase::Source | Phase::Returning => None,
        };
        self.queue.drain(..).chain(playing).for_each(|clip| clip.end(InsertionEnd::StreamEnded));
    }

    /// Notes that the source was lost. A clip plays on.
    pub(super) fn lose(&mut self, out: &mut Vec<Passage>) {
        self.is_lost = true;
        if !matches!(self.phase, Phase::Clip { .. }) {
            out.push(Passage::Pause);
        }
    }

    fn announce(&mut self, epoch: Epoch, out: &mut Vec<Passage>) {
        self.last = Some(epoch.number);
        out.push(Passage::Epoch(epoch));
    }

    /// Takes a run of the source that passes as it is.
    pub(super) fn note(&mut self, run: &Run) {
        for frame in run.iter() {
            self.passed(frame.track).note(frame);
        }
    }

    fn passed(&mut self, track: u16) -> &mut Passed {
        let place = usize::from(track);
        if self.tracks.len() <= place {
            self.tracks.resize(place + 1, Passed::default());
        }
        &mut self.tracks[place]
    }

    /// Takes a run of the source that arrived at `now`.
    pub(super) fn source(&mut self, run: &Run, now: Instant, out: &mut Vec<Passage>) {
        let mut passing = Vec::new();
        for frame in run.iter() {
            self.take(frame, now, &mut passing, out);
        }
        flush(&mut passing, out);
    }

    fn take(&mut self, frame: &Frame, now: Instant, passing: &mut Vec<Frame>, out: &mut Vec<Passage>) {
        match &self.phase {
            Phase::Source => match self.cut_at(frame, now) {
                Some((clip, cut)) => self.leave(clip, cut, frame.epoch),
                None => passing.extend(self.of_source(frame)),
            },
            Phase::Leaving { cut, epoch, .. } => {
                let is_early = *epoch == frame.epoch && self.is_early_sound(frame, cut.from);
                if is_early {
                    passing.extend(self.of_source(frame));
                } else {
                    self.reach(frame.track);
                }
            }
            Phase::Clip { cut, held, .. } => {
                let ends = !held.is_empty() || self.key_time(frame).is_some_and(|time| time >= cut.to);
                if let Some(late) = self.replace(frame, ends) {
                    flush(passing, out);
                    self.finish(&late, InsertionEnd::Late, out);
                }
            }
            Phase::Returning => self.resume(frame, now, passing, out),
        }
    }

    /// Takes a frame of the source in whose place a clip's are. It is held where it follows the clip. Returns the clip where too
    /// many are held.
    fn replace(&mut self, frame: &Frame, is_held: bool) -> Option<Arc<Insertion>> {
        let Phase::Clip { clip, cut, held, bytes, .. } = &mut self.phase else { return None };
        if !is_held {
            clip.replace(1);
            return None;
        }
        held.push(frame.clone());
        *bytes += frame.data.len();
        clip.set(Turn::Hurries(*cut));
        (held.len() > HELD_FRAMES || *bytes > HELD_BYTES).then(|| clip.clone())
    }

    /// Notes that a track of the source has reached a clip that begins.
    fn reach(&mut self, track: u16) {
        let Phase::Leaving { clip, reached, .. } = &mut self.phase else { return };
        clip.replace(1);
        if !reached.contains(&track) {
            reached.push(track);
        }
        self.enter_if_reached();
    }

    /// Goes on with the source where a frame allows that, or with the next clip in its place.
    fn resume(&mut self, frame: &Frame, now: Instant, passing: &mut Vec<Frame>, out: &mut Vec<Passage>) {
        let has_passed = self.passed(frame.track).pts.is_some_and(|last| frame.pts <= last);
        let Some(at) = self.key_time(frame).filter(|_| !has_passed) else { return };
        if let Some((clip, cut)) = self.cut_at(frame, now) {
            self.enter_clip(clip, cut);
            return;
        }
        flush(passing, out);
        self.phase = Phase::Source;
        self.shift = self.last.map_or(0, |last| last.wrapping_add(1)).wrapping_sub(frame.epoch);
        self.first = frame.epoch;
        let begun: Vec<Epoch> = self.begun.iter().filter(|epoch| follows(epoch.number, frame.epoch)).cloned().collect();
        for epoch in begun {
            let number = epoch.number.wrapping_add(self.shift);
            let is_first = epoch.number == frame.epoch;
            let from = if is_first { at } else { epoch.from };
            let wall = (epoch.wall + from).saturating_sub(epoch.from);
            let arrival = (epoch.arrival + from).saturating_sub(epoch.from);
            let reason = if is_first { EpochReason::Splice } else { epoch.reason };
            self.announce(Epoch { number, from, wall, arrival, reason, ..epoch }, out);
        }
        if self.is_lost {
            out.push(Passage::Pause);
        }
        passing.extend(self.of_source(frame));
    }

    /// Returns the stream time of a frame with which the source can be left or can go on: a key frame of the leading track.
    fn key_time(&self, frame: &Frame) -> Option<Duration> {
        let epoch = self.begun.iter().rfind(|epoch| epoch.number == frame.epoch)?;
        (frame.is_sync && epoch.lead() == Some(frame.track))
            .then(|| time(frame.pts, epoch.timescale(frame.track)?))
            .flatten()
    }

    /// Takes the first clip whose time has come out of the queue, where it can begin in the place of a frame.
    fn cut_at(&mut self, frame: &Frame, now: Instant) -> Option<(Arc<Insertion>, Cut)> {
        if self.queue.is_empty() {
            return None;
        }
        let from = self.key_time(frame)?;
        let epoch = self.begun.iter().rfind(|epoch| epoch.number == frame.epoch)?;
        let wall = (epoch.wall + from).saturating_sub(epoch.from);
        while let Some(place) = self.queue.iter().position(|clip| clip.at().is_none_or(|at| at <= wall)) {
            let clip = self.queue.remove(place);
            // The formats of the source may have changed since it was asked for.
            match Plan::new(&epoch.formats, &clip.clip().formats, frame.track) {
                Ok(plan) if plan == *clip.plan() => {
                    let cut = Cut { from, to: from.saturating_add(clip.clip().length), due: frame.due, arrived: now };
                    return Some((clip, cut));
                }
                Ok(_) => clip.end(InsertionEnd::Failed("the tracks of the stream changed".to_owned())),
                Err(error) => clip.end(InsertionEnd::Failed(error.to_string())),
            }
        }
        None
    }

    fn leave(&mut self, clip: Arc<Insertion>, cut: Cut, epoch: u32) {
        self.is_changed = true;
        clip.replace(1);
        clip.set(Turn::Begins(cut));
        self.phase = Phase::Leaving { clip, cut, epoch, reached: Vec::new() };
        self.enter_if_reached();
    }

    /// Whether a frame is none of pictures, and is presented before a time.
    fn is_early_sound(&self, frame: &Frame, from: Duration) -> bool {
        let Some(epoch) = self.begun.iter().rfind(|epoch| epoch.number == frame.epoch) else { return false };
        let is_lead = epoch.lead() == Some(frame.track) || epoch.is_video(frame.track);
        !is_lead && epoch.timescale(frame.track).is_some_and(|scale| frame.pts < ticks(from, scale))
    }

    /// Lets the clip begin where all sound from before it has passed.
    fn enter_if_reached(&mut self) {
        let Phase::Leaving { clip, cut, epoch, reached } = &self.phase else { return };
        let Some(epoch) = self.begun.iter().rfind(|known| known.number == *epoch) else { return };
        let lead = epoch.lead();
        let is_awaited = |track: u16| {
            let has_frames = self.tracks.get(usize::from(track)).is_some_and(|passed| passed.pts.is_some());
            let has_passed =
                |scale| self.tracks[usize::from(track)].pts.is_some_and(|pts| pts >= ticks(cut.from, scale));
            has_frames
                && Some(track) != lead
                && !epoch.is_video(track)
                && !reached.contains(&track)
                && !epoch.timescale(track).is_some_and(has_passed)
        };
        if !(0..self.tracks.len() as u16).any(is_awaited) {
            clip.set(Turn::Enters(*cut));
        }
    }

    /// Begins the epoch of a clip: its frames follow. Nothing happens where another one's turn is.
    pub(super) fn enter(&mut self, entering: &Arc<Insertion>, out: &mut Vec<Passage>) {
        match &self.phase {
            Phase::Leaving { clip, cut, .. } if Arc::ptr_eq(clip, entering) => {
                let cut = *cut;
                self.enter_clip(entering.clone(), cut);
            }
            Phase::Clip { clip, .. } if Arc::ptr_eq(clip, entering) => {}
            _ => return,
        }
        let Phase::Clip { clip, cut, .. } = &self.phase else { return };
        let (Some(source), clip, cut) = (self.begun.back().cloned(), clip.clone(), *cut) else { return };
        let epoch = Epoch {
            number: self.last.map_or(0, |last| last.wrapping_add(1)),
            from: cut.from,
            wall: (source.wall + cut.from).saturating_sub(source.from),
            arrival: (source.arrival + cut.from).saturating_sub(source.from),
            formats: clip.plan().formats(&source.formats, &clip.clip().formats),
            reason: EpochReason::Splice,
        };
        if let Phase::Clip { epoch: number, .. } = &mut self.phase {
            *number = epoch.number;
        }
        self.announce(epoch, out);
    }

    fn enter_clip(&mut self, clip: Arc<Insertion>, cut: Cut) {
        clip.set(Turn::Enters(cut));
        self.phase = Phase::Clip { clip, cut, epoch: 0, held: Vec::new(), bytes: 0 };
    }

    /// Takes frames of a clip. They have the clip's times.
    pub(super) fn clip(&mut self, given: &Arc<Insertion>, frames: &[Frame], out: &mut Vec<Passage>) {
        let Phase::Clip { clip, cut, epoch, .. } = &self.phase else { return };
        let (Some(formats), true) = (self.begun.back().map(|epoch| epoch.formats.clone()), Arc::ptr_eq(clip, given))
        else {
            return;
        };
        let (cut, epoch) = (*cut, *epoch);
        let mut passing = Vec::new();
        for frame in frames {
            for placed in given.plan().place(frame.track, frame.pts, cut.from) {
                let format = formats.get(usize::from(placed.track)).and_then(Option::as_ref);
                let scale = format.map(|format| format.track.timescale);
                let moved = Frame {
                    track: placed.track,
                    pts: placed.pts,
                    due: cut.from.saturating_add(frame.due),
                    epoch,
                    importance: format.map_or(frame.importance, |format| format.importance(&frame.data)),
                    ..frame.clone()
                };
                passing.extend(self.passed(placed.track).take(moved, placed.is_video, scale));
            }
        }
        given.give(passing.len());
        flush(&mut passing, out);
    }

    /// Ends a clip's turn, or its wait. The source continues with the held frames, or with its next key frame.
    pub(super) fn finish(&mut self, ended: &Arc<Insertion>, why: InsertionEnd, out: &mut Vec<Passage>) {
        ended.end(why);
        self.queue.retain(|clip| !Arc::ptr_eq(clip, ended));
        let held = match &mut self.phase {
            Phase::Leaving { clip, .. } if Arc::ptr_eq(clip, ended) => Vec::new(),
            Phase::Clip { clip, held, .. } if Arc::ptr_eq(clip, ended) => std::mem::take(held),
            _ => return,
        };
        self.phase = Phase::Returning;
        if held.is_empty() {
            out.push(Passage::Pause);
        }
        let (mut passing, now) = (Vec::new(), Instant::now());
        for frame in &held {
            self.take(frame, now, &mut passing, out);
        }
        flush(&mut passing, out);
    }

    /// A frame of the source as it passes.
    fn of_source(&mut self, frame: &Frame) -> Option<Frame> {
        let epoch = self.begun.iter().rfind(|epoch| epoch.number == frame.epoch);
        let (is_video, scale) =
            epoch.map_or((true, None), |epoch| (epoch.is_video(frame.track), epoch.timescale(frame.track)));
        if !self.is_changed {
            self.passed(frame.track).note(frame);
            return Some(frame.clone());
        }
        let moved = Frame { epoch: frame.epoch.wrapping_add(self.shift), ..frame.clone() };
        if follows(frame.epoch, self.first) { self.passed(frame.track).take(moved, is_video, scale) } else { None }
    }
}

fn flush(passing: &mut Vec<Frame>, out: &mut Vec<Passage>) {
    if !passing.is_empty() {
        out.push(Passage::Run(passing.drain(..).collect()));
    }
}

/// Whether an epoch is another one, or a later one.
fn follows(epoch: u32, other: u32) -> bool {
    epoch.wrapping_sub(other) < u32::MAX / 2
}
