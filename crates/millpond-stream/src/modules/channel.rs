//! Gives each block to all viewers of a channel when it is due.

use super::ModuleKind;
use crate::{
    Counters, Run,
    graph::{Closed, Inputs, Module, ModuleError, Output},
    stored::PERIOD,
};
use futures_util::future::BoxFuture;
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::time::Instant;

pub(super) const KIND: ModuleKind = ModuleKind {
    name: "channel",
    about: "gives frames to all viewers of a channel when they are due",
    inputs: 1,
    outputs: 1,
};

/// A block is given this long before it is due: branches have it in time.
const AHEAD: Duration = PERIOD;
/// A block with a longer delay moves all that follow: nothing is sent faster than it plays.
const LATE: Duration = Duration::from_secs(1);

/// Paces the frames of a feed. Its output is a fork.
pub(crate) struct Channel {
    counters: Arc<Counters>,
}

impl Channel {
    pub(crate) fn new(counters: Arc<Counters>) -> Self {
        Self { counters }
    }

    /// Gives a block when it is due. The first block of all sets the clock.
    async fn pass(&self, run: Run, clock: &mut Option<Instant>, output: &Output) -> Result<(), Closed> {
        let Some(first) = run.first() else { return Ok(()) };
        let due = first.due;
        let now = Instant::now();
        let is_late = |began: &Instant| now > *began + due + LATE;
        let began = clock.filter(|began| !is_late(began)).unwrap_or_else(|| now.checked_sub(due).unwrap_or(now));
        *clock = Some(began);
        tokio::time::sleep_until(began + due.saturating_sub(AHEAD)).await;
        let lost = output.send(run).await?;
        self.counters.dropped_frames.fetch_add(lost as u64, Ordering::Relaxed);
        Ok(())
    }
}

impl Module for Channel {
    fn kind(&self) -> &'static str {
        KIND.name
    }

    fn run(self: Box<Self>, mut inputs: Inputs, output: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        Box::pin(async move {
            let Some(mut input) = inputs.pop() else { return Ok(()) };
            let mut clock = None;
            while let Ok(run) = input.next().await {
                if self.pass(run, &mut clock, &output).await.is_err() {
                    break;
                }
            }
            if let Output::Fork(fork) = &output {
                fork.close();
            }
            Ok(())
        })
    }
}
