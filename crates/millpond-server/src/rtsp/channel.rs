//! A channel: an asset that plays for all who watch it at once, round and round.

use super::{
    cut::PERIOD,
    intervals::{Intervals, Subject},
    loader::Loader,
    media::Media,
    track::SentTrack,
};
use crate::{library::Asset, metrics::StreamCounters};
use millpond_graph::{Branch, Fork, Frame, Gone, Graph, NodeId, Outlet, Run};
use millpond_package::{Kind, PresentedTrack};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{task::AbortHandle, time::Instant};

/// Blocks between the loader and the fork, beside that which is being waited for.
const DEPTH: usize = 1;
/// A block is given out so long before it is due: those who send it have it then.
const AHEAD: Duration = PERIOD;
/// Nobody waits longer than this for a key frame to begin with.
const PATIENCE: Duration = Duration::from_secs(10);
/// Times before a lap's begin, at which nothing shows, are so many times nearer to it: they are not to go back behind what was shown.
const SQUEEZE: i64 = 512;
/// A block that comes later than this moves all that follows: nothing is sent faster than it plays.
const LATE: Duration = Duration::from_secs(1);

/// A channel that runs.
pub(super) struct Channel {
    asset: Arc<Asset>,
    /// The track whose key frames viewers begin with: pictures, where there are such.
    lead: u16,
    fork: Arc<Fork>,
    task: AbortHandle,
}

/// What channels are made with.
pub(super) struct Supplies<'a> {
    pub(super) media: &'a Media,
    pub(super) graph: &'a Graph,
    pub(super) intervals: &'a Arc<Intervals>,
    pub(super) counters: &'a Arc<StreamCounters>,
}

impl Channel {
    /// Begins to play tracks of an asset, at their beginning.
    pub(super) fn start(supplies: &Supplies<'_>, asset: Arc<Asset>, tracks: Arc<[u16]>) -> Self {
        let presented = asset.presentation.tracks();
        let is_video = |track: &&u16| presented.get(usize::from(**track)).is_some_and(|t| t.kind() == Kind::Video);
        let lead = tracks.iter().find(is_video).or(tracks.first()).copied().unwrap_or(0);
        let Supplies { media, graph, intervals, counters } = *supplies;
        let fork = Arc::new(Fork::new(graph, graph.add("channel", asset.path.clone()), lead));
        let laps = Laps {
            media: media.clone(),
            graph: graph.clone(),
            intervals: intervals.clone(),
            counters: counters.clone(),
            asset: asset.clone(),
            tracks: tracks.clone(),
        };
        let task = tokio::spawn({
            let fork = fork.clone();
            async move { laps.run(&fork).await }
        });
        Self { asset, lead, fork, task: task.abort_handle() }
    }

    /// Whether it could not be played on.
    pub(super) fn is_over(&self) -> bool {
        self.fork.is_closed()
    }

    /// Joins with some of its tracks, which are set to the key frame that it begins with; says where in time playing begins. Waits
    /// until there is one.
    ///
    /// # Errors
    /// The channel is over, or there is no key frame for long.
    pub(super) async fn join(&self, to: NodeId, tracks: &mut [SentTrack]) -> Result<(Outlet, Duration), Gone> {
        let joined = tokio::time::timeout(PATIENCE, self.fork.join(to)).await;
        let Branch { outlet, first, runs } = joined.unwrap_or(Err(Gone))?;
        let key = first.iter().find(|frame| frame.track == self.lead && frame.is_sync).ok_or(Gone)?;
        let timescale =
            |track: usize| self.asset.presentation.tracks().get(track)?.source_track().map(|t| t.timescale.get());
        let from = key.pts as f64 / f64::from(timescale(self.lead.into()).unwrap_or(1).max(1));
        for sent in tracks {
            let of_track = || first.iter().filter(|frame| usize::from(frame.track) == sent.track);
            let next = of_track().find(|frame| frame.due >= key.due).map(|frame| frame.number);
            let next = next.or_else(|| Some(of_track().last()?.number.wrapping_add(1)));
            sent.begin(next.unwrap_or(0), from);
        }
        // Who has nothing in stock begins where the block does, not ahead of what comes next.
        let begins = first.first().filter(|_| runs == 1).map_or(key.due, |frame| frame.due);
        Ok((outlet, begins))
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.task.abort();
        self.fork.close();
    }
}

/// Plays an asset again and again.
struct Laps {
    media: Media,
    graph: Graph,
    intervals: Arc<Intervals>,
    counters: Arc<StreamCounters>,
    asset: Arc<Asset>,
    tracks: Arc<[u16]>,
}

impl Laps {
    /// Until it can't be loaded; who watches is told by the end of the stream.
    async fn run(self, fork: &Fork) {
        let member = self.graph.add("loader", self.asset.path.clone());
        let mut clock = None;
        for number in 0.. {
            let lap = Lap::new(&self.asset, number);
            let (inlet, mut outlet) = millpond_graph::pipe(&self.graph, member.id(), fork.id(), DEPTH);
            let loader = self.loader();
            let load = async move { loader.run(&inlet, || {}).await };
            let pass = async {
                let mut passed = 0;
                while let Ok(run) = outlet.next().await {
                    self.pass(&lap, &run, &mut clock, fork).await;
                    passed += run.len();
                }
                passed
            };
            let (loaded, passed) = tokio::join!(load, pass);
            match loaded {
                Ok(()) if passed > 0 => {}
                Ok(()) => break,
                Err(error) => {
                    tracing::error!(asset = %self.asset.path, %error, "channel ends early");
                    break;
                }
            }
        }
        fork.close();
    }

    fn loader(&self) -> Loader {
        let seat = self.intervals.enter(Subject::of(&self.asset, self.tracks.clone()), Duration::ZERO);
        let next = vec![0; self.tracks.len()];
        let (asset, tracks) = (self.asset.clone(), self.tracks.clone());
        Loader { media: self.media.clone(), asset, tracks, next, to: Duration::MAX, seat }
    }

    /// Gives a block out when it is due. The first one of all says when that is.
    async fn pass(&self, lap: &Lap, run: &Run, clock: &mut Option<Instant>, fork: &Fork) {
        let Some(first) = run.first() else { return };
        let run = lap.shift(run);
        let due = lap.begin + first.due;
        let now = Instant::now();
        let is_late = |began: &Instant| now > *began + due + LATE;
        let began = clock.filter(|began| !is_late(began)).unwrap_or_else(|| now.checked_sub(due).unwrap_or(now));
        *clock = Some(began);
        tokio::time::sleep_until(began + due.saturating_sub(AHEAD)).await;
        let full = fork.put(&run);
        self.counters.dropped_frames.fetch_add((full * run.len()) as u64, Ordering::Relaxed);
    }
}

/// One time through: what its frames differ by from those of the asset.
struct Lap {
    number: u32,
    begin: Duration,
    /// By track of the presentation.
    shifts: Vec<Shift>,
}

struct Shift {
    pts: i64,
    number: u32,
    kind: Kind,
}

impl Lap {
    fn new(asset: &Asset, number: u32) -> Self {
        let length = asset.presentation.duration();
        let shift = |track: &PresentedTrack| {
            let timescale = track.source_track().map_or(1, |source| source.timescale.get());
            let pts = (length * f64::from(number) * f64::from(timescale)).round() as i64;
            Shift { pts, number: number.wrapping_mul(track.sample_count()), kind: track.kind() }
        };
        let shifts = asset.presentation.tracks().iter().map(shift).collect();
        let begin = Duration::try_from_secs_f64(length * f64::from(number)).unwrap_or(Duration::MAX);
        Self { number, begin, shifts }
    }

    /// A block's frames, as they are in this lap.
    fn shift(&self, run: &Run) -> Run {
        if self.number == 0 {
            return run.clone();
        }
        let each = run.iter().filter_map(|frame| {
            let shift = self.shifts.get(usize::from(frame.track))?;
            // A decoder of sound was primed in the first lap.
            let primes = shift.kind == Kind::Audio && frame.pts < 0;
            (!primes).then(|| Frame {
                number: frame.number.wrapping_add(shift.number),
                due: self.begin + frame.due,
                pts: shift.pts + if frame.pts < 0 { frame.pts / SQUEEZE } else { frame.pts },
                ..frame.clone()
            })
        });
        each.collect()
    }
}
