//! One hook: a task that delivers events in their order.

use super::{
    delivery::{Delivery, GivenUp, Step},
    metrics::{Attempt, Loss, MetricsOfHook},
    target::{DeliveryOptions, Outcome, Target},
};
use crate::events::{Event, Events};
use millpond_outbound::Client;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::watch, time::sleep};

/// Least time between two lines of the log about dropped events.
const TELL: Duration = Duration::from_secs(60);

/// The state of a hook, for those who wait for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reached {
    /// Number of the last event that was delivered or given up.
    pub(super) position: u64,
    /// Whether the last attempt failed.
    pub(super) fails: bool,
}

/// A hook, as its task has it.
pub(super) struct Hook {
    pub(super) target: Target,
    pub(super) events: Arc<Events>,
    pub(super) client: Client,
    pub(super) metrics: MetricsOfHook,
    pub(super) options: watch::Receiver<DeliveryOptions>,
    pub(super) reached: watch::Sender<Reached>,
    pub(super) drops: Drops,
}

/// Events that were dropped since the log told it.
#[derive(Debug, Default)]
pub(super) struct Drops {
    overflow: u64,
    old: u64,
    told: Option<Instant>,
}

impl Hook {
    /// Delivers the events behind a position. Ends when the receiver takes no events any more.
    pub(super) async fn run(mut self, position: u64) {
        let mut delivery = Delivery::new(position);
        let mut newest = self.events.follow();
        loop {
            let options = self.options.borrow_and_update().clone();
            let last = *newest.borrow_and_update();
            let now = self.events.now();
            let (step, given_up) = delivery.step(now, options.patience, |position| self.events.after(position));
            self.give_up(given_up);
            self.tell(&delivery, last);
            let pause = match step {
                Step::Send(event) => {
                    let outcome = self.target.deliver(&self.client, &options, &event).await;
                    if !self.take(outcome, &event, &mut delivery) {
                        return;
                    }
                    continue;
                }
                Step::Wait(due) => due.saturating_sub(now),
                Step::Idle => Duration::MAX,
            };
            tokio::select! {
                () = sleep(pause) => {}
                // Events that are dropped while the hook waits are counted at once.
                _ = newest.changed() => {}
                _ = self.options.changed() => {}
            }
        }
    }

    /// Takes the result of an attempt. Returns whether the hook goes on.
    fn take(&self, outcome: Outcome, event: &Event, delivery: &mut Delivery) -> bool {
        let (hook, id) = (&self.target, event.id());
        let failures = delivery.failures();
        match outcome {
            Outcome::Delivered => {
                self.metrics.attempt(Attempt::Delivered);
                if failures > 0 {
                    tracing::info!(%hook, event = id, failures, "a hook takes events again");
                }
                delivery.delivered(event);
            }
            Outcome::Refused(why) => {
                self.metrics.attempt(Attempt::Failed);
                self.metrics.lose(Loss::Refused, 1);
                tracing::warn!(%hook, event = id, kind = event.kind().name(), why, "a hook did not take an event, which is dropped");
                delivery.refused(event);
            }
            Outcome::Failed(why) => {
                self.metrics.attempt(Attempt::Failed);
                if failures == 0 {
                    tracing::warn!(%hook, event = id, why, "a hook fails: its events wait, and are sent again");
                } else {
                    tracing::debug!(%hook, event = id, failures, why, "a hook fails");
                }
                delivery.failed(self.events.now(), fastrand::f64());
            }
            Outcome::Gone => {
                self.metrics.attempt(Attempt::Failed);
                let why = "the endpoint answers 410 Gone: correct hooks, and reload";
                tracing::error!(%hook, why, "a hook gets no more events");
                return false;
            }
        }
        true
    }

    /// Counts events that are dropped. The log tells it once a minute.
    fn give_up(&mut self, given_up: GivenUp) {
        let GivenUp { overflow, old } = given_up;
        for (loss, count) in [(Loss::Overflow, overflow), (Loss::Old, old)] {
            if count > 0 {
                self.metrics.lose(loss, count);
            }
        }
        let (drops, now) = (&mut self.drops, Instant::now());
        (drops.overflow, drops.old) = (drops.overflow + overflow, drops.old + old);
        let is_due = drops.told.is_none_or(|told| now.saturating_duration_since(told) >= TELL);
        if drops.overflow + drops.old > 0 && is_due {
            let Drops { overflow, old, .. } = std::mem::replace(drops, Drops { told: Some(now), ..Drops::default() });
            tracing::warn!(hook = %self.target, overflow, old, "events for a hook are dropped: more wait than its queue holds, or for too long");
        }
    }

    fn tell(&mut self, delivery: &Delivery, newest: u64) {
        self.metrics.waits(newest.saturating_sub(delivery.position()));
        self.reached.send_replace(Reached { position: delivery.position(), fails: delivery.failures() > 0 });
    }
}
