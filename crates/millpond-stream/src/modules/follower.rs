//! Gives a viewer of a ladder the pictures of one of its streams, and the sound of the best one.

use crate::{
    Feed, LiveFeed, Run,
    graph::{Closed, Inputs, Module, ModuleError, Output, PipeReader},
    kind::ModuleKind,
    live::{Follower, Given},
    report::Reporter,
};
use futures_util::{
    future::BoxFuture,
    stream::{FuturesUnordered, StreamExt as _},
};
use std::{sync::Arc, time::Instant};

/// Follows the streams of a ladder for one viewer. Its inputs are branches of theirs, the best one first.
#[derive(Debug)]
pub(crate) struct LadderFollower {
    follower: Follower,
    /// The streams, which stay open.
    feeds: Vec<Arc<LiveFeed>>,
    reporter: Reporter,
    /// Streams without an input.
    absent: Vec<usize>,
    began: Instant,
}

impl LadderFollower {
    pub(crate) const KIND: ModuleKind = ModuleKind {
        name: "follower",
        about: "gives a viewer of a ladder the stream that his network carries",
        inputs: 2,
        outputs: 1,
    };

    /// Makes one for streams of which some have no input. Epochs are told to `reporter`.
    pub(crate) fn new(follower: Follower, feeds: Vec<Arc<LiveFeed>>, reporter: Reporter, absent: Vec<usize>) -> Self {
        Self { follower, feeds, reporter, absent, began: Instant::now() }
    }

    /// Takes a run of a stream, and sends what the viewer gets. Returns whether the viewer can go on.
    async fn take(&mut self, from: usize, run: &Run, output: &Output) -> Result<bool, Closed> {
        let now = self.began.elapsed();
        if from == self.follower.current() {
            self.follower.look(now, &output.strain());
        }
        let (before, mut given) = (self.follower.current(), Vec::new());
        for frame in run.iter() {
            let epoch = || Feed::epoch(&**self.feeds.get(from)?, frame.epoch);
            self.follower.take(from, frame, epoch, now, &mut given);
        }
        let mut frames = Vec::with_capacity(given.len());
        for one in given {
            match one {
                Given::Frame(frame) => frames.push(frame),
                Given::Epoch(epoch) => {
                    flush(&mut frames, output).await?;
                    self.reporter.begin(epoch);
                }
            }
        }
        flush(&mut frames, output).await?;
        if self.follower.current() != before {
            let path = |at: usize| self.feeds.get(at).map_or("", |feed| feed.path());
            let (from, to) = (path(before), path(self.follower.current()));
            tracing::debug!(from, to, changes = self.follower.changes(), "a viewer of a ladder gets another stream");
        }
        Ok(!self.follower.is_over())
    }
}

async fn flush(frames: &mut Vec<crate::Frame>, output: &Output) -> Result<(), Closed> {
    if !frames.is_empty() {
        output.send(frames.drain(..).collect()).await?;
    }
    Ok(())
}

/// Waits for the next run of a stream.
async fn next(at: usize, mut input: PipeReader) -> (usize, PipeReader, Result<Run, Closed>) {
    let run = input.next().await;
    (at, input, run)
}

impl Module for LadderFollower {
    fn kind(&self) -> &'static str {
        Self::KIND.name
    }

    fn run(mut self: Box<Self>, inputs: Inputs, output: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        Box::pin(async move {
            let present = (0..self.feeds.len()).filter(|at| !self.absent.contains(at));
            let mut runs: FuturesUnordered<_> = present.zip(inputs).map(|(at, input)| next(at, input)).collect();
            while let Some((at, input, run)) = runs.next().await {
                match run {
                    Ok(run) => match self.take(at, &run, &output).await {
                        Ok(true) => runs.push(next(at, input)),
                        // The pictures can't follow, or the viewer has left.
                        Ok(false) | Err(Closed) => break,
                    },
                    // The others have no sound.
                    Err(Closed) if at == 0 => break,
                    Err(Closed) => self.follower.end(at),
                }
            }
            Ok(())
        })
    }
}
