//! Cuts the frames of a channel or live stream into the segments of its window.
//!
//! Frames pass as they arrive. The frames of a branch can always be decoded, so missing numbers have no effect here. Each epoch
//! of a stream begins other segments.

mod new_cues;
mod texts;

use crate::{
    Epoch, EpochReason, Feed, Format, Frame, Run,
    graph::{Inputs, LiveMemory, Module, ModuleError, Output, PipeReader},
    kind::ModuleKind,
    live::{LiveWindow, PackagedTrack, TimeShift, live_formats, packaged},
    ticks::ticks,
};
use futures_util::future::BoxFuture;
use millpond_media::units::Timescale;
use millpond_package::live::{
    Continuation, Cut, CutRules, Cutter, FlacUnits, LiveSample, SegmentNumber, TrackSegment, Window, WindowEpoch,
};
use millpond_store::Hold;
use new_cues::NewCues;
use std::{pin::pin, sync::Arc, time::Duration};
use texts::Texts;
use tokio::time::{Instant, sleep};

pub(super) const KIND: ModuleKind =
    ModuleKind { name: "segmenter", about: "cuts frames into the segments of HLS and DASH", inputs: 1, outputs: 0 };

/// Longest time without a frame after which late tracks are given up.
const CHECK: Duration = Duration::from_millis(100);
/// Segments that stay while memory is short.
const FEWEST: usize = 4;

/// Cuts the frames of a feed. Its window is changed by it alone.
pub(crate) struct Segmenter {
    window: Arc<LiveWindow>,
    feed: Arc<dyn Feed>,
    /// In the order of the window's tracks. Subtitles are the last ones.
    lanes: Vec<Lane>,
    /// `None` before the first frame.
    texts: Option<Texts>,
    rules: CutRules,
    first: SegmentNumber,
    memory: LiveMemory,
    /// The past of the stream on the disk, and the number of the run.
    past: Option<(Arc<TimeShift>, u64)>,
    /// `None` before the first frame.
    cutter: Option<Cutter>,
    epoch: Epoch,
    cuts: Vec<Cut>,
    /// Due time and arrival of the last frame.
    last: Option<(Duration, Instant)>,
    /// Memory of the window beside the frames, which are counted where they enter.
    overhead: Option<Hold>,
    /// Time that is added to the feed's stream time: ladders count from the Unix epoch.
    shift: Duration,
    /// Where the window goes on that was a copy of another server's.
    continuation: Option<Continuation>,
    /// Number of the window's epoch for that of the feed's first one.
    base: u32,
    cues: NewCues,
}

/// A track of the window.
struct Lane {
    track: PackagedTrack,
    /// Clock of its frames in this epoch; `None` where it has none.
    timescale: Option<Timescale>,
    /// Makes what is delivered in this epoch, where that is another codec.
    flac: Option<FlacUnits>,
}

impl Segmenter {
    /// Makes one for tracks of a feed, which are those of the window. Segments are counted from `first`.
    pub(crate) fn new(
        window: Arc<LiveWindow>,
        feed: Arc<dyn Feed>,
        (tracks, rules, first): (Vec<PackagedTrack>, CutRules, SegmentNumber),
        (memory, past): (LiveMemory, Option<(Arc<TimeShift>, u64)>),
    ) -> Self {
        let lane = |track| Lane { track, timescale: None, flac: None };
        let epoch = Epoch {
            number: 0,
            from: Duration::ZERO,
            wall: Duration::ZERO,
            arrival: Duration::ZERO,
            formats: feed.formats().into(),
            reason: EpochReason::Start,
        };
        Self {
            cues: NewCues::of(&*feed),
            window,
            feed,
            lanes: tracks.into_iter().map(lane).collect(),
            texts: None,
            rules,
            first,
            memory,
            past,
            cutter: None,
            epoch,
            cuts: Vec::new(),
            last: None,
            overhead: None,
            shift: Duration::ZERO,
            continuation: None,
            base: 0,
        }
    }

    /// Makes it go on in a window where the segmenter of another server has ended.
    pub(crate) fn continuing(self, continuation: Option<Continuation>) -> Self {
        Self { continuation, ..self }
    }

    /// Number of an epoch of the feed in the window.
    fn number(&self, epoch: u32) -> u32 {
        self.base.wrapping_add(epoch)
    }

    /// Takes runs until the input ends, or an epoch has other tracks.
    async fn cut(&mut self, input: &mut PipeReader) {
        let mut check = pin!(sleep(CHECK));
        loop {
            tokio::select! {
                run = input.next() => match run {
                    Ok(run) if self.take(&run) => {}
                    _ => return,
                },
                () = &mut check => {
                    check.as_mut().reset(Instant::now() + CHECK);
                    self.expire();
                }
            }
        }
    }

    /// Takes the frames of a run and changes the window. Returns whether the window can go on.
    fn take(&mut self, run: &Run) -> bool {
        for frame in run.iter() {
            if !self.enter(frame) {
                return false;
            }
            self.push(frame);
        }
        if let Some(frame) = run.last() {
            self.last = Some((frame.due, Instant::now()));
            self.cut_texts(frame.due);
        }
        self.publish(None);
        true
    }

    /// Adds the subtitles to what was cut, where the feed has come to a time.
    fn cut_texts(&mut self, due: Duration) {
        if let Some(texts) = &mut self.texts {
            texts.cut(due + self.shift, &mut self.cuts);
        }
    }

    /// Enters the epoch of a frame, where that is another one. Returns whether the window can go on.
    fn enter(&mut self, frame: &Frame) -> bool {
        if self.cutter.is_some() && self.epoch.number == frame.epoch {
            return true;
        }
        self.feed.epoch(frame.epoch).is_some_and(|epoch| self.begin(epoch, frame))
    }

    /// Begins an epoch with a frame. Returns whether it has the tracks of the window.
    fn begin(&mut self, epoch: Epoch, frame: &Frame) -> bool {
        let formats = (0..).zip(epoch.formats.iter()).filter_map(|(track, format)| Some((track, format.as_ref()?)));
        let tracks = packaged(formats);
        let is_same = tracks.len() == self.lanes.len()
            && self.lanes.iter().zip(&tracks).all(|(lane, track)| lane.track.is_followed_by(track));
        if !is_same {
            // Viewers get what the window has begun, to its end.
            let number = self.number(epoch.number);
            if let Some(cutter) = &mut self.cutter {
                cutter.discontinue(number, epoch.from + self.shift, &mut self.cuts);
            }
            self.texts.iter_mut().for_each(|texts| texts.discontinue(&mut self.cuts));
            self.publish(None);
            self.window.succeed();
            return false;
        }
        for lane in &mut self.lanes {
            lane.timescale = timescale(&epoch.formats, lane.track.track);
            let format = epoch.formats.get(usize::from(lane.track.track)).and_then(Option::as_ref);
            lane.flac = format.and_then(|format| FlacUnits::of(&format.track)).map(|(flac, _)| flac);
        }
        if let Some(continuation) = self.continuation.filter(|_| self.cutter.is_none()) {
            self.base = continuation.epoch.wrapping_sub(epoch.number);
        }
        let number = self.number(epoch.number);
        let (from, wall) = self.settle_shift(&epoch, frame);
        match &mut self.cutter {
            Some(cutter) => {
                cutter.discontinue(number, from, &mut self.cuts);
                self.texts.iter_mut().for_each(|texts| texts.discontinue(&mut self.cuts));
            }
            None => {
                let media = self.lanes.iter().filter(|lane| !lane.track.is_text());
                let tracks = media.map(|lane| lane.track.of_cutter()).collect();
                let targets = self.continuation.and_then(|_| self.window.look(|window| window.targets().cloned()));
                let cutter = Cutter::new(self.rules, tracks, number, self.first).with_targets(targets);
                let cutter = self.cutter.insert(cutter);
                let lead = cutter.lead();
                let clock = self.lanes.get(lead).map_or(Timescale::MPEG, |lane| lane.track.timescale);
                let tracks: Vec<_> = self.lanes.iter().map(|lane| lane.track.clone()).collect();
                self.texts = Some(Texts::new(&tracks, (lead, clock)));
            }
        }
        let tracks: Vec<_> = self.lanes.iter().map(|lane| lane.track.clone()).collect();
        let formats = live_formats(&tracks, &epoch.formats);
        self.publish(Some(WindowEpoch::new(number, from, wall, formats)));
        self.epoch = epoch;
        true
    }

    /// Settles the time that is added to stream times in an epoch that begins with a frame. Returns beginning and wall time of the
    /// epoch in the window.
    fn settle_shift(&mut self, epoch: &Epoch, frame: &Frame) -> (Duration, Duration) {
        let Some(ladder) = self.window.ladder() else {
            // Once it is known, times of the feed go on as they are.
            if let Some(continuation) = self.continuation.filter(|_| self.cutter.is_none()) {
                let at = presented(frame, &epoch.formats);
                let wall = epoch.wall.saturating_add(at).saturating_sub(epoch.from);
                self.shift = continuation.stream_time(wall).saturating_sub(at);
            }
            return (epoch.from + self.shift, epoch.wall);
        };
        let at = presented(frame, &epoch.formats);
        let mut shift = epoch.wall.saturating_sub(epoch.from);
        if frame.is_sync {
            shift = ladder.aligned(&self.window, at + shift).saturating_sub(at);
        }
        let from = epoch.from;
        if let Some((last, _)) = self.last.filter(|_| self.cutter.is_some()) {
            // Times never go back.
            shift = shift.max((last + self.shift).saturating_sub(from));
        } else {
            self.first = self.first.max(ladder.number(at + shift));
        }
        self.shift = shift;
        (from + shift, from + shift)
    }

    fn push(&mut self, frame: &Frame) {
        let is_own = |lane: &Lane| lane.track.track == frame.track && !lane.track.is_text();
        let Some(place) = self.lanes.iter().position(is_own) else {
            return self.texts.iter_mut().for_each(|texts| texts.push(frame, self.shift));
        };
        let sample = self.lanes.get_mut(place).and_then(|lane| lane.sample(frame, self.shift, &self.memory));
        if let Some((cutter, sample)) = self.cutter.as_mut().zip(sample) {
            if let Some(ladder) = self.window.ladder() {
                if frame.is_sync && place == cutter.lead() {
                    ladder.key_frame(&self.window, presented(frame, &self.epoch.formats) + self.shift);
                }
                ladder.target().into_iter().for_each(|target| cutter.expect(target));
            }
            cutter.push(place, sample, &mut self.cuts);
        }
    }

    /// Gives tracks up that are late, where no frame has come for a while.
    fn expire(&mut self) {
        let Some((due, arrival)) = self.last.filter(|(_, arrival)| arrival.elapsed() >= CHECK) else { return };
        if let Some(cutter) = &mut self.cutter {
            cutter.expire(due + self.shift + arrival.elapsed(), &mut self.cuts);
        }
        self.cut_texts(due + arrival.elapsed());
        self.publish(None);
    }

    /// Changes the window: by what was cut, then by an epoch that begins, and by cues.
    fn publish(&mut self, epoch: Option<WindowEpoch>) {
        // Before the first epoch there is no wall clock.
        let cues = if self.cutter.is_some() { self.cues.take(self.shift) } else { Vec::new() };
        if self.cuts.is_empty() && epoch.is_none() && cues.is_empty() {
            return;
        }
        if let Some(ladder) = self.window.ladder() {
            for cut in &self.cuts {
                match cut {
                    Cut::Targets(targets) => ladder.measured(targets.segment),
                    Cut::Opened { segment, start, .. } => ladder.opened(&self.window, *start, *segment),
                    _ => {}
                }
            }
        }
        let opens = self.cuts.iter().any(|cut| matches!(cut, Cut::Opened { .. }));
        let is_short = self.memory.is_short();
        let (cuts, past) = (&mut self.cuts, &self.past);
        self.window.change(|window| {
            for cut in cuts.drain(..) {
                match past {
                    Some((past, run)) => past.push(*run, cut, window),
                    None => window.push(cut),
                }
            }
            if let Some(epoch) = epoch {
                if let Some((past, run)) = past {
                    past.begin(*run, &epoch);
                }
                window.begin(epoch);
            }
            for cue in &cues {
                if let (Some(taken), Some((past, run))) = (window.cue(cue), past) {
                    past.cue(*run, taken, window);
                }
            }
            if is_short && window.in_memory() > FEWEST {
                window.evict_oldest();
            }
        });
        if opens {
            let past = self.past.as_ref().map_or(0, |(past, _)| past.memory());
            self.overhead = Some(self.memory.take(self.window.look(overhead) + past));
        }
    }
}

impl Lane {
    /// Returns a frame as a sample in the clock of the window; `None` where the epoch does not have the track.
    ///
    /// Also `None` where the memory of the stream has no room for what is made of the frame.
    fn sample(&mut self, frame: &Frame, start: Duration, memory: &LiveMemory) -> Option<LiveSample> {
        let (from, to) = (self.timescale?, self.track.timescale);
        let shift = ticks(start, to);
        let pts = from.convert(frame.pts, to).saturating_add(shift);
        // Only pictures are reordered.
        let dts = match self.track.is_video() {
            true => ticks(frame.due, to).saturating_add(shift),
            false => pts,
        };
        let data = match &mut self.flac {
            Some(flac) => memory.hold_bytes(Some(flac.encode(&frame.data)).filter(|made| !made.is_empty())?)?,
            None => frame.data.clone(),
        };
        Some(LiveSample { dts, pts, is_sync: frame.is_sync, data })
    }
}

impl Module for Segmenter {
    fn kind(&self) -> &'static str {
        KIND.name
    }

    fn run(mut self: Box<Self>, mut inputs: Inputs, _: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        Box::pin(async move {
            if let Some(mut input) = inputs.pop() {
                self.cut(&mut input).await;
            }
            Ok(())
        })
    }
}

/// Bytes of memory that a window holds beside the frames.
fn overhead(window: &Window) -> u64 {
    // Segments of subtitles are counted nowhere else.
    let tracks = (0..window.tracks().len()).filter(|track| !window.is_text(*track));
    let of_track = |track: usize| window.segments().filter_map(move |segment| segment.track(track));
    // The bytes of segments that left memory are known too, but are not in it.
    let in_memory = |of_track: &&TrackSegment| !of_track.parts().is_empty();
    let media: u64 = tracks.flat_map(of_track).filter(in_memory).map(TrackSegment::bytes).sum();
    window.heap_bytes().saturating_sub(media)
}

fn timescale(formats: &[Option<Format>], track: u16) -> Option<Timescale> {
    formats.get(usize::from(track))?.as_ref().map(|format| format.track.timescale)
}

/// Presentation time of a frame as time of its feed.
fn presented(frame: &Frame, formats: &[Option<Format>]) -> Duration {
    let nanos = Timescale::new(1_000_000_000);
    let time = timescale(formats, frame.track).zip(nanos).map_or(0, |(scale, nanos)| scale.convert(frame.pts, nanos));
    Duration::from_nanos(u64::try_from(time).unwrap_or(0))
}
