//! All live streams of an engine.

use super::{
    Insertions, LiveFeed, LiveRequest, LiveStream, PublishRefused, PublishRequest, StreamReport, TimeShift,
    WindowOptions,
    stream::{Means, REST},
};
use crate::{
    CannotOpen, Manager, Program,
    graph::{Fork, LiveMemory},
    reception::{Balance, Conflict, Publication, PublicationEnd, Turns},
    report::StreamState,
    source::{LiveTotals, SourceError},
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// Longest wait for the disk before a stream begins without its past.
const OPENING: Duration = Duration::from_secs(2);
/// Longest wait for the first frame of a stream whose past is kept.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two windows of a stream whose past is kept.
const PAUSE: Duration = Duration::from_secs(1);

/// Live streams by their paths.
#[derive(Debug)]
pub(crate) struct Streams {
    memory: LiveMemory,
    turns: Turns,
    balance: Balance,
    /// A lock: taken for a look-up.
    by_path: Mutex<BTreeMap<Arc<str>, Arc<LiveStream>>>,
    insertions: Insertions,
    /// Whether another process takes publishers.
    is_handed_over: AtomicBool,
}

impl Streams {
    /// No stream is known yet. The frames of all are counted in `memory`.
    pub(crate) fn new(memory: LiveMemory) -> Self {
        let (turns, balance) = (Turns::default(), Balance::default());
        let (by_path, insertions) = (Mutex::default(), Insertions::default());
        Self { memory, turns, balance, by_path, insertions, is_handed_over: AtomicBool::new(false) }
    }

    /// Totals of all streams since the start.
    pub(super) fn totals(&self) -> &LiveTotals {
        self.memory.totals()
    }

    /// Memory of the frames.
    pub(crate) fn memory(&self) -> &LiveMemory {
        &self.memory
    }

    /// Clips that wait for their turn, play, or have ended not long ago.
    pub(super) fn insertions(&self) -> &Insertions {
        &self.insertions
    }

    /// The fork of a stream that runs.
    pub(super) fn fork(&self, path: &str) -> Option<Arc<Fork>> {
        let stream = self.lock().get(path).cloned();
        stream?.fork()
    }

    /// State of the stream of a path.
    pub(super) fn state(&self, path: &str) -> Option<StreamState> {
        let stream = self.lock().get(path).cloned();
        stream.map(|stream| stream.state())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<LiveStream>>> {
        self.by_path.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream of a viewer's request: the known one of its path, unless that has another source, else a new one.
    ///
    /// # Errors
    /// There are `most` others, and all are in use.
    fn find(&self, request: LiveRequest, most: usize) -> Result<Arc<LiveStream>, CannotOpen> {
        self.find_if(request, most, LiveStream::serves)
    }

    /// The same, where the known stream also counts if it `serves` the request.
    fn find_if(
        &self,
        request: LiveRequest,
        most: usize,
        serves: impl FnOnce(&LiveStream, &LiveRequest) -> bool,
    ) -> Result<Arc<LiveStream>, CannotOpen> {
        let mut streams = self.lock();
        let known = streams.get(&request.path);
        if let Some(known) = known.filter(|known| known.is_of(&request) || serves(known, &request)) {
            return Ok(known.clone());
        }
        // Names that never gave a frame are forgotten, and when there are many also those that nobody watches.
        streams.retain(|_, stream| is_held(stream) || stream.is_known());
        if streams.len() >= most {
            streams.retain(|_, stream| is_held(stream));
        }
        if streams.len() >= most {
            return Err(CannotOpen::Streams);
        }
        let path = request.path.clone();
        let new = Arc::new(LiveStream::new(request));
        streams.insert(path, new.clone());
        Ok(new)
    }
}

/// Whether a stream is in use beyond the list.
fn is_held(stream: &Arc<LiveStream>) -> bool {
    Arc::strong_count(stream) > 1 || stream.is_busy()
}

/// Keeps a window of a stream running, and so its past, until the stream ends. A past that can't be opened is tried again.
async fn keep_past(manager: Weak<Manager>, stream: Arc<LiveStream>, mut past: Option<(Arc<TimeShift>, WindowOptions)>) {
    while let Some(manager) = manager.upgrade() {
        if past.is_none() {
            past = manager.open_past(&stream).await;
        }
        let Some((_, options)) = &past else {
            drop(manager);
            sleep(REST).await;
            if !stream.is_busy() {
                break;
            }
            continue;
        };
        let Ok(feed) = stream.feed(manager.means(), PATIENCE).await else { break };
        let window = manager.window(&Program::live(&feed), *options);
        drop((feed, manager));
        let Ok(window) = window else { break };
        if !window.has_past() {
            // Viewers began it while the past could not be opened.
            window.end();
        }
        window.over().await;
        drop(window);
        sleep(PAUSE).await;
        if !stream.is_busy() {
            break;
        }
    }
    drop(past);
    stream.keeps(false);
}

impl Manager {
    /// The live stream of a viewer's request: the one that is known by its path, else a new one. It is not opened yet. A stream of the
    /// same path with another source is replaced; its viewers stay until they leave. Where one of both is relayed and gives frames, it stays.
    ///
    /// # Errors
    /// [`CannotOpen::Streams`]: there are too many.
    pub fn live(&self, request: LiveRequest) -> Result<Arc<LiveStream>, CannotOpen> {
        self.live_streams().find(request, self.options().max_streams)
    }

    /// Opens a live stream, unless it runs, and waits until its formats are known. The stream stays open as long as the feed is
    /// held. Cancel safe.
    ///
    /// # Errors
    /// What its source did at the first attempt, or within the last second; [`TimedOut`](crate::source::SourceErrorKind::TimedOut)
    /// where formats were not known within `patience`.
    pub async fn live_feed(
        self: &Arc<Self>,
        stream: &Arc<LiveStream>,
        patience: Duration,
    ) -> Result<Arc<LiveFeed>, Arc<SourceError>> {
        let feed = stream.feed(self.means(), patience).await?;
        // Names without a source get no folder.
        let past = self.open_past(stream).await;
        if stream.shift().is_some() && !stream.keeps(true) {
            tokio::spawn(keep_past(Arc::downgrade(self), stream.clone(), past));
        }
        Ok(feed)
    }

    /// Begins a publication. Viewers that wait for the stream get it, and it stays open while it is published.
    ///
    /// # Errors
    /// Another publisher pushes the stream, or there are too many streams.
    pub fn publish(self: &Arc<Self>, request: PublishRequest) -> Result<Publication, PublishRefused> {
        let PublishRequest { stream, media, conflict } = request;
        if self.has_handed_over() {
            return Err(PublishRefused::HandedOver);
        }
        // A stream of another server gives way to the publisher.
        let stream = self.live_streams().find_if(stream, self.options().max_streams, |_, _| false)?;
        let publication = stream.publish(self.means(), media, conflict)?;
        if stream.shift().is_some() {
            // Its past is kept without viewers too. A publisher without media is told by its own time limit.
            let manager = self.clone();
            tokio::spawn(async move { drop(manager.live_feed(&stream, PATIENCE).await) });
        }
        Ok(publication)
    }

    /// Opens the past of a stream on the disk, where it has one. It waits for the disk for [`OPENING`] at most.
    async fn open_past(&self, stream: &LiveStream) -> Option<(Arc<TimeShift>, WindowOptions)> {
        let options = stream.shift()?.clone();
        let (windows, path, window) = (self.live_windows().clone(), stream.path().to_owned(), options.window);
        if let Some(known) = windows.shift(&path) {
            return Some((known, window));
        }
        if stream.lacks_past() {
            return None;
        }
        let opening = tokio::task::spawn_blocking(move || windows.open_shift(&path, &options));
        let why = match timeout(OPENING, opening).await {
            Ok(Ok(Ok(past))) => {
                stream.tell_past(None);
                return Some((past, window));
            }
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(_)) | Err(_) => format!("the disk did not answer within {OPENING:?}"),
        };
        stream.tell_past(Some(&why));
        tracing::warn!(stream = stream.path(), why, "time shift is off");
        None
    }

    /// Tells whether a publication of the stream would be refused now because of another publisher.
    pub fn is_taken(&self, path: &str, conflict: Conflict) -> bool {
        let known = self.live_streams().lock().get(path).cloned();
        conflict == Conflict::Refuse && known.is_some_and(|stream| stream.is_taken())
    }

    /// Ends the live stream of a path: its source is closed, its publisher is disconnected, and its viewers get no more frames. The
    /// next viewer or publisher begins it again. Returns whether it ran.
    pub fn end_stream(&self, path: &str) -> bool {
        let known = self.live_streams().lock().get(path).cloned();
        known.is_some_and(|stream| stream.end(PublicationEnd::Closed))
    }

    /// Ends all published streams, and takes no publisher any more: another process of the server takes them. Segments of the
    /// streams stay until the engine is dropped.
    pub fn hand_over_publishers(&self) {
        self.live_streams().is_handed_over.store(true, Ordering::Release);
        let streams: Vec<_> = self.live_streams().lock().values().cloned().collect();
        for stream in streams.iter().filter(|stream| stream.is_published()) {
            self.live_windows().keep(stream.path());
            stream.end(PublicationEnd::HandedOver);
        }
    }

    /// Tells whether another process of the server takes publishers.
    pub fn has_handed_over(&self) -> bool {
        self.live_streams().is_handed_over.load(Ordering::Acquire)
    }

    /// Disconnects the publisher of a stream: its next media is refused. Returns whether there was one.
    pub fn end_publication(&self, path: &str) -> bool {
        let known = self.live_streams().lock().get(path).cloned();
        known.is_some_and(|stream| stream.end_publication())
    }

    /// Tells whether the live stream of a path is running.
    pub fn is_running(&self, path: &str) -> bool {
        let known = self.live_streams().lock().get(path).cloned();
        known.is_some_and(|stream| matches!(stream.state(), StreamState::Running { .. }))
    }

    /// Tells whether the live stream of a path comes from another server that has its source.
    pub fn is_relay(&self, path: &str) -> bool {
        let known = self.live_streams().lock().get(path).cloned();
        known.is_some_and(|stream| stream.is_relay() && stream.is_busy())
    }

    /// Paths of the live streams that are running in the folder `path`, not below another one.
    pub fn running_in(&self, path: &str) -> Vec<Arc<str>> {
        let first: Arc<str> = format!("{path}/").into();
        let streams = self.live_streams().lock();
        let inside = streams.range(first.clone()..).map_while(|(of, stream)| Some((of.strip_prefix(&*first)?, stream)));
        let running = inside
            .filter(|(name, stream)| !name.contains('/') && matches!(stream.state(), StreamState::Running { .. }));
        running.map(|(_, stream)| stream.path().into()).collect()
    }

    fn means(&self) -> Means<'_> {
        Means {
            registry: self.registry(),
            connector: self.connector(),
            relay: self.relay(),
            turns: &self.live_streams().turns,
            balance: &self.live_streams().balance,
            memory: &self.live_streams().memory,
            resources: self.resources(),
        }
    }

    /// Reports of the live streams that are running, failed just now, or gave frames before, by their paths.
    pub fn streams(&self) -> Vec<StreamReport> {
        let mut streams = self.live_streams().lock();
        streams.retain(|_, stream| is_held(stream) || stream.is_known());
        let takers = self.registry().takers();
        let memory = &self.live_streams().memory;
        let past = |path: &str| self.live_windows().shift_report(path);
        let report =
            |stream: &LiveStream| StreamReport { shift: past(stream.path()), ..stream.report(&takers, memory) };
        streams.values().map(|stream| report(stream)).collect()
    }
}
