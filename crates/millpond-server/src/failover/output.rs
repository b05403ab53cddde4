//! A stream that takes the frames of one of its inputs.

use super::{
    FailoverLine,
    choice::Choice,
    input::{self, Input},
};
use crate::{
    events::{Events, Kind},
    live::Sources,
};
use arc_swap::ArcSwap;
use millpond_stream::{Attached, AttachmentEnd, Program};
use serde_json::json;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Time between two looks at the inputs.
const LOOK: Duration = Duration::from_millis(100);

/// A stream with inputs.
pub(super) struct Output {
    line: FailoverLine,
    back: Duration,
    sources: Arc<ArcSwap<Sources>>,
    events: Arc<Events>,
    began: Instant,
}

impl Output {
    pub(super) fn new(line: FailoverLine, back: Duration, sources: Arc<ArcSwap<Sources>>, events: Arc<Events>) -> Self {
        Self { line, back, sources, events, began: Instant::now() }
    }

    /// Passes on the frames of the best input, without an end.
    pub(super) async fn run(self) {
        let slate = self.line.slate(&self.sources.load());
        // Inputs behind a slate would never play.
        let live = &self.line.inputs[..slate.unwrap_or(self.line.inputs.len())];
        let inputs: Vec<_> = live.iter().map(|path| Input::watch(path.clone(), self.sources.clone())).collect();
        let mut choice = Choice::new(inputs.len() + usize::from(slate.is_some()), slate, self.back);
        let mut passing: Option<Attached> = None;
        // The last reason that was logged for each input.
        let mut told = vec![String::new(); self.line.inputs.len()];
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            let (now, moment) = (self.began.elapsed(), Instant::now());
            if let Some(end) = passing.as_ref().and_then(|passing| passing.end().borrow().clone()) {
                passing = None;
                self.ended(&mut choice, &end, now);
            }
            let alive: Vec<_> = inputs.iter().map(|input| input.alive(moment)).collect();
            let Some(next) = choice.decide(&alive, now) else { continue };
            match self.take(&inputs, next).await {
                Ok(attached) => {
                    self.tell(choice.playing(), next);
                    choice.plays(next);
                    // The input before is left once its successor publishes.
                    passing = Some(attached);
                    told[next].clear();
                }
                Err(why) => {
                    choice.failed(next, now);
                    if told[next] != why {
                        let (stream, input) = (&self.line.to, &self.line.inputs[next]);
                        tracing::warn!(stream, input, why, "an input of a failover can't be taken");
                        told[next] = why;
                    }
                }
            }
        }
    }

    /// Notes that the frames of the input that plays are passed on no more.
    fn ended(&self, choice: &mut Choice, end: &AttachmentEnd, now: Duration) {
        if let AttachmentEnd::Output(why) | AttachmentEnd::Failed(why) = end {
            tracing::warn!(stream = self.line.to, why, "a failover is interrupted");
        }
        if let Some(playing) = choice.playing() {
            choice.failed(playing, now);
        }
    }

    /// Publishes the frames of an input in the place of those before.
    async fn take(&self, inputs: &[Input], next: usize) -> Result<Attached, String> {
        let sources = self.sources.load_full();
        let program = match inputs.get(next) {
            Some(input) => input.program().ok_or("it is not open")?,
            None => self.slate(&sources, next).await?,
        };
        publish(&sources, &program, &self.line.to).await
    }

    /// The asset that plays round and round while no input is alive.
    async fn slate(&self, sources: &Sources, index: usize) -> Result<Program, String> {
        let path = self.line.inputs.get(index).ok_or("there is no such input")?;
        sources.open(path).await.map_err(|error| error.to_string())?;
        input::open(sources, sources.looped(path)).await
    }

    fn tell(&self, before: Option<usize>, next: usize) {
        let FailoverLine { to: stream, inputs } = &self.line;
        let (from, to) = (before.map(|before| &inputs[before]), &inputs[next]);
        tracing::info!(stream, from, to, "a failover plays an input");
        self.events.emit(Kind::Failover, stream, json!({ "from": from, "to": to, "rank": next + 1 }));
    }
}

/// Publishes the frames of a stream at a path, in the place of those before.
///
/// # Errors
/// Nothing can be published there, or the frames would come back.
pub(crate) async fn publish(sources: &Sources, program: &Program, path: &str) -> Result<Attached, String> {
    let to = sources.module_output(path).map_err(|error| format!("{path}: {error}"))?;
    sources.manager().pass_on(program, to).await.map_err(|error| error.to_string())
}
