//! One session with a source: pieces of all renditions in, frames to the assembly out.

use super::{
    PulledSource,
    event::Event,
    lineup::Lineup,
    pacer::Pacer,
    reader::{Read, Reader},
    rendition::Rendition,
};
use crate::{
    graph::Output,
    reception::{
        assembly::{Assembly, COUNT},
        fetching::Fetcher,
        rtsp::link::Stopwatch,
        transport::Faults,
    },
    source_health::{SourceCounts, SourceError, SourceErrorKind},
};
use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use millpond_media::ts::SpliceSection;
use std::{
    future::poll_fn,
    task::Poll,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::sync::mpsc;

/// Pieces of bytes that wait between a rendition and its session.
const QUEUE: usize = 4;
/// Frames that leave at a time.
const FRAMES: usize = 256;
/// Time between two looks at the clock.
const CLOCK: Duration = Duration::from_secs(5);
/// Time without frames, beyond the time limit of replies, after which a source whose list of segments goes on is lost.
const STALL: Duration = Duration::from_secs(20);
/// Pause before lost sound is requested again.
const AGAIN: Duration = Duration::from_secs(15);
/// Most cues that wait for their stretch.
const MOST_CUES: usize = 16;

/// The end of a session.
pub(super) enum End {
    /// Nobody takes frames any more.
    Closed,
    /// The source is lost.
    Lost(SourceError),
}

/// A session.
pub(super) struct Session<'a> {
    source: &'a PulledSource,
    assembly: &'a mut Assembly,
    watch: Stopwatch,
    inlets: Vec<Inlet>,
    pacer: Pacer,
    lineup: Lineup,
    faults: Faults,
    /// Cues of stretches that have not begun.
    cues: Vec<(u64, SpliceSection, Bytes)>,
    /// Why the last piece gave no frames, where that is known.
    problem: Option<String>,
    /// Time at which the last frame was read, or at which the session began.
    heard: Duration,
    has_frames: bool,
    /// Time of the next look at the clock.
    clock: Duration,
    /// Time from which counts are told again.
    counts: Duration,
}

/// The reader of a rendition.
#[derive(Default)]
struct Inlet {
    stretch: Option<u64>,
    reader: Reader,
    /// The last init section, for a reader that begins again.
    init: Option<Bytes>,
    /// Whether the rest of the piece is skipped: its bytes can't be read.
    skips: bool,
    /// Language that the source states.
    language: Option<String>,
}

impl<'a> Session<'a> {
    /// Creates a session with a number of renditions.
    pub(super) fn new(
        source: &'a PulledSource,
        assembly: &'a mut Assembly,
        watch: Stopwatch,
        renditions: usize,
    ) -> Self {
        let now = watch.now();
        let inlets = (0..renditions).map(|_| Inlet::default()).collect();
        Self {
            source,
            assembly,
            watch,
            inlets,
            pacer: Pacer::new(renditions),
            lineup: Lineup::default(),
            faults: Faults::default(),
            cues: Vec::new(),
            problem: None,
            heard: now,
            has_frames: false,
            clock: now + CLOCK,
            counts: now,
        }
    }

    /// Receives until the source is lost and its frames have left.
    pub(super) async fn run<R: Rendition>(mut self, renditions: &mut [R], fetcher: &Fetcher, output: &Output) -> End {
        let watch = self.watch;
        let (mut receivers, mut runs) = (Vec::new(), FuturesUnordered::new());
        for (number, (inlet, rendition)) in self.inlets.iter_mut().zip(renditions).enumerate() {
            inlet.language = rendition.language().map(str::to_owned);
            let (events, receiver) = mpsc::channel(QUEUE);
            receivers.push(receiver);
            runs.push(follow((number, rendition, events), fetcher, watch, Duration::ZERO));
        }
        let mut lost: Option<SourceError> = None;
        let end = loop {
            let now = watch.now();
            if self.leave(now, output).await.is_err() {
                break End::Closed;
            }
            if let Some(error) = lost.take_if(|_| self.pacer.is_empty()) {
                break End::Lost(error);
            }
            if let Some(error) = self.silence(now).filter(|_| lost.is_none()) {
                break End::Lost(error);
            }
            let wake = self.wake(now);
            let Self { pacer, .. } = &self;
            tokio::select! {
                (rendition, event) = next(&mut receivers, |rendition| pacer.accepts(rendition)) => self.take(rendition, event),
                Some(((number, rendition, events), error)) = runs.next() => {
                    self.finish(number);
                    self.pacer.end(number);
                    if number == 0 {
                        lost = Some(error);
                    } else {
                        tracing::warn!(source = %self.source, %error, "sound of a source is lost");
                        runs.push(follow((number, rendition, events), fetcher, watch, AGAIN));
                    }
                }
                () = watch.sleep_until(Some(wake)) => {}
            }
        };
        self.assembly.flush();
        if let Some(run) = self.assembly.take_run() {
            // It is the last one.
            let _ = output.send(run).await;
        }
        self.assembly.end(self.counts());
        end
    }

    fn counts(&self) -> SourceCounts {
        SourceCounts { sessions: u64::from(self.has_frames), ..SourceCounts::default() }
    }

    /// Takes an event of a rendition.
    fn take(&mut self, rendition: usize, event: Event) {
        let mut found = Vec::new();
        let Some(inlet) = self.inlets.get_mut(rendition) else { return };
        match event {
            Event::Begin { stretch, dating, offset, is_torn, init } => {
                if inlet.stretch != Some(stretch) {
                    self.finish(rendition);
                }
                let Some(inlet) = self.inlets.get_mut(rendition) else { return };
                let is_new = inlet.stretch.replace(stretch) != Some(stretch);
                inlet.skips = false;
                inlet.reader.begin(dating, offset, is_torn && !is_new);
                if let Some(init) = init {
                    inlet.init = Some(init.clone());
                    let problem = inlet.push(&init, &mut found, &mut self.faults).err();
                    self.problem = problem.or(self.problem.take());
                }
            }
            Event::Bytes(bytes) => {
                let problem = inlet.push(&bytes, &mut found, &mut self.faults).err();
                self.problem = problem.or(self.problem.take());
            }
            Event::Missed { why } => self.problem = Some(why),
            Event::End { is_broken } => inlet.reader.end(is_broken, &mut found, &mut self.faults),
        }
        self.give(rendition, found);
    }

    /// Ends the stretch of a rendition.
    fn finish(&mut self, rendition: usize) {
        let mut found = Vec::new();
        let Some(inlet) = self.inlets.get_mut(rendition) else { return };
        inlet.reader.finish(&mut found, &mut self.faults);
        self.give(rendition, found);
        if let Some(inlet) = self.inlets.get_mut(rendition) {
            inlet.reader = Reader::default();
        }
    }

    /// Gives what a reader found to the pacer.
    fn give(&mut self, rendition: usize, found: Vec<Read>) {
        let now = self.watch.now();
        let Some(inlet) = self.inlets.get(rendition) else { return };
        let Some(stretch) = inlet.stretch else { return };
        self.pacer.expect(rendition, stretch, inlet.reader.lanes());
        for read in found {
            match read {
                Read::Frame(frame) => {
                    self.heard = now;
                    self.problem = None;
                    self.pacer.push(rendition, stretch, frame, now);
                }
                Read::Cue(splice, bytes) if self.cues.len() < MOST_CUES => self.cues.push((stretch, splice, bytes)),
                Read::Cue(..) => {}
            }
        }
    }

    /// Lets the frames leave that are due.
    async fn leave(&mut self, now: Duration, output: &Output) -> Result<(), crate::graph::Closed> {
        let mut frames = 0;
        while frames < FRAMES
            && let Some(due) = self.pacer.pop(now)
        {
            frames += 1;
            self.has_frames = true;
            let stretch = due.stretch;
            let languages: Vec<_> = self.inlets.iter().map(|inlet| inlet.language.as_deref()).collect();
            self.lineup.take(due, self.pacer.fronts(), &languages, self.assembly);
            for (_, splice, bytes) in self.cues.extract_if(.., |(of, ..)| *of <= stretch) {
                self.assembly.cue(splice, bytes);
            }
        }
        self.assembly.tick(now);
        if let Some(run) = self.assembly.take_run() {
            output.send(run).await?;
        }
        if let Some((count, last)) = self.faults.due(now) {
            tracing::warn!(source = %self.source, count, last, "damage in a source");
        }
        if now >= self.counts {
            self.counts = now + COUNT;
            self.assembly.count(self.counts());
        }
        if now >= self.clock {
            self.clock = now + CLOCK;
            if let Ok(unix) = SystemTime::now().duration_since(UNIX_EPOCH) {
                self.assembly.set_clock(unix, now);
            }
        }
        output.ready().await
    }

    /// Returns an error where segments give no frames for too long.
    fn silence(&self, now: Duration) -> Option<SourceError> {
        if now < self.silent() || !self.pacer.is_empty() {
            return None;
        }
        let missing = self.inlets.first().map_or("no frame", |inlet| inlet.reader.missing());
        let last = self.problem.as_ref().map(|last| format!(": {last}")).unwrap_or_default();
        let words = format!("{missing} for {:.1} s{last}", now.saturating_sub(self.heard).as_secs_f64());
        Some(SourceError { kind: SourceErrorKind::NoMedia, address: self.source.to_string(), words })
    }

    fn silent(&self) -> Duration {
        let stall = if self.has_frames { STALL } else { Duration::ZERO };
        self.heard + self.source.timeout + stall
    }

    fn wake(&self, now: Duration) -> Duration {
        let times = [self.pacer.wake(), self.assembly.wake(), Some(self.silent().max(now + COUNT))];
        times.into_iter().flatten().fold(self.clock.min(self.counts), Duration::min)
    }
}

impl Inlet {
    /// Reads bytes of a piece.
    ///
    /// # Errors
    /// They can't be read, in words. The rest of the piece is skipped.
    fn push(&mut self, bytes: &Bytes, found: &mut Vec<Read>, faults: &mut Faults) -> Result<(), String> {
        if self.skips {
            return Ok(());
        }
        let result = self.reader.push(bytes, found, faults);
        if let Err(words) = &result {
            faults.fragment(words.clone());
            // The next piece is read by another reader, with the same init section.
            self.skips = true;
            self.reader = self.reader.anew();
            if let Some(init) = &self.init
                && self.reader.push(init, found, faults).is_err()
            {
                self.reader = self.reader.anew();
            }
        }
        result
    }
}

/// The number of a rendition, itself, and where its events go.
type Followed<'r, R> = (usize, &'r mut R, mpsc::Sender<Event>);

/// Follows a rendition after a pause. Returns it when it is lost.
async fn follow<'r, R: Rendition>(
    (number, rendition, events): Followed<'r, R>,
    fetcher: &Fetcher,
    watch: Stopwatch,
    pause: Duration,
) -> (Followed<'r, R>, SourceError) {
    tokio::time::sleep(pause).await;
    let error = rendition.run(fetcher, &events, watch).await;
    ((number, rendition, events), error)
}

/// Waits for an event of a rendition that is accepted. Cancel safe.
async fn next(receivers: &mut [mpsc::Receiver<Event>], accepts: impl Fn(usize) -> bool) -> (usize, Event) {
    poll_fn(|context| {
        for (rendition, receiver) in receivers.iter_mut().enumerate() {
            if accepts(rendition)
                && let Poll::Ready(Some(event)) = receiver.poll_recv(context)
            {
                return Poll::Ready((rendition, event));
            }
        }
        Poll::Pending
    })
    .await
}
