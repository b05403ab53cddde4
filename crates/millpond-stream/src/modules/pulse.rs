//! Tells when pictures of a stream arrive, to whoever chooses among streams.

use crate::{
    graph::{Inputs, Module, ModuleError, Output},
    kind::ModuleKind,
    live::Program,
};
use futures_util::future::BoxFuture;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

pub(super) const KIND: ModuleKind = ModuleKind {
    name: "pulse",
    about: "tells when pictures of a channel or live stream arrive",
    inputs: 1,
    outputs: 0,
};

/// Arrivals of the leading track of a stream: pictures, or sound where it has none.
#[derive(Debug, Default)]
pub struct Pulse(Mutex<Beats>);

/// A lock: held for an assignment, for each run of frames.
#[derive(Clone, Copy, Debug, Default)]
struct Beats {
    first: Option<Instant>,
    last: Option<Instant>,
    /// Longest time between two of the last arrivals. It shrinks with each arrival.
    gap: Duration,
}

impl Pulse {
    fn lock(&self) -> MutexGuard<'_, Beats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an arrival.
    fn beat(&self, now: Instant) {
        let mut beats = self.lock();
        let gap = beats.last.map_or(Duration::ZERO, |last| now.saturating_duration_since(last));
        *beats = Beats { first: beats.first.or(Some(now)), last: Some(now), gap: gap.max(beats.gap * 49 / 50) };
    }

    /// Forgets all arrivals: the stream was lost.
    pub fn lose(&self) {
        *self.lock() = Beats::default();
    }

    /// The time for which frames have arrived without a longer pause than `patience`, or three times the longest usual gap; `None` where they
    /// have stopped or not begun.
    #[must_use]
    pub fn alive(&self, now: Instant, patience: Duration) -> Option<Duration> {
        let Beats { first, last, gap } = *self.lock();
        let (first, last) = first.zip(last)?;
        let is_alive = now.saturating_duration_since(last) <= patience.max(3 * gap.min(patience));
        is_alive.then(|| now.saturating_duration_since(first))
    }
}

/// Makes the module that keeps a pulse.
pub(crate) fn module(program: &Program, pulse: Arc<Pulse>) -> Box<dyn Module> {
    Box::new(Watch { lead: program.lead(), pulse })
}

struct Watch {
    lead: u16,
    pulse: Arc<Pulse>,
}

impl Module for Watch {
    fn kind(&self) -> &'static str {
        KIND.name
    }

    fn run(self: Box<Self>, mut inputs: Inputs, _: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        Box::pin(async move {
            let Some(mut input) = inputs.pop() else { return Ok(()) };
            while let Ok(run) = input.next().await {
                if run.iter().any(|frame| frame.track == self.lead) {
                    self.pulse.beat(Instant::now());
                }
            }
            self.pulse.lose();
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_alive_while_its_pictures_arrive() {
        let (pulse, began) = (Pulse::default(), Instant::now());
        let (ms, patience) = (Duration::from_millis, Duration::from_secs(1));
        assert_eq!(pulse.alive(began, patience), None);
        (0..=50).for_each(|number| pulse.beat(began + ms(40) * number));
        assert_eq!(pulse.alive(began + ms(2900), patience), Some(ms(2900)));
        assert_eq!(pulse.alive(began + ms(3100), patience), None);
        pulse.beat(began + ms(3100));
        assert_eq!(pulse.alive(began + ms(3100), patience), Some(ms(3100)));
        pulse.lose();
        assert_eq!(pulse.alive(began + ms(3100), patience), None);
    }

    #[test]
    fn streams_of_few_pictures_have_longer_pauses() {
        let (pulse, began) = (Pulse::default(), Instant::now());
        let (ms, patience) = (Duration::from_millis, Duration::from_secs(1));
        (0..10).for_each(|number| pulse.beat(began + ms(900) * number));
        assert!(pulse.alive(began + ms(8100 + 2600), patience).is_some());
        assert!(pulse.alive(began + ms(8100 + 2800), patience).is_none());
    }
}
