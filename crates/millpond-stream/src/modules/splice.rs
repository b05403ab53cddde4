//! Gives the frames of a clip to a live stream when its turn comes.

use super::Loader;
use crate::{
    Frame,
    graph::{Fork, Inputs, Module, ModuleError, Output, PipeReader, Running},
    kind::ModuleKind,
    registry::EdgeGuard,
    splice::{Cut, Insertion, InsertionEnd, Turn},
};
use futures_util::future::BoxFuture;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    sync::{oneshot, watch},
    time::{sleep_until, timeout},
};

/// Longest wait for the sound of the source from before the clip.
const SOUND: Duration = Duration::from_millis(300);
/// Frames that are due this soon are given together.
const TOGETHER: Duration = Duration::from_millis(2);

/// A loader that tells how it ended.
pub(crate) struct ClipLoader {
    loader: Loader,
    ended: oneshot::Sender<Result<(), String>>,
}

impl ClipLoader {
    pub(crate) fn new(loader: Loader) -> (Self, oneshot::Receiver<Result<(), String>>) {
        let (ended, end) = oneshot::channel();
        (Self { loader, ended }, end)
    }
}

impl Module for ClipLoader {
    fn kind(&self) -> &'static str {
        self.loader.kind()
    }

    fn run(self: Box<Self>, inputs: Inputs, output: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        let Self { loader, ended } = *self;
        Box::pin(async move {
            let result = Box::new(loader).run(inputs, output).await;
            let _ = ended.send(result.as_ref().copied().map_err(ToString::to_string));
            result
        })
    }
}

/// Gives the frames of a clip as fast as the source's arrived. Its output is the fork of the stream.
pub(crate) struct Splice {
    insertion: Arc<Insertion>,
    /// How the loader ended; `None` where that was read.
    loaded: Option<oneshot::Receiver<Result<(), String>>>,
    turn: watch::Receiver<Turn>,
    _kept: (Running, EdgeGuard),
}

/// Ends a clip when it is dropped.
struct Ending<'a> {
    fork: &'a Fork,
    insertion: Arc<Insertion>,
    why: InsertionEnd,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.fork.end_clip(&self.insertion, self.why.clone());
    }
}

impl Splice {
    /// What is told of its modules.
    pub(crate) const KIND: ModuleKind = ModuleKind {
        name: "splice",
        about: "puts a stored clip in the place of a live stream's frames",
        inputs: 1,
        outputs: 1,
    };

    /// Makes one for an insertion. `loaded` tells how the loader of its input ended. `kept` is dropped with it.
    pub(crate) fn new(
        insertion: Arc<Insertion>,
        loaded: oneshot::Receiver<Result<(), String>>,
        kept: (Running, EdgeGuard),
    ) -> Self {
        let turn = insertion.turn();
        Self { insertion, loaded: Some(loaded), turn, _kept: kept }
    }

    /// Plays the clip, from its turn to its end.
    async fn play(&mut self, input: &mut PipeReader, fork: &Fork) -> InsertionEnd {
        let cut = match self.wait().await {
            Ok(cut) => cut,
            Err(end) => return end,
        };
        fork.enter_clip(&self.insertion);
        loop {
            let run = tokio::select! {
                run = input.next() => run,
                end = ended(&mut self.turn) => return end,
            };
            let Ok(run) = run else { return self.end_of_input().await };
            let mut rest = &run[..];
            while !rest.is_empty() {
                match self.give(rest, &cut, fork).await {
                    Ok(given) => rest = &rest[given..],
                    Err(end) => return end,
                }
            }
        }
    }

    /// Waits for its turn. A clip that can't be loaded ends before.
    async fn wait(&mut self) -> Result<Cut, InsertionEnd> {
        loop {
            let turn = self.turn.borrow_and_update().clone();
            match turn {
                Turn::Waits => {}
                Turn::Begins(cut) => {
                    let reached = self.turn.wait_for(|turn| !matches!(turn, Turn::Begins(_)));
                    let _ = timeout(SOUND, reached).await;
                    return Ok(cut);
                }
                Turn::Enters(cut) | Turn::Hurries(cut) => return Ok(cut),
                Turn::Ended(end) => return Err(end),
            }
            let Some(loaded) = &mut self.loaded else {
                // The sender is that of the insertion, which is held here.
                let _ = self.turn.changed().await;
                continue;
            };
            tokio::select! {
                _ = self.turn.changed() => {}
                loaded = loaded => {
                    self.loaded = None;
                    if let Ok(Err(why)) = loaded {
                        return Err(InsertionEnd::Failed(why));
                    }
                }
            }
        }
    }

    /// Waits until a frame is due, and gives all that are due then. Returns their number.
    async fn give(&mut self, frames: &[Frame], cut: &Cut, fork: &Fork) -> Result<usize, InsertionEnd> {
        let ready = |frame: &Frame| cut.arrived + (cut.from + frame.due).saturating_sub(cut.due);
        let Some(first) = frames.first() else { return Ok(0) };
        let mut turn = self.turn.clone();
        let hurries = tokio::select! {
            () = sleep_until(ready(first).into()) => false,
            _ = turn.wait_for(|turn| matches!(turn, Turn::Hurries(_) | Turn::Ended(_))) => true,
        };
        if let Turn::Ended(end) = &*self.turn.borrow() {
            return Err(end.clone());
        }
        let now = Instant::now() + TOGETHER;
        let given =
            if hurries { frames.len() } else { frames.iter().take_while(|frame| ready(frame) <= now).count().max(1) };
        fork.give_clip(&self.insertion, &frames[..given]);
        Ok(given)
    }

    async fn end_of_input(&mut self) -> InsertionEnd {
        match self.loaded.take() {
            Some(loaded) => match loaded.await {
                Ok(Err(why)) => InsertionEnd::Failed(why),
                Ok(Ok(())) => InsertionEnd::Complete,
                Err(_) => InsertionEnd::Failed("the loader stopped".to_owned()),
            },
            None => InsertionEnd::Complete,
        }
    }
}

/// Waits until a turn is over.
async fn ended(turn: &mut watch::Receiver<Turn>) -> InsertionEnd {
    match turn.wait_for(|turn| matches!(turn, Turn::Ended(_))).await.as_deref() {
        Ok(Turn::Ended(end)) => end.clone(),
        _ => InsertionEnd::Cancelled,
    }
}

impl Module for Splice {
    fn kind(&self) -> &'static str {
        Self::KIND.name
    }

    fn run(mut self: Box<Self>, mut inputs: Inputs, output: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        Box::pin(async move {
            let (Some(mut input), Output::Fork(fork)) = (inputs.pop(), &output) else { return Ok(()) };
            let mut ending = Ending { fork, insertion: self.insertion.clone(), why: InsertionEnd::Cancelled };
            ending.why = tokio::select! {
                end = self.play(&mut input, fork) => end,
                () = fork.closed() => InsertionEnd::StreamEnded,
            };
            let (path, clip, end) = (self.insertion.path(), &*self.insertion.clip().path, ending.why.name());
            match &ending.why {
                InsertionEnd::Complete | InsertionEnd::Cancelled => {
                    tracing::info!(stream = %path, clip, end, "the clip has ended");
                }
                why => tracing::warn!(stream = %path, clip, end, ?why, "the clip ends early"),
            }
            Ok(())
        })
    }
}
