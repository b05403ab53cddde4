//! Copies of the windows of live streams that other nodes of the cluster have.
//!
//! The node that asks the source next has a copy of each stream that is watched, and goes on in it when the first one dies. Where nodes do not pass
//! requests on, each node that is asked for a stream of another one has a copy too: a player that loses its node asks one that its manifest lists.
//! So any node answers any address of a run.

use super::{LaterSources, Sources, StreamPath};
use crate::cluster::{Cluster, Start};
use millpond_cluster::ObjectKey;
use millpond_library::uri::encode;
use millpond_stream::{
    Linger, Program,
    live::{CannotCopy, LiveWindow, WindowCopy},
};
use std::{
    collections::HashMap,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use tokio::time::{Instant, interval, sleep, timeout};

/// Interval between looks at the streams of other nodes, and between two messages that a copy has viewers.
const LOOK: Duration = Duration::from_secs(1);
/// Silence after which the node that is copied is probed. It sends a sign of life twice a second.
const QUIET: Duration = Duration::from_millis(750);
/// Longest silence of a node that answers probes.
const SILENCE: Duration = Duration::from_secs(3);
/// Pause before a node is asked again.
const PAUSE: Duration = Duration::from_millis(200);
/// The same, after it refused.
const REFUSED: Duration = Duration::from_secs(5);
/// Longest wait of a viewer for the beginning of a copy. After it, the stream itself is taken from its node.
const BEGINNING: Duration = Duration::from_secs(10);
/// Longest wait of a viewer for the copy that takes the place of this node's own window.
const REPLACING: Duration = Duration::from_secs(3);
/// Time for which a viewer's request keeps a copy that has not begun.
const DEMAND: Duration = Duration::from_secs(15);
/// Longest wait for the formats of a source that is asked in place of another node.
const FORMATS: Duration = Duration::from_secs(10);
/// Time for which the source is asked again and again: after it, the copy is forgotten.
const TAKING_OVER: Duration = Duration::from_secs(25);
/// Most copies of a node.
const MOST: usize = 64;

/// Mark in the query of a node that has viewers of a copy.
pub(crate) const WATCH_MARK: &str = "_millpond_watch";
/// Mark in the query of a node that copies, as of one that takes the stream.
const RELAY_QUERY: &str = "_millpond_relay=1";

/// The copies of a node.
#[derive(Debug)]
pub(crate) struct Copies {
    cluster: Arc<Cluster>,
    sources: LaterSources,
    /// By the paths of their streams. A lock, held for a look or a change.
    kept: Mutex<HashMap<Arc<str>, Kept>>,
}

/// A copy that is kept.
#[derive(Debug)]
struct Kept {
    /// The last demand of a viewer.
    demand: Option<Instant>,
    /// Whether the other node refuses it, so that viewers must do without.
    is_refused: bool,
    /// Address of the node whose window it follows.
    of: Option<Arc<str>>,
}

/// A copy that is kept, for operators.
#[derive(Clone, Debug)]
pub(crate) struct CopyReport {
    /// Path of its stream.
    pub(crate) path: Arc<str>,
    /// Address of the node whose window it follows.
    pub(crate) of: Arc<str>,
    /// Name of the run.
    pub(crate) run: String,
}

/// The end of one connection for a copy.
enum End {
    /// The window at the other node has ended.
    Over,
    /// The node refuses, or sends nothing that can be read.
    Refused(String),
    /// The connection broke off.
    Broken(String),
    /// The node is silent, and was probed.
    Silent,
    /// Another node has the stream now.
    Moved,
    /// Nobody needs the copy.
    Useless,
}

impl Copies {
    /// Has no copies yet.
    pub(crate) fn new(cluster: Arc<Cluster>, sources: LaterSources) -> Arc<Self> {
        Arc::new(Self { cluster, sources, kept: Mutex::default() })
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Arc<str>, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sources(&self) -> Option<Arc<Sources>> {
        self.sources.read().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Copies the streams whose source this node asks next, while the server runs.
    pub(crate) async fn stand_by(copies: Weak<Self>) {
        while let Some(copies) = copies.upgrade() {
            if let Some(sources) = copies.sources() {
                for name in copies.cluster.asked_elsewhere() {
                    let path = sources.find(&name);
                    let is_own = || sources.manager().window_to_copy(&path).is_some();
                    // A node whose stream was taken over while it paused gives its window up.
                    let is_kept =
                        |key| copies.cluster.stands_by(&key) || (copies.cluster.is_taken_over(&key) && is_own());
                    if sources.copied_key(&path).is_some_and(is_kept) {
                        copies.keep(&path, None);
                    }
                }
            }
            drop(copies);
            sleep(LOOK).await;
        }
    }

    /// The window of a stream that another node has, for a viewer: its copy, which begins where there is none. With `opens`, that node opens the
    /// stream. `None` where this node has the stream, or the copy does not begin in time.
    pub(crate) async fn watched(self: &Arc<Self>, path: &StreamPath, opens: bool) -> Option<Arc<LiveWindow>> {
        let sources = self.sources()?;
        let key = sources.copied_key(path).filter(|key| opens || self.cluster.is_asked_elsewhere(key))?;
        self.cluster.copied_from(&key).await?;
        self.keep(path, Some(Instant::now()));
        self.begun(&sources, path, (BEGINNING, None)).await
    }

    /// Waits for the copy of a stream: for another window than that of the run `before`, and not for longer than `patience`. `None` where the other
    /// node refuses it.
    async fn begun(
        &self,
        sources: &Sources,
        path: &StreamPath,
        (patience, before): (Duration, Option<&Arc<LiveWindow>>),
    ) -> Option<Arc<LiveWindow>> {
        let is_other = |window: &Arc<LiveWindow>| before.is_none_or(|before| !Arc::ptr_eq(before, window));
        let begun = async {
            loop {
                if let Some(window) = sources.manager().window_of_stream(path).filter(is_other) {
                    return Some(window);
                }
                if self.lacks(path) {
                    return None;
                }
                sleep(PAUSE / 4).await;
            }
        };
        timeout(patience, begun).await.ok().flatten()
    }

    /// Whether there is no copy of a stream, and none begins: another node refuses it, or there are too many.
    fn lacks(&self, path: &str) -> bool {
        self.kept().get(path).is_none_or(|kept| kept.is_refused)
    }

    /// The window for viewers of a stream that has a window of its own here: the copy of another node's, where that one has taken the stream over while
    /// this node had paused.
    pub(crate) async fn in_place_of(self: &Arc<Self>, path: &StreamPath, own: Arc<LiveWindow>) -> Arc<LiveWindow> {
        if own.is_copy() || !self.cluster.has_takeovers() {
            return own;
        }
        let Some(sources) = self.sources() else { return own };
        let Some(key) = sources.copied_key(path).filter(|key| self.cluster.is_taken_over(key)) else { return own };
        if self.cluster.copied_from(&key).await.is_none() {
            return own;
        }
        self.keep(path, Some(Instant::now()));
        self.begun(&sources, path, (REPLACING, Some(&own))).await.unwrap_or(own)
    }

    /// Whether windows of this node may be those of streams that other nodes have taken over.
    pub(crate) fn has_takeovers(&self) -> bool {
        self.cluster.has_takeovers()
    }

    /// Whether this node must not begin a run of a stream, because another one asks its source, and lives. A viewer who asked this node gets such a run
    /// only where players stay at one node, and no copy can be had. `is_passed` is whether another node passed the request on.
    pub(crate) fn forbids_run(&self, path: &StreamPath, is_passed: bool) -> bool {
        self.is_elsewhere(path) && (is_passed || self.cluster.passes() || !self.lacks(path))
    }

    /// Whether another node, which lives, asks the source of a stream.
    pub(crate) fn is_elsewhere(&self, path: &StreamPath) -> bool {
        let Some(sources) = self.sources() else { return false };
        sources.copied_key(path).is_some_and(|key| self.cluster.is_held_elsewhere(&key))
    }

    /// The copies that have begun, by the paths of their streams.
    pub(crate) fn reports(&self) -> Vec<CopyReport> {
        let Some(sources) = self.sources() else { return Vec::new() };
        let report = |(path, kept): (&Arc<str>, &Kept)| {
            let window = sources.manager().copy_of_stream(path)?;
            Some(CopyReport { path: path.clone(), of: kept.of.clone()?, run: window.run().to_owned() })
        };
        let mut all: Vec<_> = self.kept().iter().filter_map(report).collect();
        all.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        all
    }

    /// Keeps the copy of a stream, from a viewer's demand on.
    fn keep(self: &Arc<Self>, path: &StreamPath, demand: Option<Instant>) {
        let mut kept = self.kept();
        if let Some(known) = kept.get_mut(&**path) {
            known.demand = demand.or(known.demand);
            return;
        }
        if kept.len() >= MOST {
            return;
        }
        let path: Arc<str> = Arc::from(&**path);
        kept.insert(path.clone(), Kept { demand, is_refused: false, of: None });
        drop(kept);
        let copies = self.clone();
        tokio::spawn(async move {
            copies.run(&path).await;
            copies.kept().remove(&path);
        });
    }

    /// Whether viewers of this node have asked for a copy.
    fn is_watched(&self, path: &str, copy: Option<&WindowCopy>) -> bool {
        let demand = self.kept().get(path).and_then(|kept| kept.demand);
        let is_demanded = demand.is_some_and(|demand| demand.elapsed() < DEMAND);
        is_demanded || copy.and_then(WindowCopy::window).is_some_and(|window| window.is_watched())
    }

    /// Copies a stream until nobody needs it, or this node has the stream.
    async fn run(&self, path: &str) {
        let mut copy: Option<WindowCopy> = None;
        loop {
            let Some(sources) = self.sources() else { return };
            let stream = sources.find(path);
            let Some(key) = sources.copied_key(&stream) else { return };
            let Some(base) = self.cluster.copied_from(&key).await else {
                // This node is the next one.
                if let Some(copy) = copy.filter(|copy| copy.window().is_some()) {
                    copy.leave();
                    self.cluster.takes_over(&key);
                    take_over(&sources, &stream).await;
                }
                return;
            };
            if let Some(kept) = self.kept().get_mut(path) {
                kept.of = Some(base.clone());
            }
            let copying = copy.get_or_insert_with(|| sources.copy(&stream));
            match self.follow((&base, path), &key, copying).await {
                End::Useless => return,
                End::Over => copy = None,
                End::Moved => {}
                End::Refused(error) => {
                    tracing::debug!(stream = path, node = %base, error, "the node gives no copy of its live stream");
                    drop(copy);
                    if let Some(kept) = self.kept().get_mut(path) {
                        kept.is_refused = true;
                    }
                    sleep(REFUSED).await;
                    return;
                }
                End::Broken(error) => {
                    tracing::debug!(stream = path, node = %base, error, "the copy of a live stream broke off");
                    self.cluster.broke_off(&base).await;
                }
                End::Silent => {
                    tracing::debug!(stream = path, node = %base, "the node of a copied live stream is silent")
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// Follows the window of a node.
    async fn follow(&self, (base, path): (&Arc<str>, &str), key: &ObjectKey, copy: &mut WindowCopy) -> End {
        let resource = format!("{}/window.copy", encode(path));
        if self.is_watched(path, Some(copy)) {
            self.tell_viewers(base, &resource).await;
        }
        let mut reply = match self.cluster.ask_node(base, &resource, RELAY_QUERY).await {
            Ok(reply) => reply,
            // A node that can't serve now may do so soon.
            Err(error) if error.starts_with("status ") && !error.starts_with("status 5") => return End::Refused(error),
            Err(error) => return End::Broken(error),
        };
        copy.reconnected();
        let (mut looks, mut silence) = (interval(LOOK), pin!(self.silence(base)));
        loop {
            tokio::select! {
                chunk = reply.chunk() => {
                    silence.set(self.silence(base));
                    match chunk {
                        Ok(Some(bytes)) => match copy.push(&bytes) {
                            Ok(false) => {}
                            Ok(true) => return End::Over,
                            Err(error @ (CannotCopy::Unreadable(_) | CannotCopy::Running | CannotCopy::Memory)) => {
                                return End::Refused(error.to_string());
                            }
                        },
                        Ok(None) => return End::Broken("the reply ends".to_owned()),
                        Err(error) => return End::Broken(error.without_url().to_string()),
                    }
                }
                () = &mut silence => return End::Silent,
                _ = looks.tick() => {
                    if !self.cluster.may_have(base, key) {
                        return End::Moved;
                    }
                    if self.is_watched(path, Some(copy)) {
                        self.tell_viewers(base, &resource).await;
                    } else if !self.cluster.stands_by(key) {
                        return End::Useless;
                    }
                }
            }
        }
    }

    /// Waits until a node that sends nothing is down, or is silent for too long.
    async fn silence(&self, base: &Arc<str>) {
        let begun = Instant::now();
        sleep(QUIET).await;
        while !self.cluster.is_lost(base).await && begun.elapsed() < SILENCE {
            sleep(QUIET).await;
        }
    }

    /// Tells a node that its stream has viewers here: it opens the stream, and keeps its window.
    async fn tell_viewers(&self, base: &str, resource: &str) {
        let (cluster, base, resource) = (self.cluster.clone(), base.to_owned(), resource.to_owned());
        tokio::spawn(async move {
            let query = format!("{RELAY_QUERY}&{WATCH_MARK}=1");
            if let Err(error) = cluster.ask_node(&base, &resource, &query).await {
                tracing::debug!(node = base, error, "the node does not hear of viewers of its live stream");
            }
        });
    }
}

impl Sources {
    /// The key of a live stream that can be copied: one of a source that nodes ask, outside of ladders, whose past is not kept.
    pub(crate) fn copied_key(&self, path: &StreamPath) -> Option<ObjectKey> {
        let (key, start) = self.object_key(path).filter(|_| path.list().is_none())?;
        let request = self.live(path).ok().flatten()?;
        let is_single = self.window_options(path).ladder.is_none();
        (start == Start::Live && is_single && request.shift.is_none()).then_some(key)
    }

    /// Begins the copy of a stream's window.
    fn copy(&self, path: &StreamPath) -> WindowCopy {
        let linger = match self.live(path).ok().flatten().map(|request| request.linger) {
            Some(Linger::For(time)) => time,
            Some(Linger::Always) | None => Duration::ZERO,
        };
        self.manager().copy_window(path, self.window_options(path), linger)
    }
}

/// Opens a stream, which goes on in the copy that was left to it.
async fn take_over(sources: &Sources, path: &StreamPath) {
    let end = Instant::now() + TAKING_OVER;
    tracing::info!(stream = %&**path, "the node of a live stream is gone: this one asks the source, and goes on in its copy");
    loop {
        let why = match open(sources, path).await {
            Ok(()) => return,
            Err(why) => why,
        };
        tracing::info!(stream = %&**path, why, "the source of a live stream is not open yet");
        if Instant::now() >= end {
            return;
        }
        sleep(PAUSE).await;
    }
}

async fn open(sources: &Sources, path: &StreamPath) -> Result<(), String> {
    let request = sources.stream(path).await.map_err(|error| error.to_string())?;
    let request = request.ok_or("there is no such stream")?;
    let manager = sources.manager();
    let stream = manager.live(request).map_err(|error| error.to_string())?;
    let feed = manager.live_feed(&stream, FORMATS).await.map_err(|error| error.to_string())?;
    let window = manager.window(&Program::live(&feed), sources.window_options(path));
    window.map(drop).map_err(|error| error.to_string())
}
