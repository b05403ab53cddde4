//! Passes frames on, with sound as Opus.

use super::feed::{OpusFeed, is_transcoded};
use futures_util::future::BoxFuture;
use millpond_media::{Importance, movie::Track};
use millpond_sound::{OpusPacket, OpusTranscoder};
use millpond_stream::{
    AttachableKind, Feed, Format, Frame, MadeModule, ModuleDeclaration, ModuleInput, ModuleKind, ModuleOptions,
    Program, Run,
    graph::{Inputs, Module, ModuleError, Output},
};
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::task::spawn_blocking;

/// Least time between two lines of the log about damage.
const TELL: Duration = Duration::from_secs(60);

const KIND: ModuleKind = ModuleKind {
    name: "opus",
    about: "publishes the frames of a channel or live stream as a stream of another name, with AAC and PCM as Opus",
    inputs: 1,
    outputs: 1,
};

/// The kind of modules whose sound is Opus.
pub(crate) struct OpusKind;

impl OpusKind {
    pub(crate) const DECLARATION: ModuleDeclaration =
        ModuleDeclaration { kind: KIND, input: ModuleInput::Sound, options: &[], is_kept: false };

    /// Makes a module of a stream.
    pub(super) fn module(program: &Program) -> Box<dyn Module> {
        Box::new(OpusModule { feed: program.shared_feed(), stream: program.path().to_owned() })
    }
}

impl AttachableKind for OpusKind {
    fn declaration(&self) -> &'static ModuleDeclaration {
        &Self::DECLARATION
    }

    fn make<'a>(
        &'a self,
        program: &'a Program,
        options: &'a ModuleOptions,
        _: u64,
    ) -> BoxFuture<'a, Result<MadeModule, ModuleError>> {
        let label = options.get("to").unwrap_or_default().trim_matches('/').to_owned();
        let module = Self::module(program);
        Box::pin(async move { Ok(MadeModule { module, label, results: None }) })
    }
}

struct OpusModule {
    feed: Arc<dyn Feed>,
    /// Path of the stream.
    stream: String,
}

impl Module for OpusModule {
    fn kind(&self) -> &'static str {
        KIND.name
    }

    fn output_feed(&self) -> Option<Arc<dyn Feed>> {
        Some(Arc::new(OpusFeed::new(self.feed.clone())))
    }

    fn run(self: Box<Self>, mut inputs: Inputs, output: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        Box::pin(async move {
            let Some(mut input) = inputs.pop() else { return Ok(()) };
            let mut lanes = Lanes::new(self.feed, self.stream);
            while let Ok(run) = input.next().await {
                lanes.enter(&run);
                let run = if run.iter().any(|frame| lanes.has(frame)) {
                    // Away from the threads that serve.
                    let (back, run) = spawn_blocking(move || {
                        let run = lanes.pass(&run);
                        (lanes, run)
                    })
                    .await?;
                    lanes = back;
                    run
                } else {
                    run
                };
                if !run.is_empty() && output.send(run).await.is_err() {
                    break;
                }
            }
            Ok(())
        })
    }
}

/// The tracks that are transcoded in the epoch of the last frame.
struct Lanes {
    feed: Arc<dyn Feed>,
    /// Path of the stream.
    stream: String,
    damage: Damage,
    epoch: Option<u32>,
    tracks: HashMap<u16, Lane>,
}

struct Lane {
    /// The track as it arrives.
    from: Track,
    transcoder: OpusTranscoder,
    /// Number of the next frame.
    next: u32,
}

impl Lanes {
    fn new(feed: Arc<dyn Feed>, stream: String) -> Self {
        Self { feed, stream, damage: Damage::default(), epoch: None, tracks: HashMap::new() }
    }

    /// Whether a frame is transcoded.
    fn has(&self, frame: &Frame) -> bool {
        self.tracks.contains_key(&frame.track)
    }

    /// Takes the formats of the epoch of a run, whose frames are all of one.
    fn enter(&mut self, run: &Run) {
        let Some(epoch) = run.last().map(|frame| frame.epoch).filter(|epoch| self.epoch != Some(*epoch)) else {
            return;
        };
        self.epoch = Some(epoch);
        match self.feed.epoch(epoch) {
            Some(epoch) => self.take(&epoch.formats),
            None => {
                let feed = self.feed.clone();
                self.take(feed.formats());
            }
        }
    }

    /// Keeps the transcoders of tracks that are as before: their sound goes on.
    fn take(&mut self, formats: &[Option<Format>]) {
        let mut before = std::mem::take(&mut self.tracks);
        for (track, format) in (0..).zip(formats) {
            let Some(format) = format.as_ref().filter(|format| is_transcoded(format)) else { continue };
            let known = before.remove(&track).filter(|lane| lane.from == format.track);
            let new = || {
                let (transcoder, _) = OpusTranscoder::of(&format.track)?;
                Some(Lane { from: format.track.clone(), transcoder, next: 0 })
            };
            if let Some(lane) = known.or_else(new) {
                self.tracks.insert(track, lane);
            }
        }
    }

    /// Transcodes the sound of a run.
    fn pass(&mut self, run: &Run) -> Run {
        let (mut frames, mut packets) = (Vec::with_capacity(run.len()), Vec::new());
        for frame in run.iter() {
            match self.tracks.get_mut(&frame.track) {
                Some(lane) => {
                    let before = lane.transcoder.damaged();
                    lane.transcoder.push(frame.pts, &frame.data, &mut packets);
                    self.damage.add(lane.transcoder.damaged() - before);
                    frames.extend(packets.drain(..).map(|packet| lane.frame(frame, packet)));
                }
                None => frames.push(frame.clone()),
            }
        }
        self.damage.tell(&self.stream, Instant::now());
        frames.into()
    }
}

/// Units that could not be decoded, which are told once a minute.
#[derive(Default)]
struct Damage {
    units: u64,
    told: Option<Instant>,
}

impl Damage {
    fn add(&mut self, units: u64) {
        self.units += units;
    }

    fn tell(&mut self, stream: &str, now: Instant) {
        let is_due = self.told.is_none_or(|told| now.saturating_duration_since(told) >= TELL);
        if self.units > 0 && is_due {
            let units = std::mem::take(&mut self.units);
            self.told = Some(now);
            tracing::warn!(stream, units, "sound that can't be decoded is silence in Opus: look at the encoder");
        }
    }
}

impl Lane {
    fn frame(&mut self, of: &Frame, OpusPacket { pts, data }: OpusPacket) -> Frame {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        Frame {
            track: of.track,
            number,
            // Sound is presented in the order in which it is decoded.
            due: Duration::from_nanos(pts.max(0) as u64 * (1_000_000_000 / 48_000)),
            pts,
            epoch: of.epoch,
            is_sync: true,
            importance: Importance::SOUND,
            data,
        }
    }
}
