//! All live streams of an engine.

use super::{
    Conflict, LiveFeed, LiveRequest, LiveStream, LiveTotals, Publication, PublishRefused, PublishRequest, StreamReport,
    stream::Means,
};
use crate::{
    CannotOpen, Manager,
    graph::LiveMemory,
    reception::{SourceError, Turns},
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Live streams by their paths.
#[derive(Debug)]
pub(crate) struct Streams {
    memory: LiveMemory,
    turns: Turns,
    /// A lock: taken for a look-up.
    by_path: Mutex<BTreeMap<Arc<str>, Arc<LiveStream>>>,
}

impl Streams {
    /// No stream is known yet. The frames of all are counted in `memory`.
    pub(crate) fn new(memory: LiveMemory) -> Self {
        Self { memory, turns: Turns::default(), by_path: Mutex::default() }
    }

    /// Totals of all streams since the start.
    pub(super) fn totals(&self) -> &LiveTotals {
        self.memory.totals()
    }

    /// Memory of the frames.
    pub(crate) fn memory(&self) -> &LiveMemory {
        &self.memory
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<LiveStream>>> {
        self.by_path.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream of a request: the known one of its path, unless that has another source, else a new one.
    ///
    /// # Errors
    /// There are `most` others, and all are in use.
    fn find(&self, request: LiveRequest, most: usize) -> Result<Arc<LiveStream>, CannotOpen> {
        let mut streams = self.lock();
        if let Some(known) = streams.get(&request.path).filter(|known| known.is_of(&request)) {
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

impl Manager {
    /// The live stream of a request: the one that is known by its path, else a new one. It is not opened yet. A stream of the
    /// same path with another source is replaced; its viewers stay until they leave.
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
    /// What its source did at the first attempt, or within the last second; [`TimedOut`](crate::reception::SourceErrorKind::TimedOut)
    /// where formats were not known within `patience`.
    pub async fn live_feed(
        &self,
        stream: &Arc<LiveStream>,
        patience: Duration,
    ) -> Result<Arc<LiveFeed>, Arc<SourceError>> {
        stream.feed(self.means(), patience).await
    }

    /// Begins a publication. Viewers that wait for the stream get it, and it stays open while it is published.
    ///
    /// # Errors
    /// Another publisher pushes the stream, or there are too many streams.
    pub fn publish(&self, request: PublishRequest) -> Result<Publication, PublishRefused> {
        let PublishRequest { stream, media, conflict } = request;
        self.live(stream)?.publish(self.means(), media, conflict)
    }

    /// Tells whether a publication of the stream would be refused now because of another publisher.
    pub fn is_taken(&self, path: &str, conflict: Conflict) -> bool {
        let known = self.live_streams().lock().get(path).cloned();
        conflict == Conflict::Refuse && known.is_some_and(|stream| stream.is_taken())
    }

    fn means(&self) -> Means<'_> {
        Means {
            registry: self.registry(),
            connector: &self.options().connector,
            turns: &self.live_streams().turns,
            memory: &self.live_streams().memory,
        }
    }

    /// Reports of the live streams that are running, failed just now, or gave frames before, by their paths.
    pub fn streams(&self) -> Vec<StreamReport> {
        let mut streams = self.live_streams().lock();
        streams.retain(|_, stream| is_held(stream) || stream.is_known());
        let takers = self.registry().takers();
        streams.values().map(|stream| stream.report(&takers)).collect()
    }
}
