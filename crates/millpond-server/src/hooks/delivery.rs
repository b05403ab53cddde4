//! Which event a hook is sent next, and when: order, back-off, and events that are given up.
#![forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types)]

use crate::events::{Event, Next};
use std::{sync::Arc, time::Duration};

/// Longest pause after the first failure. Each further failure doubles it.
const FIRST: Duration = Duration::from_secs(1);
/// Longest pause between two attempts.
const LONGEST: Duration = Duration::from_secs(60);

/// The position of one hook in the log of events.
///
/// The caller asks for the next [`step`](Self::step), performs it, and tells its result by [`delivered`](Self::delivered),
/// [`refused`](Self::refused) or [`failed`](Self::failed). Times are those of the log's clock.
#[derive(Debug)]
pub(super) struct Delivery {
    /// Number of the last event that was delivered or given up.
    position: u64,
    /// Attempts at the next event that failed.
    failures: u32,
    /// Time of the next attempt.
    due: Duration,
}

/// The next action of a hook.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// It sends an event.
    Send(Arc<Event>),
    /// It waits until a time.
    Wait(Duration),
    /// It waits for another event.
    Idle,
}

/// Events that were given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GivenUp {
    /// Events that were dropped because more than the highest number waited.
    pub(super) overflow: u64,
    /// Events whose attempts failed for longer than `hook-retry`.
    pub(super) old: u64,
}

impl Delivery {
    /// Begins behind the event of a number.
    pub(super) fn new(position: u64) -> Self {
        Self { position, failures: 0, due: Duration::ZERO }
    }

    /// Returns the next step, and the events that are given up before it. `after` gives the first kept event after a position. An event
    /// older than `patience` is given up if its last attempt failed.
    pub(super) fn step(
        &mut self,
        now: Duration,
        patience: Duration,
        after: impl Fn(u64) -> Option<Next>,
    ) -> (Step, GivenUp) {
        let mut given_up = GivenUp::default();
        loop {
            let Some(Next { event, skipped }) = after(self.position) else { return (Step::Idle, given_up) };
            given_up.overflow += skipped;
            self.position += skipped;
            if self.failures > 0 && now.saturating_sub(event.at()) > patience {
                given_up.old += 1;
                self.position = event.number();
                continue;
            }
            return (if now < self.due { Step::Wait(self.due) } else { Step::Send(event) }, given_up);
        }
    }

    /// Tells that an event was delivered.
    pub(super) fn delivered(&mut self, event: &Event) {
        self.pass(event);
    }

    /// Tells that the receiver takes this event at no time. The next one follows.
    pub(super) fn refused(&mut self, event: &Event) {
        self.pass(event);
    }

    /// Tells that an attempt failed. It is repeated after a pause, of which `random`, 0 to 1, chooses the second half.
    pub(super) fn failed(&mut self, now: Duration, random: f64) {
        let longest = FIRST.saturating_mul(1 << self.failures.min(6)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        self.due = now + longest.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0);
    }

    /// Returns the failed attempts since the last delivery.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// Returns the number of the last event that was delivered or given up.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    fn pass(&mut self, event: &Event) {
        *self = Self::new(event.number());
    }
}

#[cfg(test)]
mod tests;
