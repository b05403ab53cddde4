//! A named live source.

use super::{Linger, LiveRequest, Means, PublishRefused, Source};
use crate::{
    epoch::Epoch,
    graph::{Fork, Graph, LiveMemory, Shared},
    lead::Lead,
    live::{LiveFeed, ShiftOptions, ShiftReport},
    notice::{NoticeBoard, StreamNotices},
    reception::{Conflict, Desk, Entry, NoEntry, Publication, PublicationEnd, PublishedMedia},
    registry::Takers,
    report::{Reporter, StreamState, WeakReporter},
    source_health::{SourceCounts, SourceError, SourceErrorKind},
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// Time after a failure within which the source is not tried again.
const NEGATIVE: Duration = Duration::from_secs(1);
/// Time after the failure of a source within which its past is served without another attempt.
const FAILED: Duration = Duration::from_secs(15);
/// Longest wait of a viewer for the beginning of a phase. Others are told when it begins.
const SOON: Duration = Duration::from_secs(2);
/// Time after the beginning of a phase within which viewers who were told of it can come back.
const RETURN: Duration = Duration::from_secs(30);
/// Time after which a past is opened again that could not be.
pub(super) const REST: Duration = Duration::from_secs(30);

/// A named live source. Its graph runs while a [`LiveFeed`] of it exists, and for the linger time after that.
#[derive(Debug)]
pub struct LiveStream {
    path: Arc<str>,
    source: Source,
    relayed: Option<Source>,
    linger: Linger,
    shift: Option<Arc<ShiftOptions>>,
    notices: StreamNotices,
    /// Whether a task keeps its past.
    is_kept: AtomicBool,
    /// A lock: taken when a viewer comes, and for reports.
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The last run, which may have ended.
    run: Option<Run>,
    /// Keeps the graph of a stream that is never closed.
    pin: Option<Arc<Shared>>,
    /// Run and beginning of a phase for which a task keeps the graph.
    awaited: Option<(u64, Instant)>,
    /// Time and cause of the last failure to open its past, until it is open.
    no_past: Option<(Instant, Arc<str>)>,
}

/// One life of the graph.
#[derive(Debug)]
struct Run {
    id: u64,
    /// The state that was told last.
    state: watch::Receiver<StreamState>,
    /// All else that was told. It lasts as long as the graph.
    reporter: WeakReporter,
    /// The frames that viewers begin with.
    lead: Arc<Lead>,
    /// The graph, which lingers.
    graph: Weak<Graph>,
    /// The share of the graph that viewers hold.
    shared: Weak<Shared>,
    /// Where publishers meet the reception.
    desk: Arc<Desk>,
}

/// A share of a run.
struct Opened {
    id: u64,
    reporter: Reporter,
    shared: Arc<Shared>,
    desk: Arc<Desk>,
}

/// A stream at one moment.
#[derive(Clone, Debug)]
pub struct StreamReport {
    /// Path in URLs.
    pub path: Arc<str>,
    /// Address of its source, without passwords.
    pub source: String,
    /// Address of the server that its frames come from, without passwords; `None` where the source has no servers.
    pub server: Option<Arc<str>>,
    /// State of its source.
    pub state: StreamState,
    /// Number of the run; `None` while the graph does not run.
    pub run: Option<u64>,
    /// The newest epoch; `None` before the first one.
    pub epoch: Option<Epoch>,
    /// Branches of its graph: viewers and other modules.
    pub branches: usize,
    /// Number of branches by the kind of their module, one of [`KINDS`](crate::modules::KINDS).
    pub viewers: BTreeMap<&'static str, usize>,
    /// Frames of this run.
    pub frames: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Frames that slow branches lost, in all.
    pub lost: u64,
    /// Bits per second of its frames, over 4 s; `None` in the first second.
    pub bit_rate: Option<u64>,
    /// Bytes of its frames in memory: frames since the last key frame, and frames that wait for viewers.
    pub memory: u64,
    /// Most of those.
    pub memory_limit: u64,
    /// Cues of this run, repeated ones once.
    pub cues: u64,
    /// What its reception counted in this run; zeros while the graph does not run.
    pub received: SourceCounts,
    /// Time since the last frame of this run.
    pub silence: Option<Duration>,
    /// Its past on the disk; `None` where none is kept now.
    pub shift: Option<ShiftReport>,
    /// Why its past can't be opened, while it runs without one.
    pub shift_failure: Option<Arc<str>>,
}

impl Run {
    /// The graph, while it runs.
    fn graph(&self) -> Option<Arc<Graph>> {
        self.graph.upgrade().filter(|graph| !graph.is_over())
    }
}

impl LiveStream {
    /// Makes the stream of a request, whose changes are posted on a board.
    pub(super) fn new(request: LiveRequest, board: Option<&Arc<dyn NoticeBoard>>) -> Self {
        let LiveRequest { path, source, relayed, linger, shift } = request;
        let notices = StreamNotices::new(&path, board);
        let (is_kept, inner) = (AtomicBool::new(false), Mutex::default());
        Self { path, source, relayed, linger, shift, notices, is_kept, inner }
    }

    /// Path in URLs.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where its frames come from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Where its past is kept.
    pub(super) fn shift(&self) -> Option<&Arc<ShiftOptions>> {
        self.shift.as_ref()
    }

    /// Tells why its past can't be opened; `None` once it is open.
    pub(super) fn tell_past(&self, failure: Option<&str>) {
        self.lock().no_past = failure.map(|why| (Instant::now(), why.into()));
    }

    /// Whether its past could not be opened just now. Each request of a player asks for it.
    pub(super) fn lacks_past(&self) -> bool {
        self.lock().no_past.as_ref().is_some_and(|(failed, _)| failed.elapsed() < REST)
    }

    /// Tells that a task keeps its past, or does no more. Returns whether one did before.
    pub(super) fn keeps(&self, is_kept: bool) -> bool {
        self.is_kept.swap(is_kept, Ordering::AcqRel)
    }

    /// State of its source.
    pub fn state(&self) -> StreamState {
        let inner = self.lock();
        let state = inner.run.as_ref().map(|run| (run.state.borrow().clone(), run.graph().is_some()));
        match state {
            Some((state, true)) => state,
            Some((state @ StreamState::Failed { .. }, false)) => state,
            _ => StreamState::Waiting,
        }
    }

    /// A report of it. `takers` has the takers of all modules, and `memory` is shared by all streams.
    pub(super) fn report(&self, takers: &Takers, memory: &LiveMemory) -> StreamReport {
        let state = self.state();
        let inner = self.lock();
        let run = inner.run.as_ref().and_then(|run| Some((run, run.graph()?)));
        let figures = run.as_ref().map(|(_, graph)| graph.figures()).unwrap_or_default();
        let reporter = run.as_ref().and_then(|(run, _)| run.reporter.upgrade());
        StreamReport {
            path: self.path.clone(),
            source: self.source.to_string(),
            server: reporter.as_ref().and_then(Reporter::server),
            state,
            run: run.as_ref().map(|(run, _)| run.id),
            received: reporter.as_ref().map(Reporter::counts).unwrap_or_default(),
            epoch: reporter.as_ref().and_then(|reporter| reporter.epochs().borrow().last().cloned()),
            branches: figures.branches,
            viewers: run.as_ref().and_then(|(_, graph)| takers.get(&graph.id())).cloned().unwrap_or_default(),
            frames: figures.frames,
            bytes: figures.bytes,
            lost: figures.lost,
            bit_rate: figures.bit_rate,
            memory: figures.held,
            memory_limit: memory.most(),
            cues: reporter.as_ref().map_or(0, |reporter| reporter.cues().borrow().count()),
            silence: figures.last.map(|last| last.elapsed()),
            shift: None,
            shift_failure: run.as_ref().and(inner.no_past.as_ref()).map(|(_, why)| why.clone()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is what a request asks for.
    pub(super) fn is_of(&self, request: &LiveRequest) -> bool {
        self.is_from(&request.source)
            && self.relayed == request.relayed
            && self.linger == request.linger
            && self.shift == request.shift
    }

    /// Whether its frames are those of a source. That it is a stream matters no more once it runs.
    fn is_from(&self, source: &Source) -> bool {
        self.source == *source
            || (self.source.clone().without_titles() == source.clone().without_titles()
                && matches!(self.state(), StreamState::Running { .. }))
    }

    /// Whether its frames come from another server that has its source.
    pub(super) fn is_relay(&self) -> bool {
        self.relayed.is_some()
    }

    /// Whether the stream runs and a viewer's request is for its frames, from any server. A publisher may have begun the stream
    /// here meanwhile, or another server may still send it.
    pub(super) fn serves(&self, request: &LiveRequest) -> bool {
        let is_relayed = self.relayed.is_some() || request.relayed.is_some();
        let own = self.relayed.as_ref().unwrap_or(&self.source);
        let runs = || self.is_taken() || matches!(self.state(), StreamState::Running { .. });
        is_relayed && own == request.relayed.as_ref().unwrap_or(&request.source) && runs()
    }

    /// Whether its graph runs, or its last run gave frames.
    pub(super) fn is_known(&self) -> bool {
        let inner = self.lock();
        inner.run.as_ref().is_some_and(|run| run.graph().is_some() || run.lead.track().is_some())
    }

    /// The fork of its graph, while that runs.
    pub(super) fn fork(&self) -> Option<Arc<Fork>> {
        let inner = self.lock();
        inner.run.as_ref().and_then(Run::graph).map(|graph| graph.fork().clone())
    }

    /// Whether its source failed just now, so that another attempt would take time.
    pub(crate) fn failed_just_now(&self) -> bool {
        matches!(self.state(), StreamState::Failed { at, .. } if at.elapsed() < FAILED)
    }

    /// Whether its graph runs, or its source failed just now.
    pub(super) fn is_busy(&self) -> bool {
        let inner = self.lock();
        inner.run.as_ref().is_some_and(|run| run.graph().is_some() || run.failed().is_some())
    }

    /// The graph that runs, else a new one.
    ///
    /// # Errors
    /// The source failed just now.
    fn open(&self, means: &Means) -> Result<Opened, Arc<SourceError>> {
        let Means { registry, memory, .. } = means;
        let mut inner = self.lock();
        if inner.pin.as_ref().is_some_and(|pin| pin.is_over()) {
            inner.pin = None;
        }
        let linger = match self.linger {
            Linger::For(time) => time,
            Linger::Always => Duration::ZERO,
        };
        if let Some(run) = &mut inner.run {
            let known = run.shared.upgrade().filter(|shared| !shared.is_over());
            let known = known.or_else(|| Some(Arc::new(Shared::new(run.graph()?, linger))));
            if let Some((shared, reporter)) = known.and_then(|shared| Some((shared, run.reporter.upgrade()?))) {
                run.shared = Arc::downgrade(&shared);
                return Ok(Opened { id: run.id, reporter, shared, desk: run.desk.clone() });
            }
            if let Some(why) = run.failed() {
                return Err(why);
            }
        }
        let reporter = Reporter::new(memory.totals().clone(), self.notices.clone());
        let desk = Arc::<Desk>::default();
        let modules = self.source.modules(&self.path, means, reporter.clone(), &desk);
        let memory = memory.of_stream(&self.source.to_string(), reporter.clone());
        let splicer = reporter.splicer().clone();
        let graph = Arc::new(Graph::live(registry, (&self.path, modules), splicer, memory));
        let id = fastrand::u64(..);
        let shared = Arc::new(Shared::new(graph.clone(), linger));
        let (graph, weak) = (Arc::downgrade(&graph), Arc::downgrade(&shared));
        let (state, lead) = (reporter.state(), reporter.splicer().lead().clone());
        if let Some(earlier) = &inner.run {
            lead.recall(&earlier.lead);
        }
        let desk_of_run = desk.clone();
        inner.run =
            Some(Run { id, state, reporter: reporter.downgrade(), lead, graph, shared: weak, desk: desk_of_run });
        Ok(Opened { id, reporter, shared, desk })
    }

    /// Opens it without waiting for its formats. `None` where its source failed just now.
    pub(super) fn hold(&self, means: &Means) -> Option<Arc<Shared>> {
        self.open(means).ok().map(|opened| opened.shared)
    }

    /// Opens it, and waits until its formats are known.
    ///
    /// # Errors
    /// The source fails, no frame comes within `patience`, or the stream is a phase that begins later.
    pub(super) async fn feed(&self, means: &Means, patience: Duration) -> Result<Arc<LiveFeed>, Arc<SourceError>> {
        let Opened { id, reporter, shared, .. } = self.open(means)?;
        let (mut states, epochs) = (reporter.state(), reporter.epochs());
        let known = async {
            loop {
                // The state's lock is free again before another one is taken.
                let state = states.borrow_and_update().clone();
                match state {
                    StreamState::Failed { why, .. } => return Err(why),
                    StreamState::Scheduled { begins } => self.expect(begins, (id, &shared))?,
                    StreamState::Waiting | StreamState::Running { .. } | StreamState::Lost { .. } => {}
                }
                if let Some(epoch) = epochs.borrow().last().cloned() {
                    return Ok(epoch);
                }
                tokio::select! {
                    _ = states.changed() => {}
                    () = shared.ended() => {
                        if let StreamState::Failed { why, .. } = &*states.borrow() {
                            return Err(why.clone());
                        }
                        return Err(self.error(SourceErrorKind::NoMedia, "it ended before its first frame"));
                    }
                }
            }
        };
        let late = || match self.source {
            Source::Published => {
                let words = "nobody pushes this stream: push it to its path, or correct the path";
                self.error(SourceErrorKind::Unpublished, &format!("{words} ({} s were waited)", patience.as_secs()))
            }
            _ => self.error(SourceErrorKind::TimedOut, &format!("no media within {patience:?}")),
        };
        let epoch = tokio::time::timeout(patience, known).await.unwrap_or_else(|_| Err(late()))?;
        if self.linger == Linger::Always {
            self.lock().pin = Some(shared.clone());
        }
        Ok(Arc::new(LiveFeed::new(self.path.clone(), id, epoch, &reporter, shared)))
    }

    /// Checks whether a phase begins so soon that a viewer waits for it. For a later phase, a task holds its run until the viewer can
    /// have come back: a phase without a holder loses its turn.
    ///
    /// # Errors
    /// The phase begins later.
    fn expect(&self, begins: Instant, (run, shared): (u64, &Arc<Shared>)) -> Result<(), Arc<SourceError>> {
        let now = tokio::time::Instant::now().into_std();
        let kind = SourceErrorKind::NotBegun { begins };
        let Some(seconds) = kind.retry_after(now).filter(|_| begins > now + SOON) else { return Ok(()) };
        if self.lock().awaited.replace((run, begins)) != Some((run, begins)) {
            let shared = shared.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = tokio::time::sleep_until((begins + RETURN).into()) => {}
                    () = shared.ended() => {}
                }
            });
        }
        let phase = match &self.source {
            Source::Channel(channel) => channel.phase().map(ToString::to_string),
            _ => None,
        };
        let phase = phase.as_deref().unwrap_or("it");
        Err(self.error(kind, &format!("{phase} begins in {seconds} s")))
    }

    /// Whether a publication is under way that only a replacement can end.
    pub(crate) fn is_taken(&self) -> bool {
        self.lock().run.as_ref().is_some_and(|run| run.desk.is_taken())
    }

    /// Path of the stream whose frames a module publishes here; `None` for other sources.
    pub(super) fn fed_by(&self) -> Option<Arc<str>> {
        self.lock().run.as_ref()?.desk.stream()
    }

    /// Whether publishers push it.
    pub(super) fn is_published(&self) -> bool {
        self.source == Source::Published
    }

    /// Disconnects its publisher. Returns whether there was one.
    pub(crate) fn end_publication(&self) -> bool {
        self.lock().run.as_ref().is_some_and(|run| run.desk.end(PublicationEnd::Closed))
    }

    /// Ends its graph: source, publisher and viewers. Returns whether it ran.
    pub(super) fn end(&self, why: PublicationEnd) -> bool {
        let mut inner = self.lock();
        inner.pin = None;
        let Some(run) = &inner.run else { return false };
        run.desk.end(why);
        run.graph().inspect(|graph| graph.fork().close()).is_some()
    }

    /// Opens it for a publisher.
    ///
    /// # Errors
    /// Another publisher pushes it, or its source is none.
    pub(super) fn publish(
        &self,
        means: &Means,
        mut media: PublishedMedia,
        conflict: Conflict,
    ) -> Result<Publication, PublishRefused> {
        if self.source != Source::Published {
            return Err(PublishRefused::NotPublished);
        }
        loop {
            let Opened { shared, desk, .. } = self.open(means)?;
            media.lead_to(shared.id());
            let (publication, queue, presence) = Publication::new(shared, &media, self.notices.clone());
            match desk.enter(Entry { media, queue, presence }, conflict) {
                Ok(()) => return Ok(publication),
                Err(NoEntry::Taken) => return Err(PublishRefused::Taken),
                // The reception ends just now. That of the next run has not begun.
                Err(NoEntry::Closed(entry)) => {
                    media = entry.media;
                    self.lock().run = None;
                }
            }
        }
    }

    fn error(&self, kind: SourceErrorKind, words: &str) -> Arc<SourceError> {
        Arc::new(SourceError { kind, address: self.source.to_string(), words: words.to_owned() })
    }
}

impl Run {
    /// The failure of a source that is not tried again yet.
    fn failed(&self) -> Option<Arc<SourceError>> {
        match &*self.state.borrow() {
            StreamState::Failed { at, why } if at.elapsed() < NEGATIVE => Some(why.clone()),
            _ => None,
        }
    }
}
