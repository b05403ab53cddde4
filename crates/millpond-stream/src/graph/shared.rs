//! Graphs that many subscribers share.

use super::{
    Branch, Closed, Fork, Inputs, Module, ModuleError, Output, PipeReader, QueueLimits,
    alarm::Listener,
    fork::Figures,
    live_memory::LiveMemory,
    module::{Running, start},
    pipe::pipe,
    session::SessionFeed,
};
use crate::{
    Feed, Run,
    registry::{NodeGuard, NodeId, Registry},
    splice::Splicer,
};
use futures_util::future::BoxFuture;
use std::{sync::Arc, time::Duration};
use tokio::runtime::Handle;

/// Blocks between a channel's loader and the channel, beside the one that the channel holds until it is due.
const DEPTH: usize = 1;
/// Longest wait of a subscriber for a key frame to begin with.
const PATIENCE: Duration = Duration::from_secs(10);

/// A source, and a fork for all modules that take its frames. It runs while a reference to this exists.
#[derive(Debug)]
pub(crate) struct Graph {
    fork: Arc<Fork>,
    _modules: Vec<Running>,
}

/// The modules that receive a source.
pub(crate) struct SourceModules {
    /// Gives frames to `source`, where that takes some.
    pub(crate) loader: Option<Box<dyn Module>>,
    /// Gives frames to the fork.
    pub(crate) source: Box<dyn Module>,
}

/// A share of a graph: all viewers hold the same one.
#[derive(Debug)]
pub(crate) struct Shared {
    graph: Arc<Graph>,
    /// The time that the graph is kept for after its last viewer.
    linger: Option<(Duration, Handle)>,
}

/// Where a subscriber joins: its frames, and the frames with which its transmission begins.
pub(crate) struct Joined {
    pub(crate) frames: PipeReader,
    /// Due time at which playing begins.
    pub(crate) begins: Duration,
    /// Presentation time at which it begins, in seconds.
    pub(crate) from: f64,
    /// Due time from the first frame to the newest one.
    pub(crate) span: Duration,
    /// The feed, with clips for this subscriber alone.
    pub(crate) feed: Arc<dyn Feed>,
    /// The run that it begins with, and the due time of the key frame in it.
    first: (Run, Duration),
}

impl Joined {
    /// Number of the first frame of a track.
    pub(crate) fn first_of(&self, track: u16) -> u32 {
        let (first, key) = &self.first;
        let of_track = || first.iter().filter(|frame| frame.track == track);
        let next = of_track().find(|frame| frame.due >= *key).map(|frame| frame.number);
        next.or_else(|| Some(of_track().last()?.number.wrapping_add(1))).unwrap_or(0)
    }
}

impl Graph {
    /// Begins to receive a live source, whose frames are given when they arrive.
    pub(crate) fn live(
        registry: &Registry,
        (path, modules): (&str, SourceModules),
        splicer: Arc<Splicer>,
        memory: LiveMemory,
    ) -> Self {
        let SourceModules { loader, source } = modules;
        let node = registry.add(source.kind(), path);
        let fork = Arc::new(Fork::live(registry, &node, splicer, memory));
        let module = Box::new(Ending { module: source, fork: Closing(fork.clone()) });
        let (inputs, loader) = loader
            .map(|loader| {
                let from = registry.add(loader.kind(), path);
                let (writer, reader) = pipe(registry, from.id(), node.id(), DEPTH);
                (reader, start(loader, from, (Vec::new(), Output::Pipe(writer)), path))
            })
            .unzip();
        let inputs = inputs.into_iter().collect();
        let module = start(module, node, (inputs, Output::Fork(fork.clone())), path);
        Self { fork, _modules: loader.into_iter().chain([module]).collect() }
    }

    /// Runs a module that gives its frames to a fork.
    pub(crate) fn of_module(
        fork: Arc<Fork>,
        node: NodeGuard,
        (module, inputs): (Box<dyn Module>, Inputs),
        path: &str,
    ) -> Self {
        let module = Box::new(Ending { module, fork: Closing(fork.clone()) });
        let module = start(module, node, (inputs, Output::Fork(fork.clone())), path);
        Self { fork, _modules: vec![module] }
    }

    /// Gives its frames to all modules that take them.
    pub(crate) fn fork(&self) -> &Arc<Fork> {
        &self.fork
    }

    /// Whether no more frames will come.
    pub(crate) fn is_over(&self) -> bool {
        self.fork.is_closed()
    }

    /// The module whose frames are shared.
    pub(crate) fn id(&self) -> NodeId {
        self.fork.id()
    }

    /// What has passed its fork.
    pub(crate) fn figures(&self) -> Figures {
        self.fork.figures()
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        self.fork.close();
    }
}

impl Shared {
    /// Shares a graph. Where there is a time of `linger`, the graph is kept for it after this is dropped, if it has given frames
    /// by then. Called within a runtime.
    pub(crate) fn new(graph: Arc<Graph>, linger: Duration) -> Self {
        Self { graph, linger: (!linger.is_zero()).then(|| (linger, Handle::current())) }
    }

    /// What counts the frames of a live source; `None` for a channel.
    pub(crate) fn memory(&self) -> Option<&LiveMemory> {
        self.graph.fork().memory()
    }

    /// Whether no more frames will come.
    pub(crate) fn is_over(&self) -> bool {
        self.graph.is_over()
    }

    /// Waits until no more frames will come. Cancel safe.
    pub(crate) async fn ended(&self) {
        self.graph.fork.closed().await;
    }

    /// The time that the graph is kept for after its last viewer.
    pub(crate) fn linger(&self) -> Duration {
        self.linger.as_ref().map_or(Duration::ZERO, |(linger, _)| *linger)
    }

    /// Releases a share whose viewer left at least the time of linger ago.
    pub(crate) fn release(self: Arc<Self>) {
        if let Some(mut last) = Arc::into_inner(self) {
            last.linger = None;
        }
    }

    /// The module whose frames are shared.
    pub(crate) fn id(&self) -> NodeId {
        self.graph.id()
    }

    /// Adds a branch to a module, for which frames wait within `limits`. Waits until there is a key frame. The thread of
    /// `listener` is told of each run.
    ///
    /// # Errors
    /// The graph has ended, or there is no key frame for long.
    pub(crate) async fn branch(
        &self,
        to: NodeId,
        listener: Option<&Arc<dyn Listener>>,
        limits: QueueLimits,
    ) -> Result<Branch, Closed> {
        tokio::time::timeout(PATIENCE, self.graph.fork.join(to, listener, limits)).await.unwrap_or(Err(Closed))
    }

    /// Adds a branch for a subscriber of a feed. Waits until there is a key frame to begin with.
    ///
    /// # Errors
    /// The graph has ended, or there is no key frame for long.
    pub(crate) async fn join(
        &self,
        (to, listener, limits): (NodeId, Option<&Arc<dyn Listener>>, QueueLimits),
        feed: &Arc<dyn Feed>,
    ) -> Result<Joined, Closed> {
        let Branch { reader, first, runs, span, splicer, .. } = self.branch(to, listener, limits).await?;
        let is_lead = |track| self.graph.fork.lead() == Some(track);
        let key = first.iter().find(|frame| is_lead(frame.track) && frame.is_sync).ok_or(Closed)?;
        let timescale = feed.format(key.track).map_or(1, |format| format.timescale().max(1));
        let from = key.pts as f64 / f64::from(timescale);
        // With no other run in the pipe it begins where the block does, not ahead of the next one.
        let begins = first.first().filter(|_| runs == 1).map_or(key.due, |frame| frame.due);
        let feed = Arc::new(SessionFeed { feed: feed.clone(), splicer });
        let first = (first.clone(), key.due);
        Ok(Joined { frames: reader, begins, from, span, feed, first })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let has_begun = self.graph.fork.lead().is_some() && !self.graph.is_over();
        if let Some((linger, runtime)) = self.linger.take().filter(|_| has_begun) {
            let graph = self.graph.clone();
            runtime.spawn(async move {
                tokio::time::sleep(linger).await;
                drop(graph);
            });
        }
    }
}

/// A source whose fork is closed when it ends.
struct Ending {
    module: Box<dyn Module>,
    fork: Closing,
}

/// Closes a fork when it is dropped.
struct Closing(Arc<Fork>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Module for Ending {
    fn kind(&self) -> &'static str {
        self.module.kind()
    }

    fn run(self: Box<Self>, inputs: Inputs, output: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        let Self { module, fork } = *self;
        Box::pin(async move {
            let ended = module.run(inputs, output).await;
            drop(fork);
            ended
        })
    }
}
