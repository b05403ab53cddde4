//! Frames that a module of another stream publishes: they come by a pipe, with the times and formats of that stream.

use crate::{
    Feed, Format, Frame, Run,
    clock::Wrapped,
    cues::Cues,
    epoch::Epoch,
    graph::PipeReader,
    reception::assembly::{Arrived, Assembly},
    registry::NodeId,
};
use millpond_media::Timescale;
use millpond_package::MediaKind;
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;

/// Time before its moment at which a cue is passed on. A module may delay the frames.
const CUE_AHEAD: Duration = Duration::from_secs(10);

/// The output of a module, as its publication receives it.
#[derive(Debug)]
pub struct ModuleFrames {
    pipe: PipeReader,
    /// The stream that the module takes its frames from.
    feed: Arc<dyn Feed>,
}

impl ModuleFrames {
    /// Makes it of the module's output pipe. The frames have epochs and tracks of `feed`.
    pub(crate) fn new(pipe: PipeReader, feed: Arc<dyn Feed>) -> Self {
        Self { pipe, feed }
    }

    /// Path of the stream that the module takes its frames from.
    pub(crate) fn stream(&self) -> &str {
        self.feed.path()
    }

    /// Tells the module that takes the frames.
    pub(crate) fn lead_to(&self, module: NodeId) {
        self.pipe.lead_to(module);
    }
}

/// Makes frames of a publication of the frames of a module.
pub(super) struct FramePassage {
    frames: ModuleFrames,
    /// A run that was received and not passed on yet.
    waiting: Option<Run>,
    has_ended: bool,
    /// Epoch of the last frame.
    epoch: Option<u32>,
    lanes: Vec<Lane>,
    cues: Option<watch::Receiver<Cues>>,
    /// Number of cues that were passed on.
    cues_seen: u64,
}

/// A track with pictures or sound.
#[derive(Clone, Copy, Debug)]
struct Lane {
    /// Index among the formats of the module's stream.
    from: usize,
    media: &'static str,
    timescale: Timescale,
    /// Index in the formats of the publication; `None` where there is none for it.
    to: Option<u16>,
}

impl Lane {
    fn is_same(&self, other: &Self) -> bool {
        (self.from, self.media, self.timescale) == (other.from, other.media, other.timescale)
    }
}

impl FramePassage {
    pub(super) fn new(frames: ModuleFrames) -> Self {
        let cues = frames.feed.cues();
        let cues_seen = cues.as_ref().map_or(0, |cues| cues.borrow().count());
        Self { frames, waiting: None, has_ended: false, epoch: None, lanes: Vec::new(), cues, cues_seen }
    }

    /// Whether frames are passed on.
    pub(super) fn has_begun(&self) -> bool {
        self.epoch.is_some()
    }

    /// Waits for frames. Cancel safe.
    pub(super) async fn readable(&mut self) {
        if self.waiting.is_none() && !self.has_ended {
            self.waiting = self.frames.pipe.next().await.ok();
            self.has_ended = self.waiting.is_none();
        }
        if self.waiting.is_none() {
            // The publisher leaves, and tells so.
            std::future::pending::<()>().await;
        }
    }

    /// Passes on the frames that were waited for. Returns the number of their bytes; `None` where there are none.
    pub(super) fn read(&mut self, now: Duration, assembly: &mut Assembly) -> Option<usize> {
        let run = self.waiting.take()?;
        for frame in run.iter() {
            self.pass(frame, now, assembly);
        }
        if let Some(last) = run.last() {
            self.pass_cues(last.due, assembly);
        }
        Some(run.iter().map(|frame| frame.data.len()).sum())
    }

    fn pass(&mut self, frame: &Frame, now: Duration, assembly: &mut Assembly) {
        if self.epoch != Some(frame.epoch)
            && let Some(epoch) = self.frames.feed.epoch(frame.epoch)
        {
            self.enter(&epoch, assembly);
        }
        let lane = self.lanes.iter().find(|lane| lane.from == usize::from(frame.track));
        let Some((lane, track)) = lane.and_then(|lane| Some((lane, lane.to?))) else { return };
        let arrived = Arrived {
            timestamp: timestamp(frame.pts),
            reordered: Some(reordered(frame, lane.timescale)),
            is_key: frame.is_sync,
            importance: Some(frame.importance),
            lost_before: false,
            bytes: frame.data.clone(),
        };
        assembly.frame(track, arrived, now);
    }

    /// Begins an epoch of the module's stream. Tracks with the clocks of those before keep their times.
    fn enter(&mut self, epoch: &Epoch, assembly: &mut Assembly) {
        let lanes: Vec<_> = lanes(&epoch.formats).collect();
        let is_same =
            lanes.len() == self.lanes.len() && lanes.iter().zip(&self.lanes).all(|(new, known)| new.is_same(known));
        if self.epoch.replace(epoch.number).is_some() && is_same {
            assembly.split(epoch.reason);
            return assembly.change(self.formats(epoch, assembly));
        }
        let kinds: Vec<_> = lanes.iter().map(|lane| (lane.media, lane.timescale)).collect();
        let clocks: Vec<_> = lanes.iter().map(|lane| lane.timescale).collect();
        let tracks = assembly.adopt_counted(&kinds, &clocks);
        self.lanes = lanes.into_iter().zip(tracks).map(|(lane, to)| Lane { to, ..lane }).collect();
        // The frames of an earlier publisher may have had fewer tracks.
        for lane in 0..self.lanes.len() {
            let taken: Vec<u16> = self.lanes.iter().filter_map(|lane| lane.to).collect();
            let Some(Lane { from, media, timescale, to: to @ None }) = self.lanes.get_mut(lane) else { continue };
            *to = assembly.join((media, *timescale), *timescale, (&taken, true));
            if to.is_none() {
                tracing::warn!(track = *from, "track of a module left out: the stream has too many");
            }
        }
        assembly.begin(self.formats(epoch, assembly));
    }

    /// The formats of an epoch by the tracks of the publication.
    fn formats(&self, epoch: &Epoch, assembly: &Assembly) -> Arc<[Option<Format>]> {
        let format = |track: u16| {
            let lane = self.lanes.iter().find(|lane| lane.to == Some(track))?;
            let mut format = epoch.formats.get(lane.from)?.clone()?;
            format.track.timescale = assembly.timescale(track)?;
            Some(format)
        };
        (0..assembly.tracks() as u16).map(format).collect()
    }

    /// Passes on the cues whose moment is near.
    fn pass_cues(&mut self, due: Duration, assembly: &mut Assembly) {
        let Some(cues) = self.cues.as_ref().map(|cues| cues.borrow().clone()) else { return };
        let Some(lead) = self.lanes.iter().find(|lane| lane.to.is_some()) else { return };
        for cue in cues.since(self.cues_seen).iter().take_while(|cue| cue.at <= due + CUE_AHEAD) {
            self.cues_seen += 1;
            let ticks = cue.at.as_nanos().saturating_mul(lead.timescale.get().into()) / 1_000_000_000;
            assembly.pass_cue(cue, Wrapped::whole(ticks as u64));
        }
    }
}

/// The tracks with pictures, then those with sound. Others are left out: a publication has none.
fn lanes(formats: &[Option<Format>]) -> impl Iterator<Item = Lane> {
    let of = |kind: MediaKind, media: &'static str| {
        let all = formats.iter().enumerate().filter_map(|(from, format)| Some((from, format.as_ref()?)));
        let fitting = all.filter(move |(_, format)| format.kind == kind);
        fitting.map(move |(from, format)| Lane { from, media, timescale: format.track.timescale, to: None })
    };
    of(MediaKind::Video, "video").chain(of(MediaKind::Audio, "audio"))
}

/// Times of streams begin at 10 s. An earlier presentation time wraps, and unwraps again.
fn timestamp(pts: i64) -> Wrapped {
    Wrapped::whole(pts as u64)
}

/// Time in 90 kHz by which a frame is decoded before its presentation, rounded up: the ticks of its track come out exactly.
fn reordered(frame: &Frame, timescale: Timescale) -> u32 {
    let ticks = frame.pts.saturating_sub(frame.decoded(timescale.get())).max(0) as u64;
    let ticks = ticks.saturating_mul(Timescale::MPEG.get().into()).div_ceil(timescale.get().into());
    u32::try_from(ticks).unwrap_or(0)
}
