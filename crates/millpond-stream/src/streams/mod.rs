//! Live streams: named sources whose frames arrive, each opened once for all of its viewers.
//!
//! A [`LiveStream`] is a name and its [`Source`]. Its graph runs while it has viewers, and lingers a while. One life of the graph
//! is a run. [`Streams`] has all streams of an engine, and begins what needs several parts of a stream: windows with their
//! segmenters, publications, clips, and the past that is kept without viewers.

mod attaching;
mod following;
mod insertions;
mod keeping;
mod key_frame;
mod means;
mod publishing;
mod source;
mod splicing;
mod stream;
#[cfg(test)]
pub(crate) mod tests;

pub use attaching::{Attached, AttachmentEnd, CannotAttach};
pub(crate) use following::follow;
pub use insertions::CannotInsert;
pub(crate) use insertions::Insertions;
pub use key_frame::NewestKeyFrame;
pub(crate) use means::Means;
pub use publishing::{PublishRefused, PublishRequest};
pub use source::{Linger, LiveRequest, Source};
pub use stream::{LiveStream, StreamReport};

use crate::{
    cannot_open::CannotOpen,
    graph::{Fork, LiveMemory, Shared},
    live::{Found, LiveFeed, LiveWindow, NewWindow, Program, WindowOptions, Windows},
    modules::Segmenter,
    reception::{Publication, PublicationEnd},
    report::StreamState,
    source_health::{LiveTotals, SourceError},
    splice::InsertionReport,
    stored::StoredMedia,
};
use millpond_utc::WallClock;
use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::runtime::Handle;

/// The live streams of an engine, by their paths.
pub(crate) struct Streams {
    means: Means,
    /// A lock: taken for a look-up.
    by_path: Mutex<BTreeMap<Arc<str>, Arc<LiveStream>>>,
    /// Most streams that are known at a time.
    most: AtomicUsize,
    windows: Windows,
    insertions: Insertions,
    /// A lock: held while the output of a module becomes a publication, so that two of them form no circle.
    outputs: Mutex<()>,
    /// Whether another process takes publishers.
    is_handed_over: AtomicBool,
}

impl Streams {
    /// No stream is known yet. At most `most` will be. Runs are numbered by `clock`.
    pub(crate) fn new(means: Means, most: usize, clock: WallClock) -> Self {
        Self {
            means,
            by_path: Mutex::default(),
            most: AtomicUsize::new(most),
            windows: Windows::new(clock),
            insertions: Insertions::default(),
            outputs: Mutex::default(),
            is_handed_over: AtomicBool::new(false),
        }
    }

    /// Changes the most streams, and the most bytes of memory of each.
    pub(crate) fn set_most(&self, streams: usize, bytes: u64) {
        self.most.store(streams, Ordering::Relaxed);
        self.means.memory.set_most(bytes);
    }

    /// Totals of all streams since the start.
    pub(crate) fn totals(&self) -> &LiveTotals {
        self.means.memory.totals()
    }

    /// Memory of the frames of all streams.
    pub(crate) fn memory(&self) -> &LiveMemory {
        &self.means.memory
    }

    /// Windows of the streams.
    pub(crate) fn windows(&self) -> &Windows {
        &self.windows
    }

    /// Clips that wait for their turn, play, or have ended not long ago.
    pub(crate) fn insertions(&self) -> &Insertions {
        &self.insertions
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<LiveStream>>> {
        self.by_path.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the stream of a path that is known.
    pub(crate) fn get(&self, path: &str) -> Option<Arc<LiveStream>> {
        self.lock().get(path).cloned()
    }

    /// The fork of a stream that runs.
    fn fork(&self, path: &str) -> Option<Arc<Fork>> {
        self.get(path)?.fork()
    }

    /// The stream of a viewer's request: the known one of its path, unless that has another source, else a new one.
    ///
    /// # Errors
    /// There are as many others as may be, and all are in use.
    pub(crate) fn find(&self, request: LiveRequest) -> Result<Arc<LiveStream>, CannotOpen> {
        self.find_if(request, LiveStream::serves)
    }

    /// The same, where the known stream also counts if it `serves` the request.
    fn find_if(
        &self,
        request: LiveRequest,
        serves: impl FnOnce(&LiveStream, &LiveRequest) -> bool,
    ) -> Result<Arc<LiveStream>, CannotOpen> {
        let most = self.most.load(Ordering::Relaxed);
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
        let new = Arc::new(LiveStream::new(request, self.means.notices.as_ref()));
        streams.insert(path, new.clone());
        Ok(new)
    }

    /// Opens a stream, unless it runs, and waits until its formats are known. Its past is kept from then on. Cancel safe.
    ///
    /// # Errors
    /// What its source did, or that formats were not known within `patience`.
    pub(crate) async fn feed(
        self: &Arc<Self>,
        stream: &Arc<LiveStream>,
        patience: Duration,
    ) -> Result<Arc<LiveFeed>, Arc<SourceError>> {
        let feed = stream.feed(&self.means, patience).await?;
        // Names without a source get no folder.
        self.keep_past(stream).await;
        Ok(feed)
    }

    /// Opens a stream, unless it runs, without waiting for its formats. The stream stays open while the share exists. `None` where
    /// its source failed just now.
    pub(crate) fn hold(&self, stream: &LiveStream) -> Option<Arc<Shared>> {
        stream.hold(&self.means)
    }

    /// Begins a publication.
    ///
    /// # Errors
    /// Another publisher pushes the stream, or there are too many streams.
    pub(crate) fn publish(self: &Arc<Self>, request: PublishRequest) -> Result<Publication, PublishRefused> {
        let PublishRequest { stream, media, conflict } = request;
        if self.has_handed_over() {
            return Err(PublishRefused::HandedOver);
        }
        // A stream of another server gives way to the publisher.
        let stream = self.find_if(stream, |_, _| false)?;
        let publication = stream.publish(&self.means, media, conflict)?;
        if stream.shift().is_some() {
            // Its past is kept without viewers too. A publisher without media is told by its own time limit.
            let streams = self.clone();
            tokio::spawn(async move { drop(streams.feed(&stream, keeping::PATIENCE).await) });
        }
        Ok(publication)
    }

    /// Ends the stream of a path. Returns whether it ran.
    pub(crate) fn end(&self, path: &str) -> bool {
        self.get(path).is_some_and(|stream| stream.end(PublicationEnd::Closed))
    }

    /// Ends all published streams, and takes no publisher any more. Segments of the streams stay.
    pub(crate) fn hand_over_publishers(&self) {
        self.is_handed_over.store(true, Ordering::Release);
        let streams: Vec<_> = self.lock().values().cloned().collect();
        for stream in streams.iter().filter(|stream| stream.is_published()) {
            self.windows.keep(stream.path());
            stream.end(PublicationEnd::HandedOver);
        }
    }

    /// Whether another process of the server takes publishers.
    pub(crate) fn has_handed_over(&self) -> bool {
        self.is_handed_over.load(Ordering::Acquire)
    }

    /// Whether the stream of a path is running.
    pub(crate) fn is_running(&self, path: &str) -> bool {
        self.get(path).is_some_and(|stream| matches!(stream.state(), StreamState::Running { .. }))
    }

    /// Whether the stream of a path comes from another server that has its source.
    pub(crate) fn is_relay(&self, path: &str) -> bool {
        self.get(path).is_some_and(|stream| stream.is_relay() && stream.is_busy())
    }

    /// Returns the paths of the streams that are running in the folder `path`, not below another one.
    pub(crate) fn running_in(&self, path: &str) -> Vec<Arc<str>> {
        let first: Arc<str> = format!("{path}/").into();
        let streams = self.lock();
        let inside = streams.range(first.clone()..).map_while(|(of, stream)| Some((of.strip_prefix(&*first)?, stream)));
        let running = inside
            .filter(|(name, stream)| !name.contains('/') && matches!(stream.state(), StreamState::Running { .. }));
        running.map(|(_, stream)| stream.path().into()).collect()
    }

    /// Returns reports of the streams that are running, failed just now, or gave frames before, by their paths.
    pub(crate) fn reports(&self) -> Vec<StreamReport> {
        let mut streams = self.lock();
        streams.retain(|_, stream| is_held(stream) || stream.is_known());
        let Means { registry, memory, .. } = &self.means;
        let takers = registry.takers();
        let past = |path: &str| self.windows.shift_report(path);
        let report =
            |stream: &LiveStream| StreamReport { shift: past(stream.path()), ..stream.report(&takers, memory) };
        streams.values().map(|stream| report(stream)).collect()
    }

    /// Inserts a clip into a stream that runs.
    ///
    /// # Errors
    /// The stream does not run, has no such viewer, too many clips wait, or viewers could not play the clip.
    pub(crate) fn insert(
        &self,
        path: &str,
        clip: &Arc<StoredMedia>,
        when: (Option<Duration>, Option<u64>),
    ) -> Result<InsertionReport, CannotInsert> {
        let path = path.trim_matches('/');
        let fork = self.fork(path).ok_or_else(|| CannotInsert::NotRunning(path.to_owned()))?;
        self.insertions.insert(&self.means, (path, fork), clip, when)
    }

    /// Returns the window of a program: the one that runs, with its lease renewed, else a new one with its segmenter.
    ///
    /// # Errors
    /// [`CannotOpen::NoTracks`]: live segments can carry none of the tracks.
    pub(crate) fn window(&self, program: &Program, options: WindowOptions) -> Result<Arc<LiveWindow>, CannotOpen> {
        let runtime = Handle::current();
        if let Some(known) = self.windows.running(program.key()).filter(|known| known.renew()) {
            return Ok(known);
        }
        let Means { registry, memory, .. } = &self.means;
        let new = match self.windows.open(program, options, (memory, self.is_relay(program.path())))? {
            // Another request made it in the meantime: its lease is fresh.
            Found::Running(known) => return Ok(known),
            Found::New(new) => *new,
        };
        let NewWindow { window, tracks, rules, first, past, continuation, ending } = new;
        let segmenter =
            Segmenter::new(window.clone(), program.feed.clone(), (tracks, rules, first), (memory.clone(), past));
        let segmenter = segmenter.continuing(continuation);
        program.lend((registry, &runtime), Box::new(segmenter), ending.lease());
        Ok(window)
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").field("by_path", &self.by_path).finish_non_exhaustive()
    }
}

/// Whether a stream is in use beyond the list.
fn is_held(stream: &Arc<LiveStream>) -> bool {
    Arc::strong_count(stream) > 1 || stream.is_busy()
}
